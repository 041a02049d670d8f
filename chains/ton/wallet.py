"""Describes the wallet contract of our addresses: version 5, as its authors published it. Used by keys and messages.

An address is the hash of a contract's first code and data, so that it can receive before the contract is there. The
wallet's own first message brings both.
"""

from dataclasses import dataclass
from typing import Final

from chains.ton import boc
from chains.ton.cells import Cell
from chains.ton.slices import Builder

CODE: Final = boc.read_base64(
    "te6ccgECFAEAAoEAART/APSkE/S88sgLAQIBIAINAgFIAwQC3NAg10nBIJFbj2Mg1wsfIIIQZXh0br0hghBzaW50vbCSXwPgghBleHRuuo60gC"
    "DXIQHQdNch+kAw+kT4KPpEMFi9kVvg7UTQgQFB1yH0BYMH9A5voTGRMOGAQNchcH/bPOAxINdJgQKAuZEw4HDiEA8CASAFDAIBIAYJAgFuBwgA"
    "Ga3OdqJoQCDrkOuF/8AAGa8d9qJoQBDrkOuFj8ACAUgKCwAXsyX7UTQcdch1wsfgABGyYvtRNDXCgCAAGb5fD2omhAgKDrkPoCwBAvIOAR4g1w"
    "sfghBzaWduuvLgin8PAeaO8O2i7fshgwjXIgKDCNcjIIAg1yHTH9Mf0x/tRNDSANMfINMf0//XCgAK+QFAzPkQmiiUXwrbMeHywIffArNQB7Dy"
    "0IRRJbry4IVQNrry4Ib4I7vy0IgikvgA3gGkf8jKAMsfAc8Wye1UIJL4D95w2zzYEAP27aLt+wL0BCFukmwhjkwCIdc5MHCUIccAs44tAdcoIH"
    "YeQ2wg10nACPLgkyDXSsAC8uCTINcdBscSwgBSMLDy0InXTNc5MAGk6GwShAe78uCT10rAAPLgk+1V4tIAAcAAkVvg69csCBQgkXCWAdcsCBwS"
    "4lIQseMPINdKERITAJYB+kAB+kT4KPpEMFi68uCR7UTQgQFB1xj0BQSdf8jKAEAEgwf0U/Lgi44UA4MH9Fvy4Iwi1woAIW4Bs7Dy0JDiyFADzx"
    "YS9ADJ7VQAcjDXLAgkji0h8uCS0gDtRNDSAFETuvLQj1RQMJExnAGBAUDXIdcKAPLgjuLIygBYzxbJ7VST8sCN4gAQk1vbMeHXTNA="
)
"""The published code, wallet-contract-v5 of 2024. The tests pin its hash."""

_MAIN: Final = -239
_TEST: Final = -3
# A client's wallet in the basechain, the first of its key.
_CONTEXT: Final = 1 << 31
_WORD: Final = 32
_BASECHAIN: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StateInit:
    """The code and the data with which a contract begins."""

    code: Cell
    data: Cell

    def cell(self) -> Cell:
        """Return the cell that a message brings, and whose hash is the account's."""
        return Builder().uint(0b00110, 5).ref(self.code).ref(self.data).end()

    @property
    def address(self) -> str:
        """Return the contract's address in the basechain, in its stored form."""
        return f"{_BASECHAIN}:{self.cell().hash.hex()}"


def wallet_id(*, is_test: bool) -> int:
    """Return the number that a wallet's requests name, which differs by network so that none is repeated on another."""
    network = _TEST if is_test else _MAIN
    return (network ^ _CONTEXT) & (1 << _WORD) - 1


def wallet_state(public_key: bytes, *, is_test: bool) -> StateInit:
    """Return the first state of a key's wallet: signatures allowed, no request made, no extensions."""
    data = Builder().bit(1).uint(0, _WORD).uint(wallet_id(is_test=is_test), _WORD).raw(public_key).bit(0)
    return StateInit(code=CODE, data=data.end())
