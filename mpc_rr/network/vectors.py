"""Vectors of residues on the wire: little-endian, in the smallest type that holds the modulus."""

import functools

import numpy as np
import numpy.typing as npt

Residues = npt.NDArray[np.uint64]


@functools.cache
def _dtype(modulus: int) -> np.dtype[np.unsignedinteger]:
    dtype: np.dtype[np.unsignedinteger] = np.min_scalar_type(modulus - 1).newbyteorder("<")
    return dtype


def packed_bytes(cells: int, modulus: int) -> int:
    """How many bytes `pack` gives."""
    return cells * _dtype(modulus).itemsize


def pack(values: Residues, modulus: int) -> bytes:
    """The values, which must lie in ``range(modulus)``, as bytes."""
    return values.astype(_dtype(modulus)).tobytes()


def unpack(raw: bytes, cells: int, modulus: int) -> Residues:
    """The values in ``raw``; ``ValueError`` unless there are ``cells``, all below the modulus."""
    if len(raw) != packed_bytes(cells, modulus):
        raise ValueError(f"{len(raw)} bytes where {packed_bytes(cells, modulus)} are due")
    values = np.frombuffer(raw, dtype=_dtype(modulus)).astype(np.uint64)
    if cells and int(values.max()) >= modulus:
        raise ValueError(f"a value is not below the modulus {modulus}")
    return values
