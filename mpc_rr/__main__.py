"""``python -m mpc_rr`` is ``mpc-rr``."""

from mpc_rr.cli import main

main()
