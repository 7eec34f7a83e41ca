"""The command line itself, and the options that several commands share."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mpc_rr import __version__

IN_ORDER_OF_USE = {
    "Try a study on one machine": ("examples", "init", "check", "run", "schema"),
    "Take part": ("answer", "ledger"),
    "Hold it on several machines": ("broker", "coordinate", "invite", "party", "host"),
    "Look at what came out": (
        "report",
        "query",
        "compute",
        "export",
        "release",
        "synthesize",
        "verify",
        "publish",
    ),
    "Randomize a file that you hold": ("randomize", "estimate"),
    "Admit each person once": ("registrar", "enrol"),
    "Plan, and compare with the papers": ("plan", "condense", "compare", "data", "reproduce"),
}
"""The commands as the help shows them: the panels, and what is in each."""


class _InOrderOfUse(TyperGroup):
    """Commands in panels of the help, in the order in which one needs them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        named = {
            name: (panel, self.commands[name])
            for panel, names in IN_ORDER_OF_USE.items()
            for name in names
        }
        for panel, command in named.values():
            command.rich_help_panel = panel  # type: ignore[attr-defined]
        ordered = {name: command for name, (_, command) in named.items()}
        self.commands = {**ordered, **self.commands}


app = typer.Typer(
    name="mpc-rr",
    cls=_InOrderOfUse,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
    # A line in this text would be a line on the screen, however wide that is.
    help="Statistics on private data without a trusted collector.\n\n"
    "Parties, each holding one private record, and a coordinator who is not given the records work "
    "together over an MQTT broker. They count exactly, and only totals are seen (exact_pairs); "
    "or each randomizes its answers, and shares and tables are estimated (rr_… and others); or "
    "they publish records in groups or under masks (collaborative_…). The study file says which; "
    "mpc-rr party STUDY --explain says who could learn what.\n\n"
    "Start with:  [bold]mpc-rr run quickstart[/], or with a file of your own: "
    "[bold]mpc-rr init people.csv[/]\n\n"
    "Exit codes: 0, all went well; 1, it failed (no broker, an aborted study, you "
    "declined, a folder that cannot be written); 2, what was given is wrong, and nothing was "
    "started; 130, interrupted.",
)

StudyFile = Annotated[
    Path,
    typer.Argument(metavar="STUDY", help="The study's TOML file, or the name of an example."),
]
_ADDRESS = (
    "The address as mpc-rr broker prints it, or mqtt://user@host:port (mqtts:// with TLS). One "
    "with a password in it is better given by the variable or as @FILE, as others can see the list "
    "of processes. "
    "Without a password you are asked for it."
)
BrokerOption = Annotated[
    str,
    typer.Option(
        "--broker",
        envvar="MPC_RR_BROKER",
        show_envvar=True,
        metavar="ADDRESS",
        help=_ADDRESS,
    ),
]
OptionalBroker = Annotated[
    str | None,
    typer.Option(
        "--broker",
        envvar="MPC_RR_BROKER",
        show_envvar=True,
        metavar="ADDRESS",
        help=_ADDRESS,
    ),
]
CaFile = Annotated[
    Path | None,
    typer.Option("--broker-ca", help="Certificate authority of an mqtts:// broker (PEM file)."),
]
DataOption = Annotated[
    Path | None,
    typer.Option("--data", help="A CSV file with the records, instead of the scenario's own data."),
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="Folder for the results (and a party's receipt); a new one, or an empty one.",
    ),
]
EverythingOption = Annotated[
    bool,
    typer.Option(
        "--everything",
        help="In the end, ask the coordinator for the transcript with all answers, and write the "
        "whole result folder to --out: to be verified, asked and computed on like its own.",
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document instead of tables.")
]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show the full traceback on errors.")]
SeedOption = Annotated[
    int | None,
    typer.Option(
        help="Simulation only: makes the run reproducible and removes all secrecy. Never use it "
        "with real records."
    ),
]
PluginOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="FILE.py",
        help="A file that defines the study's protocol (docs/own-protocol.md). It is run: use only "
        "files that you would run yourself.",
    ),
]
LanguageOption = Annotated[
    str | None,
    typer.Option(
        help="Language of labels and questions, where the study file gives several (en, de, …).",
    ),
]
StateOption = Annotated[
    Path | None,
    typer.Option(help="Folder for the privacy ledger: what was disclosed, and what draws answers."),
]
AgainOption = Annotated[
    bool,
    typer.Option(
        "--again",
        help="Take part although the ledger says that an earlier run could be compared with this "
        "one. Two results over different people can reveal someone's answers.",
    ),
]
PassOption = Annotated[
    Path | None,
    typer.Option(
        "--pass", help="Your pass, if the study has a registrar (create it with mpc-rr enrol)."
    ),
]
WithdrawalsOption = Annotated[
    Path | None,
    typer.Option(
        help="The registrar's list of withdrawn admissions (mpc-rr registrar withdrawals): people "
        "on it are refused.",
    ),
]
MaskOption = Annotated[
    list[str] | None,
    typer.Option(
        "--mask",
        metavar="ATTRIBUTE=MASK",
        help="Where the study lets you mask values: none, noise:WIDTH, swap:PERCENT, =VALUE, or "
        "first:C:MASK,MASK,… (the first that leaves everyone C candidates).",
    ),
]
CandidatesOption = Annotated[
    int | None,
    typer.Option(
        min=1, help="Widen your masks until at least this many different values could be yours."
    ),
]
LeastKOption = Annotated[
    int | None,
    typer.Option(
        "--least-k",
        min=2,
        help="Where the study hides you in a group: leave, and tell nothing confidential, if yours "
        "is smaller.",
    ),
]
ProxyOption = Annotated[
    str | None,
    typer.Option(
        "--proxy",
        metavar="socks5://HOST:PORT",
        help="Reach the broker through this proxy (Tor: socks5://127.0.0.1:9050).",
    ),
]
BudgetOption = Annotated[
    float,
    typer.Option(
        help="Decline whatever would make the total ε exceed this: of all answers and, with "
        "--state, of all studies."
    ),
]
AnswerBudgetOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]NUMBER",
        help="Decline whatever would make the ε of any one answer exceed this: in this study and, "
        "with --state, in all studies that ask the same. NAME=NUMBER is for the answer to one "
        "question alone; may be given several times.",
    ),
]
PinOption = Annotated[
    str | None,
    typer.Option(
        "--coordinator",
        metavar="FINGERPRINT",
        help="Accept only the coordinator with this fingerprint (it prints it when it starts).",
    ),
]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mpc-rr {__version__}")
        raise typer.Exit


VersionOption = Annotated[
    bool,
    typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
]
