"""Component algebra: vectors, rotations and spatial quantities as pytrees of scalar components; constraints on
equations of motion as matrices."""
