"""The brick of the house: vectors, rotations and spatial quantities as pytrees of scalar components."""
