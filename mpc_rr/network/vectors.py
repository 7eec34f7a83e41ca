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


def pack_bits(values: npt.NDArray[np.unsignedinteger], bits: int) -> bytes:
    """The lowest ``bits`` of each value, one after the other without gaps."""
    words = values.astype("<u8").view(np.uint8).reshape(-1, 8)
    return np.packbits(
        np.unpackbits(words, axis=1, bitorder="little")[:, :bits], bitorder="little"
    ).tobytes()


def unpack_bits(raw: bytes, cells: int, bits: int) -> Residues:
    """What `pack_bits` packed; ``ValueError`` unless these are ``cells`` values."""
    if len(raw) != (cells * bits + 7) // 8:
        raise ValueError(f"{len(raw)} bytes where {(cells * bits + 7) // 8} are due")
    flags = np.unpackbits(np.frombuffer(raw, np.uint8), bitorder="little")
    if flags[cells * bits :].any():
        raise ValueError("there is something behind the last value")
    words = np.zeros((cells, 64), dtype=np.uint8)
    words[:, :bits] = flags[: cells * bits].reshape(cells, bits)
    return np.packbits(words, axis=1, bitorder="little").view("<u8").ravel().astype(np.uint64)
