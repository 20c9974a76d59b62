"""Parts of the pair kernels: supports, hulls, faces, manifolds, GJK."""
