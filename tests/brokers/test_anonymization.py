"""The worked examples of paper 004 over a real broker, in one process and in several."""

import asyncio
import contextlib
import io

import pytest
from anonymizing import GROUPS, IN_GROUPS, MASKED, NAMES, PEOPLE, make_scenario, make_study
from helpers import PATIENT

from mpc_rr.agents.terms import Terms
from mpc_rr.anonymization.perturbation import Noise
from mpc_rr.cli.asking import asked_at_terminal
from mpc_rr.network.address import BrokerUrl
from mpc_rr.network.broker import embedded_broker
from mpc_rr.running import coordinate_study, run_study, take_part

pytestmark = pytest.mark.broker
STEP_4 = {  # what each respondent of the paper's Fig. 2 makes of her age and her salary
    28: 29, 29: 24, 21: 18, 23: 19, 50: 51, 55: 50, 47: 52, 49: 49,
    35000: 37306, 30000: 27765, 20000: 18951, 27000: 28151,
    40000: 36879, 43000: 42631, 48000: 45585, 45000: 40390,
}  # fmt: skip
STEP_5 = [
    (29, 40000), (28, 27000), (21, 20000), (23, 30000),
    (50, 35000), (49, 45000), (55, 48000), (47, 43000),
]  # fmt: skip


def test_figure_1_comes_out_over_mqtt():
    result = run_study(make_scenario(IN_GROUPS, **PATIENT), transport="mqtt").outcome.result
    assert result.groups == GROUPS
    found = [sorted(v[0] for number, v in result.messages if number == group) for group in (0, 1)]
    assert found == [[20000, 27000, 30000, 35000], [40000, 43000, 45000, 48000]]


def test_figure_2_comes_out_over_mqtt(monkeypatch):
    monkeypatch.setattr(Noise, "draw", lambda _, own, __, ___: STEP_4[own])
    result = run_study(make_scenario(MASKED, **PATIENT), transport="mqtt").outcome.result
    assert [result.records[name] for name in NAMES] == [
        (p[:1], (STEP_4[p[1]], STEP_4[p[2]])) for p in PEOPLE
    ]
    assert result.released() == STEP_5


async def test_figure_2_comes_out_through_the_prompt(capsys):
    """Each respondent types her masked values; one looks at masks first, and mistypes."""
    study = make_study(MASKED, **PATIENT)
    terms = {}
    for name, (_, age, salary) in zip(NAMES, PEOPLE, strict=True):
        typed = [f"={STEP_4[age]}", f"={STEP_4[salary]}"]
        if name == "party-1":
            typed = ["? swap:30", "noise:", "? =20", *typed]
        lines = io.StringIO("\n".join(typed) + "\n")
        terms[name] = Terms(decide=asked_at_terminal(lines))
    with embedded_broker() as broker:
        result, _ = await asyncio.gather(
            coordinate_study(study, broker.coordinator),
            take_part(study, broker.parties, dict(zip(NAMES, PEOPLE, strict=True)), terms=terms),
        )
    assert result.outcome.result.released() == STEP_5
    said = " ".join(capsys.readouterr().err.split())
    assert "Yours is 35000: place 4 of 8 from the lowest. 20000, 27000, 30000, 35000" in said
    for expected in ("swap:30", "'' is not a number", "nothing bounds what it tells"):
        assert expected in said
    assert "tells that it is rare" in said


# ── Through a proxy ────────────────────────────────────────────────────────────────────────────


@contextlib.asynccontextmanager
async def socks5_proxy():
    """A SOCKS5 proxy (RFC 1928, no authentication), which notes where it was asked to connect."""
    asked = []

    async def copy(reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader, writer):
        methods = (await reader.readexactly(2))[1]
        await reader.readexactly(methods)
        writer.write(b"\5\0")
        _, _, _, kind = await reader.readexactly(4)
        if kind == 3:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        else:
            host = ".".join(str(part) for part in await reader.readexactly(4))
        port = int.from_bytes(await reader.readexactly(2), "big")
        asked.append((host, port))
        there, back = await asyncio.open_connection(host, port)
        writer.write(b"\5\0\0\1" + bytes(6))
        await asyncio.gather(copy(reader, back), copy(there, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], asked
    finally:
        server.close()


async def test_a_party_can_reach_the_broker_through_a_proxy():
    study = make_study(IN_GROUPS, **PATIENT)
    with embedded_broker() as broker:
        async with socks5_proxy() as (port, asked):
            text = broker.parties.with_secrets()
            through = BrokerUrl.parse(text, proxy=f"socks5://127.0.0.1:{port}")
            people = dict(zip(NAMES, PEOPLE, strict=True))
            first = {name: people[name] for name in NAMES[:4]}
            rest = {name: people[name] for name in NAMES[4:]}
            result, ends, _ = await asyncio.gather(
                coordinate_study(study, broker.coordinator),
                take_part(study, through, first),
                take_part(study, broker.parties, rest),
            )
    assert result.outcome.result.groups == GROUPS
    assert all(end.digest == result.outcome.result.digest for end in ends.values())
    assert set(asked) == {(through.host, through.port)}
