"""The log of resting contacts of a frame: rows in their order, and sums by pair where there is no more room."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from carom.integrators.frame import Touching, _append_rows

C = 6  # contacts of a step


def step(rng, pairs) -> Any:
    """Some contacts of so many pairs; rows between them may be empty."""
    pair = np.where(rng.random(C) < 0.6, rng.integers(0, pairs, C), -1).astype(np.int32)
    point, normal, impulse = rng.normal(size=(3, C, 3))
    rows: Any = pair, point, normal, np.where(pair[:, None] >= 0, impulse, 0)
    return Touching(*rows)


def appended(log, rows, new) -> Any:
    """By numpy: behind the others; or in the last C rows, added to the pair's first one, else in the first free one."""
    log, real = Touching(*(np.array(x) for x in log)), np.flatnonzero(new.pair >= 0)  # type: ignore[arg-type]
    count = real[-1] + 1 if len(real) else 0
    start = len(log.pair) - C
    fits = rows + count <= start
    for k in range(count):
        own = start + np.flatnonzero(log.pair[start:] == new.pair[k])
        free = start + np.flatnonzero(log.pair[start:] < 0)
        at = rows + k if fits else own[0] if len(own) else free[0] if len(free) else None
        if at is None or (not fits and new.pair[k] < 0):
            continue
        before = log.impulse[at] if not fits and len(own) else 0
        log.pair[at], log.point[at], log.normal[at] = new.pair[k], new.point[k], new.normal[k]
        log.impulse[at] = new.impulse[k] + before
    return log, rows + count if fits else rows


@pytest.mark.parametrize("room", [2 * C, 5 * C])
@pytest.mark.parametrize("pairs", [3, 9])
def test_a_log_is_numpys(room, pairs):
    """Steps beyond what there is room for; some are not kept. Of each pair, nothing that is written gets lost."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        blank: Any = Touching(*(jnp.asarray(x) for x in (np.full(room, -1, np.int32), *np.zeros((3, room, 3)))))
        mine, rows, theirs, count = jax.tree.map(jnp.asarray, blank), jnp.int32(0), blank, 0
        for _ in range(8):
            new, keep = step(rng, pairs), rng.random() < 0.8
            mine, rows = jax.jit(_append_rows)(mine, rows, jax.tree.map(jnp.asarray, new), jnp.asarray(keep))
            if keep:
                theirs, count = appended(theirs, count, new)
            assert int(rows) == count
            for a, b in zip(mine, theirs, strict=True):
                np.testing.assert_allclose(a, b, atol=1e-12)
