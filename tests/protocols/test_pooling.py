"""Parties that only pool what they hold: how many lay somebody bare, and what was said of it."""

import contextvars
import io
import re

import pytest
from helpers import Tapped, make_study, random_records, setting, simulate
from rich.console import Console

from mpc_rr.agents.account import Account, StoredAccount
from mpc_rr.agents.consent import consent_to
from mpc_rr.crypto import shamir
from mpc_rr.network.envelope import decode
from mpc_rr.privacy.costs import Privacy
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_joint import RRJoint
from mpc_rr.protocols.rr_pairs import RRPairs
from mpc_rr.protocols.sums import choice
from mpc_rr.protocols.sums.choice import OPEN_MASKS
from mpc_rr.protocols.sums.masked import sum as masked_sum
from mpc_rr.protocols.sums.masked.recovery import MARK_BYTES, mark_of
from mpc_rr.protocols.sums.masked.setup import MaskingOptions
from mpc_rr.protocols.sums.masked.sum import MaskShares
from mpc_rr.results.folder import write_results
from mpc_rr.running import run_study
from mpc_rr.show.report import report
from mpc_rr.show.study import show_consent
from mpc_rr.show.words import price
from mpc_rr.study.file import party_names

SIZES = (2, 3)
N = 50


class Pool:
    """What parties hold of their neighbours' secrets, and what everybody can see."""

    def __init__(self, monkeypatch):
        self.held, self.network = {}, Tapped()
        me, party = contextvars.ContextVar("me"), choice.masked_sum_party
        unsealed = masked_sum._unsealed  # noqa: SLF001

        async def taking_part(session, seat, *args, **options):
            me.set((session.me, seat))
            return await party(session, seat, *args, **options)

        def keeping(parcels, seals):
            name, seat = me.get()
            found = unsealed(parcels, seals)
            self.held[name] = (seat, found.items)
            return found

        monkeypatch.setattr(choice, "masked_sum_party", taking_part)
        monkeypatch.setattr(masked_sum, "_unsealed", keeping)

    def laid_bare(self, coalition):
        """Whose own mask a coalition takes off: a secret is right if it fits its public mark."""
        sent = [e for e in self.network.envelopes if e.header.step == MaskShares.step]
        marks = {e.header.sender: decode(e.body, MaskShares).marks[:MARK_BYTES] for e in sent}
        found = set()
        for victim in marks.keys() - set(coalition):
            number, shares = self.held[victim][0].number, {}
            for name in coalition:
                seat, items = self.held[name]
                if number in seat.neighbours:
                    slot = seat.neighbours.index(number)
                    shares[seat.graph.mirrored(slot) + 1] = items[slot][: shamir.SHARE_BYTES]
            for count in range(1, len(shares) + 1):
                some = {point: shares[point] for point in sorted(shares)[:count]}
                if mark_of(b"own", shamir.join(some)) == marks[victim]:
                    found.add(victim)
        return found


@pytest.mark.parametrize("corrupt", [0.0, 0.05])
def test_as_many_as_are_said_to_may_pool_what_they_know_and_lay_nobody_bare(monkeypatch, corrupt):
    """Three of fifty laid bare 13 of 47 whose ε was to hold with 25 of them; one, 30 of 49."""
    protocol = ExactPairs(noise_epsilon=1.0, masking=MaskingOptions(corrupt=corrupt))
    study = make_study(N, SIZES, protocol=protocol)
    said = study.disclosures[0].withstands
    assert said == 24
    pool = Pool(monkeypatch)
    outcome, _ = simulate(study, random_records(N, SIZES, seed=5), network=pool.network, seed=3)
    assert outcome.result.n == N
    names = party_names(N)
    for size in (1, 3, said):
        assert not pool.laid_bare(names[-size:])
    assert pool.laid_bare(names[-40:])  # that the attack works, where there are enough


SCHEMA = make_study(3, SIZES).schema
SUMS = [ExactPairs(), ExactPairs(noise_epsilon=1.0), RRPairs(epsilon=1.0)]


@pytest.mark.parametrize("inner", SUMS)
@pytest.mark.parametrize("outer", [lambda p: p, lambda p: RRClusters(keep=0.6, dependence=p)])
def test_every_masked_sum_says_how_many_may_pool_what_they_know(inner, outer):
    protocol = outer(inner)
    for place, who in [
        (setting(SCHEMA, N), "more than 24 of the 50 parties"),
        (setting(SCHEMA, 1_000, 900), "more than 50 of the 1,000 parties"),
        (setting(SCHEMA, 1_000, 900, registrar=True), "more than 50 of the 1,000 parties"),
    ]:
        event = protocol.disclosures(place)[0]
        most = int(who.split()[2])
        assert event.withstands == most
        assert f"as long as at most {most} parties pool what they know" in event.how + event.seen
        said = [c.text for c in protocol.cautions(place) if who in c.text]
        assert said
        assert not any("If all other parties" in c.text for c in protocol.cautions(place))


