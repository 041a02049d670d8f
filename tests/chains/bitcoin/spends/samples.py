"""A wallet on regtest, whom it pays, and coins that no chain has."""

from __future__ import annotations

from embit import bip39

from chains.bitcoin.keys import BitcoinDeriver
from chains.family import DEPOSITS, HOT
from chains.spending import Coin, Intent, KeyRef, Output
from core.catalogue.catalogue import load_catalogue

SEED = bip39.mnemonic_to_seed(" ".join(["abandon"] * 11 + ["about"]))
NETWORK = load_catalogue("development").networks["bitcoin"]
KEYS = BitcoinDeriver(SEED, "regtest")
WALLET = KeyRef(address=KEYS.address(HOT, 0), ordinal=None)
DEPOSIT_KEYS = [KeyRef(address=KEYS.address(DEPOSITS, index), ordinal=index) for index in range(5)]
CAP = 300
COIN = 10**8
# One of each kind that is paid, on regtest: keys' and scripts' hashes of the older kinds, then witness programs.
RECIPIENTS = (
    "mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn",
    "2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc",
    "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080",
    "bcrt1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qzf4jry",
    "bcrt1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqc8gma6",
)


def intent(*units: int, to: str = RECIPIENTS[2]) -> Intent:
    return Intent(wallet=WALLET, pair=None, outputs=tuple(Output(recipient=to, units=each) for each in units))


def coin(number: int, units: int, key: KeyRef = WALLET) -> Coin:
    """Return a coin that no chain has."""
    return Coin(txid=f"{number:064x}", vout=number % 3, units=units, key=key, depth=6)
