"""Names of the environments at gymnasium, which is imported only when needed."""

from __future__ import annotations

# id -> the environment's name here, and after how many steps gymnasium.make truncates its episodes
ENVS = {
    "carom/Pendulum-v0": ("pendulum", 400),
    "carom/Acrobot-v0": ("acrobot", 500),
    "carom/WeightLifter-v0": ("weightlifter", 500),
    "carom/CartPole-v0": ("cart_pole", 500),
    "carom/CartPoleSwingUp-v0": ("cart_pole_swing_up", 500),
    "carom/CartDoublePendulum-v0": ("cart_double_pendulum", 500),
    "carom/CartTriplePendulum-v0": ("cart_triple_pendulum", 1000),
    "carom/Hopper-v0": ("hopper", 600),
    "carom/Juggler-v0": ("juggler", 500),
    "carom/Quadruped-v0": ("quadruped", 500),
}
# gymnasium's own tasks, here by their ids: after how many steps they are truncated
GYMNASIUM = {
    "carom/Ant-v5": 1000,
    "carom/HalfCheetah-v5": 1000,
    "carom/Hopper-v5": 1000,
    "carom/Walker2d-v5": 1000,
    "carom/Humanoid-v5": 1000,
    "carom/InvertedPendulum-v5": 1000,
    "carom/InvertedDoublePendulum-v5": 1000,
    "carom/Reacher-v5": 50,
    "carom/Pusher-v5": 100,
}


def register_envs() -> tuple[str, ...]:
    """Register all environments at gymnasium.make and gymnasium.make_vec. Returns their ids."""
    from .gym_registry import register

    for id, (name, max_steps) in ENVS.items():
        register(id, name, max_steps)
    for id, max_steps in GYMNASIUM.items():
        register(id, id, max_steps)
    return (*ENVS, *GYMNASIUM)
