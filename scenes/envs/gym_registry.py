"""Entries in gymnasium's registry, which name the classes of `gym.py` without importing them."""

from __future__ import annotations

try:
    import gymnasium
except ImportError as error:
    raise ImportError(
        "environments for gymnasium: gymnasium 1.1 or later is not installed: pip install 'carom[rl]'"
    ) from error

GYM = f"{__name__.rpartition('.')[0]}.gym"


def register(id: str, name: str, max_steps: int) -> None:
    """Register the environment `name` at gymnasium, if it is not."""
    spec = gymnasium.registry.get(id)
    if spec is None or (spec.kwargs.get("name"), spec.max_episode_steps) != (name, max_steps):
        gymnasium.registry.pop(id, None)
        gymnasium.register(
            id,
            entry_point=f"{GYM}:CaromEnv",
            vector_entry_point=f"{GYM}:CaromVectorEnv",
            max_episode_steps=max_steps,
            kwargs={"name": name},
        )
