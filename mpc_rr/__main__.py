"""``python -m mpc_rr`` is ``mpc-rr``."""

import sys


def main() -> None:
    """Load the command line (which takes a moment) and run it; Ctrl-C is quiet from the start."""
    try:
        from mpc_rr import cli  # noqa: PLC0415
    except KeyboardInterrupt:
        sys.exit(130)
    cli.main()


if __name__ == "__main__":
    main()
