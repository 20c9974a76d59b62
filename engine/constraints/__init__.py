"""Motion constraints in equations of motion (Featherstone 2008, chapter 3): functions of plain arrays."""
