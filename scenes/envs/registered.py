"""Importing this makes the environments known to gymnasium, which may do that itself:
gymnasium.make("carom.scenes.envs.registered:carom/CartPole-v0")."""

from .registration import register_envs

register_envs()
