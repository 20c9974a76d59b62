"""Component algebra: vectors, rotations and spatial quantities as pytrees of scalar components."""
