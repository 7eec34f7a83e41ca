"""Collecting randomized records: the part that all randomized-response protocols share.

A party randomizes its record by a public design and reports the outcome under its name; what it
reports may be seen by anybody. The coordinator takes what comes until the deadline. It announces
how many answered and a digest of their answers, so that it cannot change them afterwards: whoever
has the public transcript can check the digest, find the own answer in it, and repeat the
estimation (``mpc-rr verify``).
"""

import hashlib
import math
from abc import abstractmethod
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import ClassVar

import msgspec
import numpy as np
import numpy.typing as npt

from mpc_rr.errors import InputError
from mpc_rr.estimation.clusters import Dependences
from mpc_rr.estimation.designs import Design
from mpc_rr.estimation.matrix import (
    WORST_CONDITION,
    ByChanges,
    Dense,
    KeepOrUniform,
    RRMatrix,
)
from mpc_rr.estimation.planning import design_pair_errors
from mpc_rr.estimation.uncertainty import RandomizedReports
from mpc_rr.estimation.views import guessed_shares
from mpc_rr.network.envelope import Message, Way
from mpc_rr.network.session import CoordinatorSession, PartySession
from mpc_rr.privacy.disclosures import (
    Disclosure,
    Excluded,
    MatrixResponse,
    RandomizedResponse,
    bounded,
)
from mpc_rr.protocols.interface import HEAD_BYTES, MEMBER_BYTES, StudyProtocol
from mpc_rr.protocols.prospects import (
    A_RECORD,
    AN_ATTRIBUTE,
    Prospect,
    of_combinations,
    of_dependences,
    of_randomizing,
    of_width,
)
from mpc_rr.publication.counts import PairCounts
from mpc_rr.publication.ending import DIGEST_BYTES, Ending, Setting
from mpc_rr.publication.first_stage import FirstStage
from mpc_rr.publication.pairs import RandomizedPairs
from mpc_rr.publication.reports import (
    CODE_BYTES,
    AnsweredOne,
    Collected,
    answers_digest,
    pack_record,
)
from mpc_rr.schema import Attribute, Record, Schema

ONE_POPULATION = 4
"""Since these rules everything is counted in one weighted population."""
MARK_BYTES = 8
LARGEST_EPSILON = 30.0
LARGEST_NEARBY = 1_000_000
"""So many combinations may a cluster have that goes to near ones: all of them are enumerated."""
LARGEST_DOMAIN = 2**31
"""So many combinations one answer may have; where a cell is sent, its number has four bytes."""


class Answer(Message, frozen=True):
    """Party → coordinator, public: its randomized record, two bytes for each attribute."""

    step: ClassVar[str] = "answer"
    doing: ClassVar[str] = "parties report their randomized answers"
    codes: bytes


class AnswersTaken(Message, frozen=True):
    """Coordinator → everyone: so many were asked and answered; the digest of all answers."""

    step: ClassVar[str] = "answers_taken"
    doing: ClassVar[str] = "the coordinator announces the digest of all answers"
    way: ClassVar[Way] = "announce"
    asked: int
    answered: int
    digest: bytes


