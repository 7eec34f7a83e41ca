"""Keys as NATS writes them: read again, mistyped digits noticed, nothing secret shown."""

import pytest

from mpc_rr.crypto.nkeys import Kind, NKey, is_public_key
from mpc_rr.randomness import SeededRandomness


@pytest.mark.parametrize(
    ("kind", "letter"), [(Kind.ACCOUNT, "A"), (Kind.OPERATOR, "O"), (Kind.USER, "U")]
)
def test_a_key_is_read_from_its_seed(kind, letter):
    key = NKey.draw(kind, SeededRandomness(1))
    assert key.public.startswith(letter)
    assert key.seed.startswith(f"S{letter}")
    assert NKey.from_seed(key.seed).public == key.public
    assert is_public_key(key.public, kind)
    assert key.seed not in repr(key)


def test_a_mistyped_or_cut_off_key_is_noticed():
    key = NKey.draw(Kind.ACCOUNT, SeededRandomness(2))
    wrong = [key.seed[:k] + "7Z"[key.seed[k] == "7"] + key.seed[k + 1 :] for k in range(58)]
    for seed in [*wrong, key.seed[:-1], key.seed[1:], "", "ä", key.public, key.seed.lower()]:
        if seed != key.seed:
            with pytest.raises(ValueError):  # noqa: PT011
                NKey.from_seed(seed)
    assert not is_public_key(key.seed, Kind.ACCOUNT)
    assert not is_public_key(key.public, Kind.USER)
