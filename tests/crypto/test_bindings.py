"""What hashes and signatures are made of: whoever drops an input from them is noticed.

Both sides compute these alike, so no honest run would show it. Values are those of version 1.
"""

import pytest

from mpc_rr.crypto.admission import (
    Pass,
    SigningKey,
    Withdrawals,
    admitted,
    pass_fault,
    requested,
    withdrawals_fault,
)
from mpc_rr.crypto.commitments import commit, opens
from mpc_rr.crypto.graph import HararyGraph
from mpc_rr.crypto.identity import Identity, PublicIdentity
from mpc_rr.crypto.merkle import MerkleTree, root_of
from mpc_rr.crypto.pairwise import derive, mask, seed_of
from mpc_rr.randomness import SeededRandomness

SALT, OTHER_SALT = bytes(range(32)), bytes(range(1, 33))


def test_a_commitment_is_this_hash():
    expected = "9b503817d9caf571cea29106ab77e8fc24c5b238582c1cb5b4bc9f1c783c89de"
    assert commit(b"bound to", b"value", SALT).hex() == expected


@pytest.mark.parametrize(
    "changed",
    [
        (b"bound to", b"value", OTHER_SALT),
        (b"bound to", b"other", SALT),
        (b"bound", b"value", SALT),
        (b"bound tov", b"alue", SALT),
        (b"value", b"bound to", SALT),
    ],
    ids=["salt", "value", "bound to", "moved by a letter", "swapped"],
)
def test_a_commitment_opens_with_all_it_was_made_of_only(changed):
    made = commit(b"bound to", b"value", SALT)
    assert opens(made, b"bound to", b"value", SALT)
    assert commit(*changed) != made
    assert not opens(made, *changed)


@pytest.mark.parametrize("salt", [b"", SALT[:-1], SALT + b"\0"])
def test_a_salt_of_another_length_is_none(salt):
    with pytest.raises(ValueError, match="a salt has 32 bytes"):
        commit(b"", b"value", salt)
    assert not opens(bytes(32), b"", b"value", salt)


# ── Admissions ─────────────────────────────────────────────────────────────────────────────────

REGISTRAR, ANN, BEN = (SigningKey.draw(SeededRandomness(seed)) for seed in range(3))
ANNS, BENS = (Identity(SeededRandomness(seed)).public for seed in (10, 11))
STUDY, RUN = b"s" * 32, b"r" * 16


def test_an_admission_and_a_proof_are_these_signatures():
    assert REGISTRAR.admit(STUDY, ANN.public).hex()[:32] == "5adebe7fc22233160787f85fb5eb7ac9"
    assert ANN.prove(RUN, ANNS).hex()[:32] == "16c5146e1c8021b0aa4e6f61282040c4"


def test_an_admission_is_for_one_person_and_one_study():
    admission = REGISTRAR.admit(STUDY, ANN.public)
    assert admitted(REGISTRAR.public, STUDY, ANN.public, admission)
    assert not admitted(REGISTRAR.public, STUDY, BEN.public, admission)
    assert not admitted(REGISTRAR.public, b"t" * 32, ANN.public, admission)
    assert not admitted(BEN.public, STUDY, ANN.public, admission)


def test_nobody_joins_on_anothers_admission():
    """Ben has no admission of his own; he shows Ann's, and a proof that is rightly his."""
    borrowed = Pass(BEN.public, REGISTRAR.admit(STUDY, ANN.public), BEN.prove(RUN, BENS))
    fault = pass_fault(borrowed, REGISTRAR.public, STUDY, RUN, BENS)
    assert fault == "the registrar has not admitted it to this study"


