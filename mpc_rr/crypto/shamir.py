"""Shamir's secret sharing of 32-byte secrets, over the largest prime field of 256 bits.

Any ``threshold`` of the shares give the secret; fewer tell nothing about it. No well-kept library
does this for large secrets and many shares quickly, so it is here: polynomials over a prime field,
in Python's own integers, which are faster for this than numpy's on 256 bits.
"""

import functools
from collections.abc import Mapping, Sequence

from mpc_rr.randomness import Randomness

PRIME = 2**256 - 189
SHARE_BYTES = 32


def random_secret(rng: Randomness) -> bytes:
    """A secret that can be shared: uniform in the field."""
    while True:
        secret = rng.bytes(SHARE_BYTES)
        if int.from_bytes(secret) < PRIME:
            return secret


def split(secret: bytes, threshold: int, shares: int, rng: Randomness) -> list[bytes]:
    """Shares at the points 1, 2, …, of which any ``threshold`` give the secret."""
    if not 1 <= threshold <= shares:
        raise ValueError(f"a threshold of {threshold} does not fit {shares} shares")
    constant = int.from_bytes(secret)
    if len(secret) != SHARE_BYTES or constant >= PRIME:
        raise ValueError("this secret is not in the field")
    # 64 bytes each: reduced modulo the prime they are uniform but for one part in 2^256.
    raw = rng.bytes(64 * (threshold - 1))
    rising = [int.from_bytes(raw[k : k + 64]) % PRIME for k in range(0, len(raw), 64)]
    falling = [*reversed(rising), constant]
    return [_value(falling, point).to_bytes(SHARE_BYTES) for point in range(1, shares + 1)]


def _value(falling: Sequence[int], point: int) -> int:
    """The polynomial at a small point; reduced at the end only, as points are short."""
    value = 0
    for coefficient in falling:
        value = value * point + coefficient
    return value % PRIME


def join(shares: Mapping[int, bytes]) -> bytes:
    """The secret from as many shares as its threshold, by their points."""
    weights = _weights(tuple(shares))
    total = sum(w * int.from_bytes(s) for w, s in zip(weights, shares.values(), strict=True))
    return (total % PRIME).to_bytes(SHARE_BYTES)


@functools.lru_cache(maxsize=4096)
def _weights(points: tuple[int, ...]) -> tuple[int, ...]:
    """Lagrange's weights at zero, with one inversion for all of them."""
    tops, bottoms = [], []
    for point in points:
        top = bottom = 1
        for other in points:
            if other != point:
                top = top * other % PRIME
                bottom = bottom * (other - point) % PRIME
        tops.append(top)
        bottoms.append(bottom)
    running = [1]
    for bottom in bottoms:
        running.append(running[-1] * bottom % PRIME)
    inverse = pow(running[-1], -1, PRIME)
    weights = []
    for k in reversed(range(len(points))):
        weights.append(tops[k] * inverse * running[k] % PRIME)
        inverse = inverse * bottoms[k] % PRIME
    return tuple(reversed(weights))
