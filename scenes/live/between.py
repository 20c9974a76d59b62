"""Poses between two frames, to draw more often than a world steps, or at other times."""

from __future__ import annotations

import numpy as np

from ...collision.poses import Array

NEARLY_EQUAL = 1e-6  # [rad] half the angle below which the chord is the arc


def between(before: Array, after: Array, alpha: float) -> Array:
    """Poses (n, 7) x y z, w x y z: positions on the line, attitudes on the shortest arc, at alpha from 0 to 1."""
    old, new = np.asarray(before[:, 3:], float), np.asarray(after[:, 3:], float)
    new = np.where((old * new).sum(-1, keepdims=True) < 0, -new, new)  # q and -q are one attitude
    half = np.arctan2(np.linalg.norm(new - old, axis=-1), np.linalg.norm(new + old, axis=-1))[:, None] * 2
    arc = np.where(half < NEARLY_EQUAL, 1.0, half)
    chord = half < NEARLY_EQUAL
    a = np.where(chord, 1 - alpha, np.sin((1 - alpha) * arc) / np.sin(arc))
    b = np.where(chord, alpha, np.sin(alpha * arc) / np.sin(arc))
    q = a * old + b * new
    q /= np.linalg.norm(q, axis=-1, keepdims=True)
    return np.concatenate([(1 - alpha) * before[:, :3] + alpha * after[:, :3], q], -1)
