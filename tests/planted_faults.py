"""Plants faults in a copy of the code, one at a time, and says whether a test notices.

    python tests/planted_faults.py [--file GLOB] [--most N] [--seed S] [--minutes M]

The faults are in ``tests/faults/*.toml``:

    [[fault]]
    file = "mpc_rr/crypto/merkle.py"
    was = '''count.to_bytes(8, "big") + top'''      # stands exactly once in the file
    became = '''top'''
    tests = ["tests/crypto/test_merkle.py::test_…"]   # of which at least one must fail

or, instead of ``tests``, ``equivalent = "…"``: the reason why nobody could ever notice.
"""

import argparse
import ast
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parent.parent
COPIED = ("mpc_rr", "tests", "docs", "scenarios", "benchmarks")
WORKERS = 2
LONGEST_S = 300.0
"""A test that a fault keeps from ending notices nothing."""
KEYS = {"file", "was", "became"}
BROKEN_BY = re.compile(r" - (?:Syntax|Indentation|Name|UnboundLocal|Import|ModuleNotFound)Error\b")
"""So fails what was planted badly, whatever the test asserts."""


@dataclass(frozen=True)
class Fault:
    """One fault, and who should notice it."""

    book: str
    file: str
    was: str
    became: str
    tests: tuple[str, ...] = ()
    equivalent: str = ""

    def planted(self, source):
        """The source with the fault; ``ValueError`` if it cannot be planted there."""
        found = source.count(self.was)
        if found != 1:
            raise ValueError(f"`was` stands {found} times in the file, not once")
        if self.became == self.was:
            raise ValueError("`became` is the same as `was`")
        return source.replace(self.was, self.became)

    def label(self, source):
        """Where it is planted, and the first line of what it changes."""
        line = source[: source.index(self.was)].count("\n") + 1
        return f"{self.file}:{line}  {self.was.strip().splitlines()[0]}"


def faults_in(root=ROOT):
    """All faults; ``ValueError`` if an entry has not the keys it should have."""
    found = []
    for book in sorted((root / "tests" / "faults").glob("*.toml")):
        for entry in tomllib.loads(book.read_text()).get("fault", []):
            if entry.keys() not in (KEYS | {"tests"}, KEYS | {"equivalent"}):
                raise ValueError(f"{book.name}: a fault with the keys {', '.join(entry)}")
            tests = tuple(entry.pop("tests", ()))
            found.append(Fault(book=book.name, tests=tests, **entry))
    return found


def wrong_with(fault, root=ROOT):
    """Why a fault cannot be planted, or why nobody would notice; None if all is well."""
    if not (root / fault.file).is_file():
        return "there is no such file"
    try:
        compile(fault.planted((root / fault.file).read_text()), fault.file, "exec")
    except (ValueError, SyntaxError) as error:
        return str(error)
    if not fault.tests and not fault.equivalent:
        return "neither a test nor a reason"
    missing = [test for test in fault.tests if not _exists(test, root)]
    return f"there is no {missing[0]}" if missing else None


def _exists(test, root):
    path, _, name = test.partition("::")
    file = root / path
    if not file.is_file() or not name:
        return False
    nodes = ast.parse(file.read_text()).body
    for part in name.partition("[")[0].split("::"):
        named = [node for node in nodes if getattr(node, "name", None) == part]
        if not named:
            return False
        nodes = named[0].body
    return True


@dataclass(frozen=True)
class Verdict:
    """What came of one fault."""

    word: str
    why: str = ""

    @property
    def bad(self):
        """Whether somebody has to do something."""
        return self.word in ("NOT NOTICED", "broken")


