"""Makes mpc_rr/agents/lookalikes.txt, the table of characters that look alike, from ICU.

    python tests/lookalikes.py

ICU (libicui18n, of any system) has Unicode's table of confusables (UTS #39). Here are those
characters that a registrar's name can have once it is normalized: letters, marks, digits,
punctuation. Python 3.11 and ICU 72 made the committed one.
"""

import ctypes
import ctypes.util
import re
import unicodedata
from collections import defaultdict
from pathlib import Path

FILE = Path(__file__).parent.parent / "mpc_rr" / "agents" / "lookalikes.txt"
HEAD = """\
# Characters that look alike: what they look like, and which do. Made by tests/lookalikes.py from
# ICU {icu}'s table for UTS #39 (skeletons), with the characters that Unicode {unicode} has.
#
# Copyright (c) 1991-2022 Unicode, Inc.
# Permission is hereby granted, free of charge, to any person
# obtaining a copy of this software and associated
# documentation files (the "Software"), to deal in the
# Software without restriction, including without limitation
# the rights to use, copy, modify, merge, publish, distribute,
# sublicense, and/or sell copies of the Software, and to
# permit persons to whom the Software is furnished to do so,
# subject to the following conditions:
#
# The above copyright notice and this permission notice shall
# be included in all copies or substantial portions of the
# Software.
#
# THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY
# KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
# WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR
# PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS
# OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR
# OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
# OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE
# SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""


class Icu:
    """ICU's checker of confusables."""

    def __init__(self):
        name = ctypes.util.find_library("icui18n")
        if name is None:
            raise OSError("ICU (libicui18n) is not installed")
        self.version = int(re.search(r"\d+", name.partition(".so")[2]).group())
        library = ctypes.CDLL(name)
        opened = getattr(library, f"uspoof_open_{self.version}")
        opened.restype = ctypes.c_void_p
        self._skeleton = getattr(library, f"uspoof_getSkeletonUTF8_{self.version}")
        self._skeleton.argtypes = [
            ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_int32, ctypes.c_char_p,
            ctypes.c_int32, ctypes.POINTER(ctypes.c_int),
        ]  # fmt: skip
        self._checker = opened(ctypes.byref(ctypes.c_int(0)))

    def skeleton(self, text):
        """What a text looks like."""
        raw, error = text.encode(), ctypes.c_int(0)
        room = ctypes.create_string_buffer(64 + 32 * len(raw))
        length = self._skeleton(
            self._checker, 0, raw, len(raw), room, len(room), ctypes.byref(error)
        )
        if error.value > 0:
            raise ValueError(f"ICU's error {error.value}")
        return room.raw[:length].decode()


def in_names(character):
    """Whether a normalized name can have this character."""
    kind = unicodedata.category(character)[0]
    whole = unicodedata.normalize("NFKD", character) == character
    return whole and (kind in "LMNP" or (character.isascii() and character.isprintable()))


def table(icu):
    """What the file says."""
    alike = defaultdict(list)
    for character in filter(in_names, map(chr, range(0x110000))):
        looks_like = icu.skeleton(character)
        if looks_like != character:
            alike[looks_like].append(character)
    lines = (f"{_codes(looks_like)}: {_codes(them)}\n" for looks_like, them in alike.items())
    return HEAD.format(icu=icu.version, unicode=unicodedata.unidata_version) + "".join(lines)


def _codes(characters):
    return " ".join(f"{ord(character):x}" for character in characters)


if __name__ == "__main__":
    FILE.write_text(table(Icu()), encoding="ascii")
