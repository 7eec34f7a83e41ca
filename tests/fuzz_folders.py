"""Result folders with changed files: `mpc-rr verify` notices, and never fails itself."""

import atexit
import difflib
import functools
import json
import shutil
import tempfile
from pathlib import Path

from helpers import make_scenario, random_records, unpack
from mutating import changed, changed_bytes, changed_text

from mpc_rr.errors import MpcRrError
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_views import RRViews
from mpc_rr.results.alike import texts_alike
from mpc_rr.results.folder import write_results
from mpc_rr.results.verification import claims_of
from mpc_rr.running import run_study

GOLDEN = Path(__file__).parent / "golden"
SIZES = (2, 3, 2)
NEW = {
    "exact": ExactPairs(sum="secure_sum"),
    "masked": ExactPairs(sum="masked_sum"),
    "suppressed": ExactPairs(sum="secure_sum", suppress_below=2),
    "independent": RRIndependent(keep=0.6),
    "views": RRViews(epsilon=2.0),
}
FORMATS = ("format-1", "format-2")
VOUCHED_FOR = ("transcript.jsonl", "study.json")
"""In folders from before closing statements, what somebody signed, or signed the digest of."""
UNCLAIMED = "origin"
"""Which package the protocol came from: no claim of `mpc-rr verify` speaks of it."""
EMPTY = (None, [], {}, "", (True, "False"), (False, "inf"))


@functools.cache
def _place():
    place = Path(tempfile.mkdtemp(prefix="mpc-rr-fuzzing-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


@functools.cache
def folders():
    """Honest folders: of this program, and golden ones of earlier ones."""
    for name, protocol in NEW.items():
        scenario = make_scenario(random_records(6, SIZES, seed=3), SIZES, protocol=protocol)
        write_results(run_study(scenario, transport="memory", seed=2), _place() / "new" / name)
    for name in FORMATS:
        unpack(GOLDEN / f"{name}.tar.xz", _place() / name)
    found = {kind: sorted((_place() / kind).iterdir()) for kind in ("new", *FORMATS)}
    return {kind: [f for f in some if f.name != "aborted"] for kind, some in found.items()}


@functools.cache
def _verdicts(folder):
    """What is said of an honest folder."""
    return {claim.claim: claim.verdict for claim in claims_of(folder)}


def _rows(rng, text):
    """Lines that change places, are left out, are there twice."""
    rows = text.splitlines(keepends=True)
    one, other = rng.randrange(len(rows)), rng.randrange(len(rows))
    match rng.randrange(3):
        case 0:
            rows[one], rows[other] = rows[other], rows[one]
        case 1:
            del rows[one]
        case 2:
            rows.insert(other, rows[one])
    return "".join(rows)


def _changed_file(rng, path, raw):
    """Other bytes for a file."""
    way = rng.random()
    if way < 0.1:
        return changed_bytes(rng, raw)
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return changed_bytes(rng, raw)
    if way < 0.3:
        return changed_text(rng, text).encode()
    if path.suffix == ".json":
        try:
            document = changed(rng, json.loads(text))
            return json.dumps(document, indent=2, ensure_ascii=False).encode()
        except (ValueError, TypeError, UnicodeEncodeError):
            return changed_text(rng, text).encode()
    if path.suffix == ".jsonl" and way < 0.7:
        rows = text.split("\n")
        place = rng.randrange(len(rows))
        if rows[place]:
            try:
                rows[place] = json.dumps(changed(rng, json.loads(rows[place])))
            except (ValueError, TypeError):
                rows[place] = changed_text(rng, rows[place])
        return "\n".join(rows).encode()
    return _rows(rng, text).encode() if text else b"x"


def _difference(before, after):
    was, became = (str(raw, errors="replace").splitlines() for raw in (before, after))
    return "\n".join(difflib.unified_diff(was, became, n=0, lineterm=""))[:4000]


def _same(path, before, after):
    """Whether a file says what it said: to the digits that count, and with or without defaults."""
    try:
        was, became = before.decode(), after.decode()
        if path.suffix == ".csv":
            return texts_alike(was, became)
        if path.suffix == ".json":
            return _filled(json.loads(was)) == _filled(json.loads(became))
    except (ValueError, RecursionError):
        pass
    return before == after


def _filled(value):
    """A document without what means the same where it is left out; 1 and 1.0 differ from true."""
    if isinstance(value, dict):
        filled = {key: _filled(inner) for key, inner in value.items() if key != UNCLAIMED}
        return {key: inner for key, inner in filled.items() if inner not in EMPTY}
    if isinstance(value, list):
        return [_filled(inner) for inner in value]
    if isinstance(value, bool):
        return True, str(value)
    return (False, f"{value:.9g}") if isinstance(value, int | float) else value


def play(rng, case):
    """Change a file of a folder, and verify it."""
    kind = rng.choice(("new", "new", *FORMATS))
    folder = rng.choice(folders()[kind])
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = rng.choice(files)
    name = path.relative_to(folder)
    case.about = f"{kind}, {name if len(name.parts) == 1 else name.parts[0]}"
    before = path.read_bytes()
    another = rng.choice(folders()[kind]) / name
    if another.is_file() and rng.random() < 0.05:
        after = another.read_bytes()
    else:
        after = _changed_file(rng, path, before)
    case.input = f"{folder.name}/{name}: {_difference(before, after)}"
    with tempfile.TemporaryDirectory(dir=_place()) as copy:
        place = Path(copy) / folder.name
        shutil.copytree(folder, place)
        (place / name).write_bytes(after)
        if rng.random() < 0.03:
            (place / name).unlink()
            after = b""
        signed = kind == "new" or path.name in VOUCHED_FOR
        _verify(place, folder, signed and not _same(path, before, after))


def _verify(place, folder, is_changed):
    honest = _verdicts(folder)
    try:
        claims = claims_of(place)
    except MpcRrError:
        return
    for claim in claims:
        assert "\n" not in str(claim), "a claim of several lines"
    found = {claim.claim: claim.verdict for claim in claims}
    worse = [c for c, verdict in honest.items() if found.get(c) != verdict]
    if is_changed:
        assert worse, "everything is said as of the folder before the change"
