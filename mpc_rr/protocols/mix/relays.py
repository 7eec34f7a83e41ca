"""Who the relays of a mix cascade are: drawn by public randomness, or named by the study."""

from collections.abc import Sequence

import msgspec

from mpc_rr.errors import Dropout, InputError, all_quoted, one_line, quoted
from mpc_rr.network.envelope import NAME_RULE, is_party_name
from mpc_rr.network.session import AnySession
from mpc_rr.privacy.disclosures import Caution
from mpc_rr.protocols.board.board import Board
from mpc_rr.publication.ending import Setting

FEWEST_RELAYS, MOST_RELAYS = 3, 16


class MixOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[protocol.mix]``: how many relays are drawn, or which parties they are."""

    relays: int | tuple[str, ...] = FEWEST_RELAYS

    @property
    def count(self) -> int:
        """How many relays there are."""
        return self.relays if isinstance(self.relays, int) else len(self.relays)

    def check(self, parties: int) -> None:
        """`InputError` unless there can be such a cascade."""
        if self.count < FEWEST_RELAYS:
            raise InputError(f"mix.relays: at least {FEWEST_RELAYS} relays are needed")
        if self.count > MOST_RELAYS:
            raise InputError(f"mix.relays: at most {MOST_RELAYS} relays are possible")
        if self.count > parties:
            raise InputError(f"mix.relays: {self.count} relays of {parties} parties")
        if not isinstance(self.relays, int):
            self._check_names(self.relays)

    def _check_names(self, relays: Sequence[str]) -> None:
        """They stand in the last warning before a person agrees: names, and nothing else."""
        for name in relays:
            if not is_party_name(name):
                shown = quoted(one_line(name, 60))
                raise InputError(f"mix.relays: {shown} is no party's name ({NAME_RULE})")
        if len(set(relays)) < len(relays):
            raise InputError("mix.relays: a relay is named twice")

    def cautions(self, study: Setting) -> list[Caution]:
        """Who can link values to their owners."""
        if isinstance(self.relays, int):
            text = (
                f"{self.relays} parties, drawn by chance, pass the values on. Any one honest relay "
                f"hides whose they are; all {self.relays} together could tell."
            )
            if study.registrar:
                return [Caution(text, "more relays (relays = … in [protocol.mix])")]
            text += " In this open study one person may run many parties, and so all relays."
            return [Caution(text, "more relays (relays = … in [protocol.mix]), and a registrar")]
        text = (
            f"The author of the study names the relays: {all_quoted(self.relays)}. Together they "
            "can see which values are yours."
        )
        if not study.registrar:
            text += " In this open study anyone may come under their names, the coordinator too."
        return [Caution(text, "relays drawn by chance (a number for relays), and a registrar")]

    def order(self, session: AnySession, board: Board, seed: bytes) -> list[str]:
        """Those from whom relays are taken: twice as many as are needed, drawn once for all.

        Whoever makes honest parties leave cannot go on drawing until all relays are its own.
        """
        return board.draw(session, seed, "relays")[: 2 * self.count]

    def chosen(self, board: Board, order: Sequence[str]) -> tuple[str, ...]:
        """The relays, in their order; `Dropout` if too many of them are not there."""
        if isinstance(self.relays, int):
            there = [name for name in order if name in board.present]
            if len(there) < self.relays:
                gone = [name for name in order if name not in there]
                raise Dropout(
                    f"{len(gone)} of the {len(order)} parties that were drawn as relays are gone; "
                    f"{self.relays} are needed",
                    gone,
                )
            return tuple(there[: self.relays])
        gone = [name for name in self.relays if name not in board.present]
        if gone:
            raise Dropout(f"the relay {gone[0]}, which the study names, is not there", gone)
        return self.relays
