"""Starts our node in the place of bitcoind: `python start.py -datadir=FOLDER`. Run by BitcoinNode.

It reads the same settings file, and ends at SIGTERM at once: its state is already written.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from devstack.bitcoin.facade.server import Server
from devstack.bitcoin.facade.state import State


def main(argv: list[str]) -> None:
    """Serve until the end. ValueError for arguments other than a folder."""
    name, _, folder = argv[0].partition("=")
    if name != "-datadir" or len(argv) > 1:
        raise ValueError("usage: start.py -datadir=FOLDER")
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    settings = _settings(Path(folder) / "bitcoin.conf")
    state = State(Path(folder) / "facade")
    address = settings["rpcbind"], int(settings["rpcport"])
    with Server(address, state, user=settings["rpcuser"], password=settings["rpcpassword"]) as server:
        server.serve_forever()


def _settings(path: Path) -> dict[str, str]:
    lines = path.read_text(encoding="ascii").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


if __name__ == "__main__":
    main(sys.argv[1:])
