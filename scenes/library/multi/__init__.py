"""Multi's fourteen tests (Holck 2005, chapter 5), each a scene: what the thesis tests, with exact numbers."""