@pytest.mark.parametrize(
    ("run", "identity"),
    [
        (b"q" * 16, ANNS),
        (RUN, PublicIdentity(BENS.signing, ANNS.sealing)),
        (RUN, PublicIdentity(ANNS.signing, BENS.sealing)),
    ],
    ids=["another run", "another signing key", "another sealing key"],
)
def test_a_proof_is_for_one_run_and_both_keys_of_one_identity(run, identity):
    """With another's sealing key in her name, what is meant for her would go to somebody else."""
    shown = Pass(ANN.public, REGISTRAR.admit(STUDY, ANN.public), ANN.prove(RUN, ANNS))
    assert pass_fault(shown, REGISTRAR.public, STUDY, RUN, ANNS) is None
    fault = pass_fault(shown, REGISTRAR.public, STUDY, run, identity)
    assert fault == "its pass belongs to someone else"


def test_a_request_and_a_list_of_withdrawals_are_these_signatures():
    request = ANN.request(STUDY, REGISTRAR.public)
    listed = REGISTRAR.withdraw(STUDY, 2, [BEN.public, ANN.public])
    assert request.hex()[:32] == "5c7211d339e69e28a1ac04efbca6b000"
    assert listed.signature.hex()[:32] == "400d54a09810ef9ed9a85da1ab04a12c"
    assert listed == REGISTRAR.withdraw(STUDY, 2, [ANN.public, BEN.public])


def test_a_request_is_for_one_study_one_registrar_and_the_key_that_signs_it():
    request = ANN.request(STUDY, REGISTRAR.public)
    assert requested(REGISTRAR.public, STUDY, ANN.public, request)
    assert not requested(BEN.public, STUDY, ANN.public, request)
    assert not requested(REGISTRAR.public, b"t" * 32, ANN.public, request)
    assert not requested(REGISTRAR.public, STUDY, BEN.public, request)
    for other in (ANN.admit(STUDY, ANN.public), REGISTRAR.admit(STUDY, ANN.public), bytes(64)):
        assert not requested(REGISTRAR.public, STUDY, ANN.public, other)


def test_a_request_under_a_name_is_for_that_name_alone():
    named = ANN.request(STUDY, REGISTRAR.public, "ann")
    assert requested(REGISTRAR.public, STUDY, ANN.public, named, "ann")
    for name in ("", "ben", "ann "):
        assert not requested(REGISTRAR.public, STUDY, ANN.public, named, name)
    unnamed = ANN.request(STUDY, REGISTRAR.public)
    assert not requested(REGISTRAR.public, STUDY, ANN.public, unnamed, "ann")


def test_nobody_can_request_a_key_that_anybody_can_sign_for():
    """With the neutral element as key, the signature of nothing fits everything."""
    neutral = (1).to_bytes(32, "little")
    assert not requested(REGISTRAR.public, STUDY, neutral, neutral + bytes(32))


LISTED = REGISTRAR.withdraw(STUDY, 1, [ANN.public])


@pytest.mark.parametrize(
    ("listed", "says"),
    [
        (LISTED, None),
        (REGISTRAR.withdraw(STUDY, 0, []), None),
        (BEN.withdraw(STUDY, 1, [ANN.public]), "the study's registrar has not signed it"),
        (REGISTRAR.withdraw(b"t" * 32, 1, [ANN.public]), "another study"),
        (Withdrawals(STUDY, 1, (), LISTED.signature), "not as it is now"),
        (Withdrawals(STUDY, 1, (BEN.public,), LISTED.signature), "not as it is now"),
        (Withdrawals(STUDY, 2, LISTED.persons, LISTED.signature), "not as it is now"),
        (Withdrawals(STUDY, 2**64, LISTED.persons, LISTED.signature), "damaged"),
        (Withdrawals(STUDY, -1, LISTED.persons, LISTED.signature), "damaged"),
        (Withdrawals(STUDY, 1, (ANN.public[:16], ANN.public[16:]), LISTED.signature), "damaged"),
    ],
)  # fmt: skip
def test_a_list_of_withdrawals_is_one_registrars_for_one_study(listed, says):
    fault = withdrawals_fault(listed, REGISTRAR.public, STUDY)
    assert fault is None if says is None else says in fault