class Copy:
    """A copy of the tree, where faults are planted and tests run."""

    def __init__(self, source, folder):
        self.root = folder
        for name in COPIED:
            if (source / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__", ".*")
                shutil.copytree(source / name, folder / name, ignore=ignored)
        for file in (*source.glob("*.md"), *source.glob("*.toml")):
            shutil.copy2(file, folder)

    def pytest(self, tests, *options, planted):
        """Pytest's exit code and its summary of what failed; None if it did not end."""
        # A fault must not be compiled: it could be taken for the original, which has its age.
        # With it, tests may wait in vain; not for so long that they seem not to end.
        written = {"PYTHONDONTWRITEBYTECODE": "1", "MPC_RR_TEST_LIMIT_S": "60"} if planted else {}
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "-rfE", "--tb=no", *options, *tests],
            cwd=self.root,
            env=os.environ | {"PYTHONPATH": str(self.root), "COLUMNS": "300"} | written,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            out, _ = process.communicate(timeout=LONGEST_S if planted else None)
        except subprocess.TimeoutExpired:
            return None, ""
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait()
        return process.returncode, out

    def judge(self, fault):
        """Plant a fault, run its tests, and put the file back."""
        file = self.root / fault.file
        source, status = file.read_text(), file.stat()
        file.write_text(fault.planted(source))
        try:
            code, out = self.pytest(fault.tests, "-x", "-n0", planted=True)
        finally:
            file.write_text(source)
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        return _verdict(code, out)

    def failing(self, tests):
        """Of these tests, those that fail with no fault planted; all, if they cannot even run."""
        code, out = self.pytest(sorted(tests), f"-n{WORKERS}", planted=False)
        if code not in (0, 1):
            return set(tests)
        failed = "\n".join(re.findall(r"^(?:FAILED|ERROR) (.*)", out, re.MULTILINE))
        return {t for t in tests if re.search(rf"^{re.escape(t)}(?:\[| |$)", failed, re.MULTILINE)}


def _verdict(code, out):
    failed = re.findall(r"^(?:FAILED|ERROR) .*", out, re.MULTILINE)
    if code == 0:
        return Verdict("NOT NOTICED")
    if code is None:
        return Verdict("broken", f"no end after {LONGEST_S:.0f} s")
    if code != 1 or not failed or failed[0].startswith("ERROR") or BROKEN_BY.search(failed[0]):
        return Verdict("broken", failed[0] if failed else out[-300:])
    return Verdict("noticed")


def verdicts(faults, root=ROOT, *, until=float("inf")):
    """Each fault with its verdict, as they come; those after ``until`` are not begun."""
    for fault in faults:
        wrong = wrong_with(fault, root)
        if wrong is not None:
            yield fault, Verdict("broken", wrong)
        elif fault.equivalent:
            yield fault, Verdict("equivalent", fault.equivalent)
    asked = [f for f in faults if f.tests and wrong_with(f, root) is None]
    if not asked:
        return
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(WORKERS) as pool:
        copies = SimpleQueue()
        for number in range(WORKERS):
            copies.put(Copy(root, Path(folder) / str(number)))
        first = copies.get()
        failing = first.failing({test for fault in asked for test in fault.tests})
        copies.put(first)

        def judged(fault):
            if time.monotonic() > until:
                return Verdict("left out", "no time")
            sick = failing.intersection(fault.tests)
            if sick:
                return Verdict("broken", f"{min(sick)} fails without it")
            copy = copies.get()
            try:
                return copy.judge(fault)
            finally:
                copies.put(copy)

        yield from zip(asked, pool.map(judged, asked), strict=True)


def main(arguments=None, root=ROOT):
    """Plant, print a line each, and exit with 1 if a fault goes unnoticed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--file", default="*", help="only faults in such files (mpc_rr/crypto/*)")
    parser.add_argument("--most", type=int, help="a random sample of so many")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin none later")
    options = parser.parse_args(arguments)
    until = time.monotonic() + 60 * options.minutes
    faults = [fault for fault in faults_in(root) if fnmatch(fault.file, options.file)]
    if options.most is not None:
        faults = random.Random(options.seed).sample(faults, min(options.most, len(faults)))
    count, bad = {}, False
    for fault, verdict in verdicts(faults, root, until=until):
        count[verdict.word] = count.get(verdict.word, 0) + 1
        bad |= verdict.bad
        try:
            label = fault.label((root / fault.file).read_text())
        except (OSError, ValueError):
            label = fault.file
        why = f"  ({verdict.why})" if verdict.why else ""
        print(f"{verdict.word:12}{fault.book:20}{label:.90}{why}", flush=True)
    print(", ".join(f"{number} {word}" for word, number in sorted(count.items())) or "no faults")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
