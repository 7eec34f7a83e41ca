"""Result folders by liars who have every key: what they change is signed again, by whom it must.

A simulation's seed gives all private keys. A forged folder is in order in every respect but one, so
that only the check for that one can notice it.
"""

import base64
import hashlib
import json

import msgspec

from mpc_rr.crypto.identity import Identity
from mpc_rr.network.envelope import (
    COORDINATOR,
    EVERYONE,
    VERDICT_SESSION,
    WIRE_VERSION,
    Envelope,
    Header,
    SignedEnvelope,
    decode,
)
from mpc_rr.network.lifecycle import Verdict
from mpc_rr.network.sealed import write
from mpc_rr.network.session.coordinator import RULES
from mpc_rr.randomness import SeededRandomness
from mpc_rr.results.closing import CLOSING, STEP, Closing, closing_text, in_order, sha256_of
from mpc_rr.results.transcript import transcript_lines


class Forger:
    """A folder of a run from this seed, open for changes; `save` makes it look right again."""

    def __init__(self, folder, seed):
        self.folder, self._rng = folder, SeededRandomness(seed)
        rows = (folder / "transcript.jsonl").read_text().splitlines()
        self.raws = [base64.b64decode(json.loads(row)["envelope"]) for row in rows]
        self.result = json.loads((folder / "result.json").read_text())
        self.stated = {}
        """What the closing statement is to say instead."""

    def identity(self, name):
        return Identity(self._rng.fork(name).fork("identity"))

    def envelope(self, place):
        return decode(decode(self.raws[place], SignedEnvelope).envelope, Envelope)

    def places(self, kind, sender=None, session=None):
        """Where messages of this kind are."""
        found = []
        for place in range(len(self.raws)):
            header = self.envelope(place).header
            if header.step == kind.step and sender in (None, header.sender):
                found += [place] if session in (None, header.session) else []
        assert found
        return found

    def message(self, place, kind):
        return decode(self.envelope(place).body, kind)

    def sign(self, place, message=None, by=None, **header):
        """Put another message in a place, or the same under another header, signed by somebody."""
        before = self.envelope(place)
        after = msgspec.structs.replace(before.header, **header)
        body = msgspec.Raw(before.body) if message is None else message
        self.raws[place] = write(after, body, self.identity(by or after.sender))

    def change(self, kind, sender=COORDINATOR, session=None, **fields):
        """Change fields of somebody's one message of this kind, and sign it."""
        (place,) = self.places(kind, sender, session)
        self.sign(place, msgspec.structs.replace(self.message(place, kind), **fields))

    def save(self, *, closed=True):
        text = transcript_lines(self.raws)
        (self.folder / "transcript.jsonl").write_text(text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        self.result["transcript"] = {"messages": len(self.raws), "digest": digest}
        (self.folder / "result.json").write_text(json.dumps(self.result))
        if closed:
            self.close()
        else:
            (self.folder / CLOSING).unlink()
        return self.folder

    def close(self, by=COORDINATOR):
        """Sign what stands in the folder now."""
        file, (verdict,) = self.result, self.places(Verdict)
        costs = ("cost.json", "cost.csv")
        absent = file["publication"]["participation"]["absent"]
        told = {
            "messages": len(self.raws),
            "transcript": in_order(self.raws),
            "result": self.message(verdict, Verdict).result_digest,
            "rules": RULES,
            "transport": file["transport"],
            "seed": None if file["seed"] is None else str(file["seed"]),
            "absent": absent,
            "rejected_messages": file["rejected_messages"],
            "files": {name: sha256_of((self.folder / name).read_text()) for name in costs},
        } | self.stated
        statement = msgspec.convert(told, Closing, builtin_types=(bytes,))
        study, run = self.envelope(verdict).header.study, bytes.fromhex(file["run"])
        header = Header(WIRE_VERSION, study, run, VERDICT_SESSION, STEP, COORDINATOR, EVERYONE)
        raw = write(header, statement, self.identity(by))
        (self.folder / CLOSING).write_text(closing_text(raw, study, run))
