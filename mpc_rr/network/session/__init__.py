"""The session: what a protocol sees of the network.

A protocol is a coroutine that awaits only its session and draws only from ``session.rng``. Four
kinds of round are enough for all of them, each costing a party one message up and one down:

* ``exchange``: every party writes to every other party, privately. The coordinator routes sealed
  parcels it cannot read (`CoordinatorSession.route`).
* ``publish``: every party writes to everyone, publicly. The coordinator collects the signed
  messages and hands all of them to all (`CoordinatorSession.relay`).
* ``report``: every party writes publicly to the coordinator, which announces one message to all
  (`CoordinatorSession.gather` and ``announce``). Whoever stays silent is left out, no more.
* ``confide``: every party writes to the coordinator alone, which publishes only what it makes of it
  (`CoordinatorSession.confided` and ``announce_made``). Nobody else can check how it was made.

Words that a session has for itself:

==================== ==============================================================================
``told``             what the coordinator writes to one party (`CoordinatorSession.hand_out`)
``hear``             what it announces to all
``told_with_proof``  the same as ``told``, with the signed bytes, to show to others
``confide``          write to the coordinator alone, sealed
``once``             draw something from the secret in the person's ledger: always the same
``shared``           what follows from public messages, worked out once for all parties of a process
``sub``              the session of a sub-protocol, or of one of several equal rounds
==================== ==============================================================================
"""

from mpc_rr.network.mailbox import Proof, Watched
from mpc_rr.network.session.base import Check, Limits
from mpc_rr.network.session.coordinator import CoordinatorSession, Gathered, check_enough
from mpc_rr.network.session.party import PartySession, Person

AnySession = PartySession | CoordinatorSession
"""What both roles compute in the same way takes either."""

__all__ = [
    "AnySession",
    "Check",
    "CoordinatorSession",
    "Gathered",
    "Limits",
    "PartySession",
    "Person",
    "Proof",
    "Watched",
    "check_enough",
]
