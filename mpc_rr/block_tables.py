"""What is published of a block aggregation: every table, what it cost, and what depends on what."""

from typing import Any

import numpy as np

from mpc_rr.estimation.blocks import answer_epsilon, independence_test, likely, pooled
from mpc_rr.estimation.combinations import Combination
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.tables import agree
from mpc_rr.protocols.block_aggregation import BlockParticipation, CollectedBlocks
from mpc_rr.randomness import SeededRandomness
from mpc_rr.release import csv_text, pair_csv, pair_file

MOST_TESTED = 40
"""Up to so many tables are tested for independence."""


def blocks_document(found: CollectedBlocks) -> dict[str, Any]:
    """The part of ``result.json`` that speaks of the answers and what they tell."""
    options = found.options
    tables = block_tables(found)
    tested = len(tables) <= MOST_TESTED
    return {
        "n": found.n,
        "asked": len(found.asked),
        "silent": list(found.silent),
        "faulty": dict(found.faulty),
        "not_asked": list(found.not_asked),
        "answers_digest": found.digest.hex(),
        "p": options.p,
        "floor": options.floor,
        "block": options.block,
        "blocks": len(next(iter(found.shown.values()))) - 1,
        "tables": [_table_document(found, c, table, tested=tested) for c, table in tables.items()],
    }


def block_tables(found: CollectedBlocks) -> dict[Combination, Array]:
    """The most likely table of every combination, made to agree about common attributes."""
    tables, weights = {}, {}
    for combination in found.shown:
        answered = found.answered(combination)
        if answered.n:
            shape = [found.schema.sizes[a] for a in combination]
            tables[combination] = likely(answered).reshape(shape)
            weights[combination] = float(answered.n)
    return agree(tables, weights)


def _table_document(
    found: CollectedBlocks, combination: Combination, table: Array, *, tested: bool
) -> dict[str, Any]:
    schema, answered = found.schema, found.answered(combination)
    shape = tuple(schema.sizes[a] for a in combination)
    estimate = pooled(answered)
    epsilons = [
        answer_epsilon(found.options.p, shown)
        for shown, count in zip(answered.tables, answered.counts, strict=True)
        if count.any()
    ]
    document: dict[str, Any] = {
        "attributes": [schema.names[a] for a in combination],
        "categories": [list(schema.attributes[a].categories) for a in combination],
        "n": answered.n,
        "shares": table.tolist(),
        "unbiased_shares": estimate.shares.reshape(shape).tolist(),
        "standard_errors": estimate.standard_errors.reshape(shape).tolist(),
        "epsilon_of_an_answer": {"smallest": min(epsilons), "largest": max(epsilons)},
    }
    if tested:
        # What the test draws follows from the answers, so that everybody finds the same.
        rng = SeededRandomness(found.digest).fork(str(combination))
        test = independence_test(shape, answered, rng.uniform, samples=99)
        document["independence"] = {
            "statistic": test.statistic,
            "critical": test.critical,
            "p_value": test.p_value,
            "rejected": test.rejected,
        }
    return document


def blocks_files(found: CollectedBlocks) -> dict[str, str]:
    """The answers, and every table, as CSV."""
    schema = found.schema
    lines: list[list[Any]] = [["party", "answer"]]
    lines += [[party, answer.hex()] for party, answer in found.answers.items()]
    files = {"answers.csv": csv_text(lines)}
    for number, (combination, table) in enumerate(block_tables(found).items(), start=1):
        attributes = [schema.attributes[a] for a in combination]
        name = pair_file(number, *(a.name for a in attributes))
        if len(attributes) == 2:
            files[f"tables/{name}"] = pair_csv(attributes[0], attributes[1], table.tolist())
        else:
            rows: list[list[Any]] = [[*(a.name for a in attributes), "share"]]
            for cell, share in np.ndenumerate(table):
                words = [a.categories[code] for a, code in zip(attributes, cell, strict=True)]
                rows.append([*words, float(share)])
            files[f"tables/{name}"] = csv_text(rows)
    return files


def block_participation_document(part: BlockParticipation) -> dict[str, Any]:
    """What a party has in the end: its view, what its answers cost, and the paper's claim."""
    return {
        "asked": part.asked,
        "n": part.n,
        "answers_digest": part.answers_digest.hex(),
        "view": [list(combination) for combination in part.view],
        "epsilon": part.epsilon,
        "claimed_epsilon": part.claimed_epsilon,
    }