def test_a_withdrawn_admission_is_none():
    shown = Pass(ANN.public, REGISTRAR.admit(STUDY, ANN.public), ANN.prove(RUN, ANNS))
    known = (REGISTRAR.public, STUDY, RUN, ANNS)
    assert pass_fault(shown, *known, {BEN.public}) is None
    fault = pass_fault(shown, *known, {ANN.public})
    assert "the registrar has withdrawn this admission" in fault


# ── Identities ─────────────────────────────────────────────────────────────────────────────────


def test_an_identity_has_two_different_keys():
    assert PublicIdentity(ANNS.signing, BENS.sealing).usable
    assert not PublicIdentity(ANNS.sealing, ANNS.sealing).usable
    assert not PublicIdentity(ANNS.signing, bytes(32)).usable


NEUTRAL = bytes([1]) + bytes(31)
BY_NOBODY = NEUTRAL + bytes(32)
"""A signature without a key: R is the neutral element, S is 0."""


@pytest.mark.parametrize("weak", [NEUTRAL, bytes([1]) + bytes(30) + bytes([128]), bytes(32)])
def test_a_key_that_anybody_can_sign_for_is_no_identity(weak):
    """Whoever had a folder could sign in the name of its coordinator."""
    nobody = PublicIdentity(weak, ANNS.sealing)
    assert not nobody.usable
    assert not nobody.verify(BY_NOBODY, b"anything")


def test_a_registrar_whom_anybody_can_sign_for_admits_and_withdraws_nobody():
    """Everybody was the registrar of a study that named such a key."""
    assert not admitted(NEUTRAL, STUDY, ANN.public, BY_NOBODY)
    shown = Pass(ANN.public, BY_NOBODY, ANN.prove(RUN, ANNS))
    assert "has not admitted it" in pass_fault(shown, NEUTRAL, STUDY, RUN, ANNS)
    listed = Withdrawals(STUDY, 2**63, (ANN.public,), BY_NOBODY)
    assert "has not signed it" in withdrawals_fault(listed, NEUTRAL, STUDY)


def test_a_fingerprint_is_of_both_keys():
    assert ANNS.fingerprint == "8848a144389330ae59a71267966dce73"
    for other in (
        PublicIdentity(BENS.signing, ANNS.sealing),
        PublicIdentity(ANNS.signing, BENS.sealing),
    ):
        assert other.fingerprint != ANNS.fingerprint


# ── Trees, masks, graphs ───────────────────────────────────────────────────────────────────────


def test_roots_are_these_hashes():
    roots = [MerkleTree([b"a", b"b", b"c"][:count]).root.hex()[:32] for count in (1, 2, 3)]
    assert roots == [
        "a94fe96b1c38a1bdfb72939d6cd46bc3",
        "4c18b87ee623a3dfbcfefc3b002d3334",
        "7d36854b375536f2bb96cbc87f128250",
    ]


def test_the_last_of_three_does_not_pass_for_the_second_of_two():
    """The third leaf has no partner and moves up, where it is a right child as the second is."""
    tree = MerkleTree([b"a", b"b", b"c"])
    proof = tree.proof([2])
    assert root_of({2: b"c"}, 3, proof) == tree.root
    assert root_of({1: b"c"}, 2, proof) != tree.root


def test_masks_are_these():
    assert seed_of(SALT).hex() == "2962eb5ab17ac6eafc6164963d54c2d4"
    assert derive(b"agreed", b"sum 1", 16).hex() == "6d987a8f8926065e920aed157ddba78e"
    assert mask(bytes(16), 4, 32).tobytes().hex() == "66e94bd4ef8a2c3b884cfa59ca342b2e"


def test_the_mask_of_ones_own_follows_from_ones_secret():
    assert seed_of(SALT) != seed_of(OTHER_SALT)


def test_the_graph_of_a_seed_is_this():
    assert HararyGraph(b"seed", 12, 4).all_neighbours()[0].tolist() == [5, 6, 9, 8]