NOISY = RRClusters(epsilon=1.0, dependence=ExactPairs(noise_epsilon=1.0))
IF = "as long as at most 24 parties pool what they know and the coordinator follows the protocol"


def test_an_epsilon_that_rests_on_the_noise_of_others_is_never_said_without_its_condition(tmp_path):
    """Of noise inside rr_clusters it was. With masks off, one party's own share of the noise leaves
    likelihood ratios of e^18 and more."""
    study = make_study(N, SIZES, protocol=NOISY)
    said = consent_to(study, Account())
    assert (said.epsilon, said.withstands, said.total_withstands) == (pytest.approx(2.0), 24, 24)
    for words in (said.in_words, said.total_in_words, Privacy.of(study.disclosures).in_words):
        assert "Someone who starts at 50:50" in words
        assert words.endswith(f" This holds {IF}; otherwise no ε bounds it.")
    screen = io.StringIO()
    show_consent(Console(file=screen, width=1000), said)
    assert re.search(
        f"For your whole record: ε = 2 \\(.*\\), on a condition. .* This holds {IF}; otherwise",
        screen.getvalue(),
    )

    result = run_study(study, random_records(N, SIZES), transport="memory", seed=1)
    found = result.publication.privacy
    assert found.local_withstands == 24
    assert re.search(rf"ε = 2 \(δ = .*\), on a condition\. .* This holds {IF};", price(found))
    write_results(result, tmp_path / "run")
    assert f"someone who sees everything a party sent (local ε), {IF}" in report(tmp_path / "run")

    with StoredAccount.open(tmp_path / "books") as account:
        account.charge(study, (0, 0))
        assert IF in account.ledger.in_words()
        later = consent_to(make_study(N, SIZES, name="later", protocol=NOISY), account)
    show_consent(Console(file=screen, width=1000), later)
    said = f"After this study: ε = 4 in all, ε = 4 for any one answer, {IF}."
    assert said in screen.getvalue()


@pytest.mark.parametrize("protocol", [RRPairs(epsilon=1.0), ExactPairs(), RRJoint(epsilon=1.0)])
def test_an_epsilon_that_rests_on_nobody_else_has_no_condition(protocol):
    """Randomized before it is added up, it holds whoever pools; an exact sum has none at all."""
    said = consent_to(make_study(N, SIZES, protocol=protocol), Account())
    assert (said.withstands, said.total_withstands) == (None, None)


def test_in_the_paper_s_sum_all_others_may_pool_what_they_know():
    place = setting(SCHEMA, 30)
    assert ExactPairs().disclosures(place)[0].withstands is None
    assert any("If all other parties were one person's" in c.text for c in cautions(place))


def cautions(place, **options):
    return ExactPairs(**options).cautions(place)


def test_few_corrupt_parties_are_warned_of():
    """Where a file allows for fewer than is usual, check, the screen and the result say so."""
    low = {"sum": "masked_sum", "masking": MaskingOptions(corrupt=0.01)}
    place = setting(SCHEMA, 1_000, 900)
    (found,) = (c for c in cautions(place, **low) if "corrupt = 0.01" in c.text)
    assert "at most 10 of the 1,000 parties pool what they know" in found.text
    assert any(str(found) == note.text for note in ExactPairs(**low).notes(place))
    assert not any("corrupt =" in c.text for c in cautions(place, sum="masked_sum"))


def test_a_minimum_does_not_bind_a_coordinator_that_deviates():
    """The line said that 900 are in every total; the true least is ten others and oneself."""
    place = setting(SCHEMA, 1_000, 900, registrar=True)
    (event,) = ExactPairs().disclosures(place)
    assert "only in a total over 11 parties or more (1,000 are expected)" in event.seen
    (found,) = (c for c in cautions(place) if "minimum" in c.text)
    assert "The minimum of 900 parties binds only" in found.text
    assert "can have totals over 11 parties" in found.text
    open_study = setting(SCHEMA, 1_000, 900)
    assert "total over 900 parties or more" in ExactPairs().disclosures(open_study)[0].seen
    assert OPEN_MASKS in cautions(open_study)


def test_whoever_holds_the_registrar_s_key_is_warned_of():
    """The author of a study may be its registrar: then the warning had gone, and nothing else."""
    study = make_study(3, SIZES)
    admitted = type(study)(
        **{f: getattr(study, f) for f in study.__struct_fields__} | {"registrar": "ab" * 32}
    )
    means = consent_to(admitted, Account())
    (found,) = (c for c in means.cautions if "registrar's key" in c.text)
    assert f"({'ab' * 8}…)" in found.text
    assert "can admit people who do not exist; the author of the study may hold it" in found.text
    assert "all other parties were invented" in found.text
    assert "ask who holds this key" in found.prevented_by
