"""Shamir's secret sharing of 32-byte secrets, over the largest prime field of 256 bits.

Any ``threshold`` of the shares give the secret; fewer tell nothing about it. No well-kept library
does this for large secrets and many shares quickly, so it is here: polynomials over a prime field,
in Python's own integers, which are faster for this than numpy's on 256 bits.
"""

import functools
import itertools
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


def corrected(shares: Mapping[int, bytes], threshold: int) -> tuple[bytes, list[int]] | None:
    """The secret and the points of false shares, if these are at most half of those to spare.

    Shares are a Reed-Solomon code word; this is Gao's decoder (2003): the polynomial through all
    shares, divided in Euclid's way by the one that is zero at all points, until what is left has
    the right degree.
    """
    points = list(shares)
    values = [int.from_bytes(share) for share in shares.values()]
    older, newer = _vanishing(points), _through(points, values)
    older_factor, factor = [0], [1]
    while 2 * (len(newer) - 1) >= len(points) + threshold:
        quotient, rest = _divided(older, newer)
        older, newer = newer, rest
        older_factor, factor = factor, _minus(older_factor, _times(quotient, factor))
    polynomial, rest = _divided(newer, factor)
    if rest != [0] or len(polynomial) > threshold:
        return None
    falling = polynomial[::-1]
    false = [p for p, value in zip(points, values, strict=True) if _value(falling, p) != value]
    return polynomial[0].to_bytes(SHARE_BYTES), false


# Polynomials are lists of coefficients, the constant first, none but the only one zero at the end.


def _trimmed(polynomial: list[int]) -> list[int]:
    while len(polynomial) > 1 and polynomial[-1] == 0:
        polynomial.pop()
    return polynomial


def _times(one: Sequence[int], other: Sequence[int]) -> list[int]:
    product = [0] * (len(one) + len(other) - 1)
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            product[i + j] += a * b
    return _trimmed([value % PRIME for value in product])


def _minus(one: Sequence[int], other: Sequence[int]) -> list[int]:
    pairs = itertools.zip_longest(one, other, fillvalue=0)
    return _trimmed([(a - b) % PRIME for a, b in pairs])


def _divided(one: Sequence[int], other: Sequence[int]) -> tuple[list[int], list[int]]:
    """Quotient and rest."""
    rest, steps = list(one), len(one) - len(other) + 1
    if steps < 1:
        return [0], rest
    quotient, inverse = [0] * steps, pow(other[-1], -1, PRIME)
    for place in reversed(range(steps)):
        quotient[place] = rest[place + len(other) - 1] * inverse % PRIME
        for k, coefficient in enumerate(other):
            rest[place + k] = (rest[place + k] - quotient[place] * coefficient) % PRIME
    return quotient, _trimmed(rest[: len(other) - 1] or [0])


def _vanishing(points: Sequence[int]) -> list[int]:
    """The polynomial that is zero at these points, and nowhere else."""
    polynomial = [1]
    for point in points:
        polynomial = _times(polynomial, [-point % PRIME, 1])
    return polynomial


def _through(points: Sequence[int], values: Sequence[int]) -> list[int]:
    """The polynomial with these values (Newton's divided differences)."""
    differences = list(values)
    for step in range(1, len(points)):
        for k in reversed(range(step, len(points))):
            run = pow(points[k] - points[k - step], -1, PRIME)
            differences[k] = (differences[k] - differences[k - 1]) * run % PRIME
    polynomial = [0]
    for point, difference in zip(reversed(points), reversed(differences), strict=True):
        polynomial = _minus(_times(polynomial, [-point % PRIME, 1]), [-difference % PRIME])
    return polynomial


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
