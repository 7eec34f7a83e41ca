"""Feeds damaged, forged and dishonest input to everything that reads, and says what goes wrong.

    python tests/fuzzing.py [--seconds N] [--seed S] [--kind a|b|c|d] [--only NUMBER]

    a   decoders: messages, payloads, addresses, study files, records, ledgers, passes, lists
    b   agents on a broker that damages, repeats and invents messages (it can sign nothing)
    c   a member or the coordinator sends, in the place of an honest message, a changed one, signed
    d   result folders with changed files

Each input follows from the seed, the kind and its number; a finding is printed with all three, and
``--seed S --kind K --only NUMBER`` plays it again. What turns out to be a bug of a decoder becomes
a file in ``tests/corpus/DECODER/``, which the ordinary tests read first.
"""

import argparse
import logging
import random
import signal
import sys
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass

import fuzz_agents
import fuzz_decoders
import fuzz_folders

KINDS = {
    "a": fuzz_decoders.play,
    "b": fuzz_agents.play_broker,
    "c": fuzz_agents.play_liar,
    "d": fuzz_folders.play,
}
LONGEST_S = 60
"""An input that keeps a reader busy for so long is a finding."""


class Stuck(KeyboardInterrupt):
    """Somebody does not come to an end; no handler of errors may swallow it."""


@dataclass(frozen=True)
class Finding:
    """An input on which something went wrong, and what."""

    seed: int
    kind: str
    number: int
    what: str

    def __str__(self):
        again = f"--seed {self.seed} --kind {self.kind} --only {self.number}"
        return f"FOUND ({again})\n{self.what}"


@contextmanager
def _within(seconds):
    def stop(_signal, _frame):
        raise Stuck(f"no end after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def fuzz(seed, kind, number):
    """Play one input: what it was about, and the finding if there is one."""
    rng = random.Random(f"{seed} {kind} {number}")
    case = fuzz_decoders.Case()
    try:
        with _within(LONGEST_S):
            KINDS[kind](rng, case)
    except (Exception, Stuck) as error:  # noqa: BLE001  (whatever it is, it is a finding)
        what = f"{case.about}: {type(error).__name__}: {error}\ninput: {case.input}"
        return case.about, Finding(seed, kind, number, what)
    return case.about, None


def main(arguments=None):
    """Fuzz for a while, print what was played, and exit with 1 if there is a finding."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60, help="in all, for all kinds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=KINDS, help="only this one")
    parser.add_argument("--only", type=int, help="only the input of this number, of one kind")
    options = parser.parse_args(arguments)
    kinds = [options.kind] if options.kind else list(KINDS)
    if options.only is not None:
        if options.kind is None:
            parser.error("--only needs --kind")
        about, finding = fuzz(options.seed, options.kind, options.only)
        print(finding or f"nothing wrong with {about}")
        return int(finding is not None)
    found = 0
    for kind in kinds:
        found += _spree(options.seed, kind, options.seconds / len(kinds))
    return int(found > 0)


def _spree(seed, kind, seconds):
    """Fuzz one kind for so long; how many findings there were."""
    begun, played, found, number = time.monotonic(), Counter(), 0, 0
    while time.monotonic() - begun < seconds:
        about, finding = fuzz(seed, kind, number)
        played[about] += 1
        number += 1
        if finding is not None:
            found += 1
            print(finding, flush=True)
    took = time.monotonic() - begun
    print(f"{kind}: {number} inputs in {took:.0f} s ({number / took:.1f}/s), {found} found")
    for about, count in sorted(played.items()):
        print(f"   {count:7} {about}")
    sys.stdout.flush()
    return found


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # agents tell of every lie that they notice
    sys.exit(main())
