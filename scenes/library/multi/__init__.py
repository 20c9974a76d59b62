"""Multi's fourteen tests (Holck 2005, chapter 5), each a scene: the thesis's tests, with exact numbers."""
