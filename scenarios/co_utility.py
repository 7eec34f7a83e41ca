"""Is it in everybody's own interest to follow the protocol? (Paper 004, sections 2.3 and 4.)

    python scenarios/co_utility.py [--study FILE] [--people N] [--runs 40] [--seed 1] [--json]

Plays a study of collaborative k-anonymity or masking, your own or one of each that come with the
package: `mpc_rr/reproduce/co_utility.py` says how, and what is measured.
"""

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console

from mpc_rr.cli.console import progress_bar
from mpc_rr.errors import MpcRrError
from mpc_rr.reproduce.co_utility import RUNS, play
from mpc_rr.show.co_utility import show_co_utility
from mpc_rr.study.file import load_scenario

HERE = Path(__file__).parent
USUAL = (HERE / "anonymous_survey.toml", HERE / "masked_salaries.toml")


def main() -> None:
    """Play and show."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--study", type=Path, help="a study file; without it, one of each protocol")
    parser.add_argument("--people", type=int, help="how many of its people (40, or all it has)")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"how often it is played ({RUNS})")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same numbers")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead")
    options = parser.parse_args()
    files, found = USUAL if options.study is None else (options.study,), []
    for file in files:
        with progress_bar(file.stem) as bar:
            found.append(play(load_scenario(file), options.people, options.runs, options.seed, bar))
    if options.json:
        print(json.dumps([each.document() for each in found], ensure_ascii=False))
        return
    for each in found:
        show_co_utility(Console(), each)


if __name__ == "__main__":
    try:
        main()
    except MpcRrError as error:
        print(f"co_utility: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit("interrupted")