def unpack_record(raw: bytes, sizes: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """A randomized record; ``ValueError`` if it is none."""
    if len(raw) != CODE_BYTES * len(sizes):
        raise ValueError(f"it has {len(raw)} bytes where {CODE_BYTES * len(sizes)} are wanted")
    codes = np.frombuffer(raw, dtype="<u2").astype(np.int64)
    if (codes >= np.asarray(sizes)).any():
        raise ValueError("it has a value outside the domain of its attribute")
    return codes


def plausible(session: PartySession, at_least: int | None = None) -> Callable[[AnswersTaken], None]:
    """A check: ``ValueError`` if an honest coordinator would not announce this.

    ``at_least``: with how few answers; as many as the study needs, if not given.
    """
    fewest = session.fewest if at_least is None else at_least

    def check(taken: AnswersTaken) -> None:
        if not fewest <= taken.answered <= taken.asked <= session.most:
            raise ValueError(f"{taken.answered} answers of {taken.asked} parties")
        if len(taken.digest) != DIGEST_BYTES:
            raise ValueError(f"a digest has {DIGEST_BYTES} bytes")

    return check


def design_mark(design: Design) -> bytes:
    """Eight bytes that tell one design from another."""
    pairs = zip(design.clusters, design.matrices, strict=True)
    parts = [(cluster, repr(matrix)) for cluster, matrix in pairs]
    return hashlib.sha256(msgspec.json.encode((design.sizes, parts))).digest()[:MARK_BYTES]


def after(found: Ending, taken: AnswersTaken, fewest: int) -> FirstStage:
    """How a study ends whose second stage, this collection, too few answered."""
    return FirstStage(
        found=found,
        asked=taken.asked,
        answered=taken.answered,
        fewest=fewest,
        answers_digest=taken.digest,
    )


async def collect_party(
    session: PartySession,
    schema: Schema,
    record: Record,
    design: Design,
    first_stage: PairCounts | RandomizedPairs | None = None,
) -> AnsweredOne | FirstStage:
    """A party's steps: randomize, report, hear how many did.

    ``first_stage``: what was found before, if this is a second stage. If too few answer this one,
    that is the result.
    """
    # Step 1: randomize the record, once and for all: a second draw would tell more.
    truth = np.array([record], dtype=np.int64)
    codes = session.once(
        "answer",
        lambda rng: pack_record(design.randomize(truth, rng)[0]),
        given=design_mark(design),
    )

    # Step 2: report it.
    await session.report(Answer(codes))

    # Step 3: hear the digest of all answers.
    at_least = session.fewest if first_stage is None else 0
    taken = await session.hear(AnswersTaken, check=plausible(session, at_least))
    if first_stage is not None and taken.answered < session.fewest:
        return after(first_stage, taken, session.fewest)
    reported = tuple(int(code) for code in unpack_record(codes, schema.sizes))
    before = None if first_stage is None else first_stage.n
    return AnsweredOne(schema, taken.asked, taken.answered, taken.digest, reported, before)


async def collect_coordinator(
    session: CoordinatorSession,
    schema: Schema,
    design: Design,
    first_stage: PairCounts | RandomizedPairs | None = None,
    clustered_by: Dependences | None = None,
) -> Collected | FirstStage:
    """The coordinator's part: take the answers that come, and commit to them."""

    def in_domain(answer: Answer) -> None:
        unpack_record(answer.codes, schema.sizes)

    # Step 2: take what comes until the deadline.
    at_least = session.fewest if first_stage is None else 0
    gathered = await session.gather(Answer, check=in_domain, at_least=at_least)
    answers = {party: answer.codes for party, answer in sorted(gathered.messages.items())}

    # Step 3: announce the digest of all answers.
    taken = AnswersTaken(len(session.parties), len(answers), answers_digest(answers))
    await session.announce(taken)
    if first_stage is not None and len(answers) < session.fewest:
        return after(first_stage, taken, session.fewest)
    reported = np.stack([unpack_record(codes, schema.sizes) for codes in answers.values()])
    everybody = first_stage is not None and first_stage.n == len(answers) == len(session.parties)
    return Collected(
        schema,
        session.parties,
        tuple(answers),
        gathered.silent,
        gathered.faulty,
        design,
        reported,
        None if first_stage is None else first_stage.n,
        clustered_by,
        first_stage.known() if first_stage is not None and everybody else None,
        session.rules < ONE_POPULATION,
    )


def check_design(design: Design) -> None:
    """`InputError` unless reports by this design protect somebody and can be estimated from."""
    for matrix in design.matrices:
        if matrix.size > LARGEST_DOMAIN:
            raise InputError(
                f"a cluster has {matrix.size:,} combinations; at most {LARGEST_DOMAIN:,} are "
                "allowed; ask for fewer attributes at once"
            )
        if isinstance(matrix, ByChanges) and matrix.size > LARGEST_NEARBY:
            raise InputError(
                f"a cluster has {matrix.size:,} combinations; with stay at most "
                f"{LARGEST_NEARBY:,} are allowed; give epsilon instead"
            )
        if matrix.condition > WORST_CONDITION:
            raise InputError("nothing of the true answers would be left; randomize less")
        if isinstance(matrix, Dense) and math.isinf(matrix.epsilon) and not matrix.betrayed():
            # By zeros that were written down: people are told which answers they exclude.
            if not matrix.epsilon_left <= LARGEST_EPSILON:
                raise InputError(
                    f"ε = {matrix.epsilon_left:.3g} between two answers that a report leaves "
                    f"protects nobody (at most {LARGEST_EPSILON:g} is allowed): beside zeros, a "
                    "column's other probabilities must not be nearly zero"
                )
            continue
        if not matrix.epsilon <= LARGEST_EPSILON:
            raise InputError(
                f"ε = {matrix.epsilon:.3g} for one answer protects nobody (at most "
                f"{LARGEST_EPSILON:g} is allowed)"
            )


def disclosures_of(
    what: str, schema: Schema, design: Design, among: Collection[str] | None = None
) -> list[Disclosure]:
    """What a record that is reported by this design discloses.

    ``among``: of clusters that hold one of these attributes alone.
    """
    found: list[Disclosure] = []
    for cluster, matrix in zip(design.clusters, design.matrices, strict=True):
        names = tuple(schema.names[a] for a in cluster)
        if among is None or set(names) & set(among):
            found.append(_disclosed(what, names, matrix, schema))
    return found


def _disclosed(
    what: str, names: tuple[str, ...], matrix: RRMatrix, schema: Schema
) -> RandomizedResponse | MatrixResponse:
    """What one cluster discloses."""
    if isinstance(matrix, KeepOrUniform):
        return RandomizedResponse(
            what=what,
            attributes=names,
            combinations=matrix.size,
            keep=matrix.keep,
            epsilon=matrix.epsilon,
        )
    if isinstance(matrix, ByChanges):
        one = matrix.epsilon_of_one if len(names) > 1 else matrix.epsilon
        least = most = matrix.probability(0)
        excludes: tuple[Excluded, ...] = ()
        by_answer, of_others = (one,) * len(names), None
    else:
        assert isinstance(matrix, Dense)
        stays = np.diag(matrix.dense())
        least, most, by_answer = float(stays.min()), float(stays.max()), ()
        excludes = _excluded(matrix, schema.attributes[schema.names.index(names[0])])
        of_others = matrix.epsilon_left if excludes else None
    return MatrixResponse(
        what=what,
        attributes=names,
        combinations=matrix.size,
        least=least,
        most=most,
        epsilon=bounded(matrix.epsilon),
        left=matrix.uncertainty / math.log2(matrix.size),
        by_answer=by_answer,
        excludes=excludes,
        epsilon_left=of_others,
    )


def _excluded(matrix: Dense, attribute: Attribute) -> tuple[Excluded, ...]:
    """For every report that excludes answers: which."""
    possible, names = matrix.weights > 0, attribute.categories
    return tuple(
        Excluded(
            report=names[report],
            answers=tuple(names[k] for k in np.flatnonzero(~possible[:, report])),
        )
        for report in range(matrix.size)
        if possible[:, report].any() and not possible[:, report].all()
    )


def prospects_of(study: Setting, design: Design) -> list[Prospect]:
    """What so many people, who answer by this design, are too few for."""
    sizes, n = study.schema.sizes, study.expected
    largest = max(math.prod(sizes[a] for a in cluster) for cluster in design.clusters)
    what = A_RECORD if len(design.clusters) == 1 else AN_ATTRIBUTE
    errors = design_pair_errors(design, n, guessed_shares(sizes))

    def spread_of(pair: tuple[int, int], people: int) -> RandomizedReports:
        return RandomizedReports(people, design.randomization(pair))

    tables = of_randomizing(errors, n)
    return [
        *of_combinations(what, largest, n),
        *(tables or of_dependences(study.schema.attributes, spread_of, n)),
    ]


def full_prospects_of(study: Setting, design: Design) -> list[Prospect]:
    """The same where everything is counted in one population: it may have too many categories."""
    return of_width(design.width) + prospects_of(study, design)


def largest_answer_bytes(study: Setting) -> int:
    """No message is longer than a list of all parties' keys and names."""
    return HEAD_BYTES + CODE_BYTES * len(study.schema.sizes) + MEMBER_BYTES * study.parties


class FixedDesign(StudyProtocol, frozen=True):
    """A protocol whose design follows from the study file alone."""

    messages: ClassVar[tuple[type[Message], ...]] = (Answer,)

    @abstractmethod
    def design(self, schema: Schema) -> Design:
        """How a record is randomized."""

    def check(self, study: Setting) -> None:
        """The design must make sense, and what is reported must be estimable."""
        check_design(self.design(study.schema))

    def prospects(self, study: Setting) -> list[Prospect]:
        """Too many combinations for so many people, or too much randomizing."""
        return full_prospects_of(study, self.design(study.schema))

    def largest_message_bytes(self, study: Setting) -> int:
        """No message is longer than a list of all parties' keys and names."""
        return largest_answer_bytes(study)

    def disclosures(self, study: Setting) -> list[Disclosure]:
        """Each cluster, seen under the party's name."""
        design = _design(type(self), msgspec.msgpack.encode(self), study.schema)
        return disclosures_of(self.name, study.schema, design)

    async def party(self, session: PartySession, schema: Schema, record: Record) -> Ending:
        """A party's part: its record goes in; a randomized one leaves."""
        design = _design(type(self), msgspec.msgpack.encode(self), schema)
        return await collect_party(session, schema, record, design)

    async def coordinator(self, session: CoordinatorSession, schema: Schema) -> Ending:
        """The coordinator's part."""
        return await collect_coordinator(session, schema, self.design(schema))


@lru_cache(maxsize=16)
def _design(kind: type[FixedDesign], options: bytes, schema: Schema) -> Design:
    """The design of a protocol, once for all parties of a host: finding λs takes a while."""
    return msgspec.msgpack.decode(options, type=kind).design(schema)
