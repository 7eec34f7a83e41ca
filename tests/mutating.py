"""Changes of values, as an attacker or a bad disk makes them; all of them from a given `Random`."""

import msgspec

STRANGE_INTEGERS = (
    0, 1, -1, 2, 127, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1,
    2**63, 2**64 - 1, -(2**31), -(2**63),
)  # fmt: skip
STRANGE_TEXTS = (
    "", "*", "coordinator", "party-1", "party-2", "party-99", "Party-1", " ", "\0", "\n",
    "a\u202eb", "../x", "\x1b[2J", "é" * 50, "x" * 300, "attempt-1", "attempt-2", "lobby",
    "verdict", "-1", "nan", "1e999", "[bold]", "\U0001f600",
)  # fmt: skip
OTHERS = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    float("nan"),
    float("inf"),
    "",
    "x",
    b"",
    b"x",
    [],
    {},
    [[]],
)
LARGEST = 70_000
"""Of byte strings that are longer than they should be."""


def changed_bytes(rng, raw):
    """Other bytes, mostly alike."""
    place = rng.randrange(len(raw) + 1)
    match rng.randrange(8):
        case 0:
            return raw[:place]
        case 1:
            return raw[:place] + rng.randbytes(rng.choice((1, 1, 4, 32))) + raw[place:]
        case 2:
            return raw + raw
        case 3:
            return rng.randbytes(len(raw))
        case 4:
            return bytes(len(raw))
        case 5:
            return rng.choice((b"", b"\0", b"\xff" * 8, bytes(LARGEST)))
        case 6:
            end = min(len(raw), place + rng.randrange(1, 9))
            return raw[:place] + raw[end:]
    if not raw:
        return b"\1"
    place %= len(raw)
    return raw[:place] + bytes([raw[place] ^ (1 << rng.randrange(8))]) + raw[place + 1 :]


def changed_text(rng, text):
    """Another text, mostly alike."""
    place = rng.randrange(len(text) + 1)
    end = place + rng.choice((1, 1, 2, 8, 40))
    match rng.randrange(6):
        case 0:
            return text[:place] + text[end:]
        case 1:
            return text[:place] + rng.choice(STRANGE_TEXTS) + text[place:]
        case 2:
            return text[:place] + chr(rng.randrange(1, 128)) + text[place + 1 :]
        case 3:
            return text[:place] + text[place:end] * 2 + text[end:]
        case 4:
            return text[:place]
    return rng.choice(STRANGE_TEXTS) if len(text) < 60 else text.swapcase()


def _changed_list(rng, items, pool):
    items = list(items)
    place = rng.randrange(len(items) + 1)
    match rng.randrange(6):
        case 0:
            return items[:place] + items[place + 1 :]
        case 1:
            return [*items[:place], rng.choice(pool or OTHERS), *items[place:]]
        case 2:
            return []
        case 3:
            return items + items
        case 4:
            return items[::-1]
    rng.shuffle(items)
    return items


def _changed_dict(rng, table):
    keys = list(table)
    if not keys:
        return {rng.choice(STRANGE_TEXTS): rng.choice(OTHERS)}
    one, other = rng.choice(keys), rng.choice(keys)
    match rng.randrange(5):
        case 0:
            return {key: value for key, value in table.items() if key != one}
        case 1:
            return table | {one: table[other], other: table[one]}
        case 2:
            strange = rng.choice(STRANGE_INTEGERS if isinstance(one, int) else STRANGE_TEXTS)
            return {(strange if key == one else key): value for key, value in table.items()}
        case 3:
            return {}
    return table | {rng.choice(STRANGE_TEXTS): table[one]}


def _changed_here(rng, value, pool):
    kin = [other for other in pool if type(other) is type(value) and other != value]
    if kin and rng.random() < 0.25:
        return rng.choice(kin)
    if rng.random() < 0.15:
        return rng.choice(OTHERS)
    match value:
        case bool():
            return not value
        case int():
            near = (value + 1, value - 1, -value, value * 2)
            return min(max(rng.choice(STRANGE_INTEGERS + near), -(2**63)), 2**64 - 1)
        case float():
            return rng.choice((0.0, -value, value * 2, float("nan"), float("inf"), 1e-320, 1e308))
        case bytes():
            return changed_bytes(rng, value)
        case str():
            return changed_text(rng, value)
        case list() | tuple():
            return _changed_list(rng, value, pool)
        case dict():
            return _changed_dict(rng, value)
    return rng.choice(OTHERS)


def changed(rng, value, pool=()):
    """Another value: somewhere in it, something has another type, length, order or content.

    ``pool``: what may stand there instead, of the same type (another party's, for example).
    """
    inside = list(value) if isinstance(value, list | tuple) else None
    if inside and rng.random() < 0.8:
        place = rng.randrange(len(inside))
        inside[place] = changed(rng, inside[place], pool)
        return inside
    if isinstance(value, dict) and value and rng.random() < 0.75:
        key = rng.choice(list(value))
        return value | {key: changed(rng, value[key], pool)}
    return _changed_here(rng, value, pool)


def leaves(value):
    """All that is somewhere in a value, for a pool."""
    yield value
    if isinstance(value, list | tuple | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from leaves(inner)


def changed_msgpack(rng, raw, pool=()):
    """Other bytes: as a rule those of another value, sometimes damaged ones."""
    if rng.random() < 0.15:
        return changed_bytes(rng, raw)
    try:
        value = msgspec.msgpack.decode(raw)
    except (msgspec.MsgspecError, ValueError):
        return changed_bytes(rng, raw)
    return msgspec.msgpack.encode(changed(rng, value, pool))
