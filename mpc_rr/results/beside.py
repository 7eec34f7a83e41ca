"""What stands beside the truth: of releases of records, worked out again from the transcript."""

from collections.abc import Sequence

from mpc_rr.publication.parts import Listing
from mpc_rr.results.folder import ResultFolder
from mpc_rr.results.verification import replay
from mpc_rr.schema import Record
from mpc_rr.study.file import party_names

RELEASING = ("collaborative_k_anonymity", "collaborative_masking")


def listings_beside_truth(folder: ResultFolder, records: Sequence[Record]) -> tuple[Listing, ...]:
    """Of a simulation, in which the parties are called after the rows of their records."""
    if not folder.done or folder.file.protocol.name not in RELEASING:
        return ()
    names = party_names(folder.definition.parties.count)
    return replay(folder).ending.beside_truth(dict(zip(names, records, strict=False)))
