"""Arrays with shapes, for annotations: `Float[Array, "*batch nq"]`. They are jaxtyping's, which is imported only if an
annotation is evaluated: the import takes a tenth of a second, and a run evaluates no annotation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxtyping import Bool as Bool
    from jaxtyping import Float as Float
    from jaxtyping import Int as Int
    from jaxtyping import Real as Real
else:

    class _Kind:
        def __init__(self, name: str) -> None:
            self.name = name

        def __getitem__(self, array_and_shape: tuple[Any, str]) -> Any:
            import jaxtyping

            return getattr(jaxtyping, self.name)[array_and_shape]

    Bool, Float, Int, Real = map(_Kind, ("Bool", "Float", "Int", "Real"))
