"""Importing this registers the environments at gymnasium, which can import it itself:
gymnasium.make("carom.scenes.envs.registered:carom/CartPole-v0")."""

from .registration import register_envs

register_envs()
