"""What commands do with a result in the end."""

from collections.abc import Callable
from typing import Any

from mpc_rr.console import print_json
from mpc_rr.errors import ResultsError


def written_or_printed(document: dict[str, Any], write: Callable[[], None]) -> None:
    """Write results; if that fails print them, so that nothing is lost."""
    try:
        write()
    except ResultsError as error:
        print_json(document)
        raise ResultsError(f"{error}; result.json was printed instead") from None
