"""BLAKE2b of 16 bytes, as a program: an exported world prints the hash that Python prints.

RFC 7693, section 3, letters as there; without a key. `hashlib` is the oracle of its test.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

LENGTH = 16  # bytes of the digest
IV = np.array([
    0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
    0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
], np.uint64)  # fmt: skip
SIGMA = np.array([
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4], [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13], [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11], [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5], [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
])[[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]]  # fmt: skip
BLOCK = 16  # words of 8 bytes


def words(numbers: Array) -> Array:
    """The bytes of numbers (n,) as words of 8, padded with zeros. Needs 64 bits."""
    if numbers.dtype.itemsize == 8:
        return lax.bitcast_convert_type(numbers, jnp.uint64)
    half = lax.bitcast_convert_type(numbers, jnp.uint32).astype(jnp.uint64)
    half = jnp.pad(half, (0, len(half) % 2)).reshape(-1, 2)
    return half[:, 0] | (half[:, 1] << jnp.uint64(32))


def blake2b(numbers: Array) -> Array:
    """Hexadecimal digits (32,), as ASCII, of the digest of numbers (n,), little-endian. Needs 64 bits."""
    length, m = numbers.size * numbers.dtype.itemsize, words(numbers)
    blocks = max(1, -(-len(m) // BLOCK))
    m = jnp.pad(m, (0, blocks * BLOCK - len(m))).reshape(blocks, BLOCK)
    counts = np.minimum(np.arange(1, blocks + 1, dtype=np.uint64) * 8 * BLOCK, length).astype(np.uint64)
    last = np.where(np.arange(blocks) == blocks - 1, np.uint64(2**64 - 1), np.uint64(0))
    start = IV.copy()
    start[0] ^= np.uint64(0x01010000 ^ LENGTH)

    def one(h: Array, block: tuple[Array, Array, Array]) -> tuple[Array, None]:
        return _compress(h, *block), None

    h, _ = lax.scan(one, jnp.asarray(start), (m, jnp.asarray(counts), jnp.asarray(last)))
    nibbles = (h[: LENGTH // 8, None] >> jnp.asarray(_shifts())) & jnp.uint64(15)
    digits = nibbles.reshape(-1).astype(jnp.int32)
    return jnp.where(digits < 10, digits + ord("0"), digits - 10 + ord("a")).astype(jnp.uint8)


def _shifts() -> np.ndarray:
    """Bits by which each digit of a word is shifted (16,): low bytes first, the high half of each first."""
    return np.array([8 * byte + shift for byte in range(8) for shift in (4, 0)], np.uint64)


def _compress(h: Array, m: Array, t: Array, f: Array) -> Array:
    """F of section 3.2, the sixteen words of v as four rows."""
    a, b = h[:4], h[4:]
    c, d = jnp.asarray(IV[:4]), jnp.asarray(IV[4:]) ^ jnp.stack([t, jnp.uint64(0), f, jnp.uint64(0)])

    def one_round(rows: tuple[Array, ...], s: Array) -> tuple[tuple[Array, ...], None]:
        x = m[s]
        a, b, c, d = rows
        a, b, c, d = _mix(a, b, c, d, x[0:8:2], x[1:8:2])
        a, b, c, d = _mix(a, jnp.roll(b, -1), jnp.roll(c, -2), jnp.roll(d, -3), x[8::2], x[9::2])
        return (a, jnp.roll(b, 1), jnp.roll(c, 2), jnp.roll(d, 3)), None

    (a, b, c, d), _ = lax.scan(one_round, (a, b, c, d), jnp.asarray(SIGMA, jnp.int32))
    return h ^ jnp.concatenate([a, b]) ^ jnp.concatenate([c, d])


def _mix(a: Array, b: Array, c: Array, d: Array, x: Array, y: Array) -> tuple[Array, ...]:
    """G of section 3.1, of four columns or diagonals at once."""
    a = a + b + x
    d = _rotate_right(d ^ a, 32)
    c = c + d
    b = _rotate_right(b ^ c, 24)
    a = a + b + y
    d = _rotate_right(d ^ a, 16)
    c = c + d
    b = _rotate_right(b ^ c, 63)
    return a, b, c, d


def _rotate_right(x: Array, n: int) -> Array:
    """Rotate words to the right by n bits."""
    return (x >> jnp.uint64(n)) | (x << jnp.uint64(64 - n))
