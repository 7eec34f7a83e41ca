import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.network.vectors import pack, packed_bytes, unpack


@given(st.integers(2, 2**40), st.lists(st.integers(0, 2**40), max_size=20))
def test_what_is_packed_is_unpacked(modulus, values):
    vector = np.array([value % modulus for value in values], dtype=np.uint64)
    raw = pack(vector, modulus)
    assert len(raw) == packed_bytes(len(values), modulus)
    np.testing.assert_array_equal(unpack(raw, len(values), modulus), vector)


@pytest.mark.parametrize(
    ("modulus", "width"), [(2, 1), (256, 1), (257, 2), (65536, 2), (65537, 4), (2**32 + 1, 8)]
)
def test_the_smallest_type_is_used(modulus, width):
    assert packed_bytes(1, modulus) == width


def test_length_and_range_are_checked():
    with pytest.raises(ValueError, match="2 bytes where 3 are due"):
        unpack(b"\0\0", 3, 101)
    with pytest.raises(ValueError, match="not below the modulus 101"):
        unpack(bytes([5, 101, 0]), 3, 101)
