"""A wallet that makes requests, and a jetton with its master, on a ledger. Used by the tests of this folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from chains.ton import boc, messages, requests
from chains.ton.cells import Cell
from chains.ton.jettons import Jetton
from chains.ton.slices import Builder
from chains.ton.transactions import Transaction
from chains.ton.transfers import CoinTransfer, JettonTransfer
from chains.ton.wallet import StateInit, wallet_id, wallet_state
from devstack.ton.ledger import Ledger

TON: Final = 10**9
FAUCET: Final = "0:" + "11" * 32
LIFE_S: Final = 90
# The contracts of TEP-74's example, as ton-core 0.7.1 has them.
MASTER_CODE: Final = boc.read_base64(
    "te6ccgECDQEAApwAART/APSkE/S88sgLAQIBYgIKAgLMAwkC8dkGOASS+B8ADoaYGAuNhJL4HwfSB9IBj9ABi465D9ABj9ABgBaY/pn/aiaH0AfS"
    "BqahhACqk4XUcZmpqbGyiaY4L5cCSBfSB9AGoYEGhAMGuQ/QAYEogaKCF4BQpQKBnkKAJ9ASxni2ZmZPaqcEEIPe7L7yk4XXGBQEBgHANjc3AfoA"
    "+kD4KFQSBnBUIBNUFAPIUAT6AljPFgHPFszJIsjLARL0APQAywDJ+QBwdMjLAsoHy//J0FAGxwXy4EqhA0VFyFAE+gJYzxbMzMntVAH6QDAg1wsB"
    "wwCRW+MNBQA+ghDVMnbbcIAQyMsFUAPPFiL6AhLLassfyz/JgEL7AAGmghAsdrlzUnC64wI1NzcjwAOOGjNQNccF8uBJA/pAMFnIUAT6AljPFszM"
    "ye1U4DUCwASOGFEkxwXy4EnUMEMAyFAE+gJYzxbMzMntVOBfBYQP8vAHAf42XwOCCJiWgBWgFbzy4EsC+kDTADCVyCHPFsmRbeKCENFzVABwgBjI"
    "ywVQBc8WJPoCFMtqE8sfFMs/I/pEMHC6jjP4KEQDcFQgE1QUA8hQBPoCWM8WAc8WzMkiyMsBEvQA9ADLAMn5AHB0yMsCygfL/8nQzxaWbCJwAcsB"
    "4vQACAAKyYBA+wAAk7XwUIgG4KhAJqgoB5CgCfQEsZ4sA54tmZJFkZYCJegB6AGWAZJB8gDg6ZGWBZQPl/+ToO8AMZGWCrGeLKAJ9AQnltYlmZmS"
    "4/YBAgN6YAsMAH2tvPaiaH0AfSBqahg2GPwUALgqEAmqCgHkKAJ9ASxniwDni2ZkkWRlgIl6AHoAZYBk/IA4OmRlgWUD5f/k6EAAH68W9qJofQB9"
    "IGpqGD+qkEA="
)
WALLET_CODE: Final = boc.read_base64(
    "te6ccgECEQEAAyMAART/APSkE/S88sgLAQIBYgIQAgLMAwYCAdQEBQDDCDHAJJfBOAB0NMDAXGwlRNfA/AM4PpA+kAx+gAxcdch+gAx+gAwc6m0A"
    "ALTH4IQD4p+pVIgupUxNFnwCeCCEBeNRRlSILqWMUREA/AK4DWCEFlfB7y6k1nwC+BfBIQP8vCAAET6RDBwuvLhTYAIBIAcPAgEgCAoB8VA9M/+g"
    "D6QCHwAe1E0PoA+kD6QNQwUTahUirHBfLiwSjC//LiwlQ0QnBUIBNUFAPIUAT6AljPFgHPFszJIsjLARL0APQAywDJIPkAcHTIywLKB8v/ydAE+k"
    "D0BDH6ACDXScIA8uLEd4AYyMsFUAjPFnD6AhfLaxPMgJAJ6CEBeNRRnIyx8Zyz9QB/oCIs8WUAbPFiX6AlADzxbJUAXMI5FykXHiUAioE6CCCcnD"
    "gKAUvPLixQTJgED7ABAjyFAE+gJYzxYBzxbMye1UAgEgCw4C9ztRND6APpA+kDUMAjTP/oAUVGgBfpA+kBTW8cFVHNtcFQgE1QUA8hQBPoCWM8WA"
    "c8WzMkiyMsBEvQA9ADLAMn5AHB0yMsCygfL/8nQUA3HBRyx8uLDCvoAUaihggiYloBmtgihggiYloCgGKEnlxBJEDg3XwTjDSXXCwGAMDQBwUnmg"
    "GKGCEHNi0JzIyx9SMMs/WPoCUAfPFlAHzxbJcYAQyMsFJM8WUAb6AhXLahTMyXH7ABAkECMAfMMAI8IAsI4hghDVMnbbcIAQyMsFUAjPFlAE+gIW"
    "y2oSyx8Syz/JcvsAkzVsIeIDyFAE+gJYzxYBzxbMye1UANc7UTQ+gD6QPpA1DAH0z/6APpAMFFRoVJJxwXy4sEnwv/y4sIFggkxLQCgFrzy4sOCE"
    "Hvdl97Iyx8Vyz9QA/oCIs8WAc8WyXGAGMjLBSTPFnD6AstqzMmAQPsAQBPIUAT6AljPFgHPFszJ7VSAAg9QBBrkPaiaH0AfSB9IGoYAmmPwQgLxq"
    "KMqRBdQQg97svvCd0JWPlxYumfmP0AGAnQKBHkKAJ9ASxniwDni2Zk9qpAAboPYF2omh9AH0gfSBqGE="
)
MINT: Final = 21
INTERNAL_TRANSFER: Final = 0x178D4519
NOTIFICATION: Final = 0x7362D09C


class Wallet:
    """A wallet of a test's own key. It counts its requests itself."""

    def __init__(self, name: str) -> None:
        self.key = Ed25519PrivateKey.from_private_bytes(sha256(name.encode()).digest())
        self.public = self.key.public_key().public_bytes_raw()
        self.state = wallet_state(self.public, is_test=False)
        self.address = self.state.address
        self.seqno = 0

    def order(self, ledger: Ledger, *cells: Cell) -> Cell:
        """Return the message from outside that has the wallet send these now."""
        return self.order_at(ledger.now, *cells)

    def order_at(self, now: int, *cells: Cell) -> Cell:
        """Return the message from outside that has the wallet send these; the first brings the wallet's code."""
        number = wallet_id(is_test=False)
        made = requests.request(number, seqno=self.seqno, valid_until=now + LIFE_S, messages=cells).cell()
        body = requests.signed(made, self.key.sign(made.hash))
        message = messages.external(self.address, body, None if self.seqno else self.state)
        self.seqno += 1
        return message

    def transfer(self, ledger: Ledger, *transfers: CoinTransfer | JettonTransfer) -> list[Transaction]:
        """Send transfers in one request."""
        return ledger.send(self.order(ledger, *(transfer.message() for transfer in transfers)))


def coin(recipient: str, units: int, *, bounce: bool = False, memo: str = "") -> CoinTransfer:
    return CoinTransfer(recipient=recipient, units=units, bounce=bounce, memo=memo)


@dataclass(frozen=True)
class Issuer:
    """A jetton whose master obeys a wallet."""

    admin: Wallet
    jetton: Jetton
    state: StateInit

    def issue(self, ledger: Ledger, recipient: str, units: int) -> list[Transaction]:
        """Have the master issue jettons to an owner."""
        return ledger.send(self.admin.order(ledger, self.mint(recipient, units)))

    def mint(self, recipient: str, units: int) -> Cell:
        """Return the admin's message to the master, which is made with the first."""
        inner = Builder().uint(INTERNAL_TRANSFER, 32).uint(0, 64).coins(units).address("").address(self.admin.address)
        body = Builder().uint(MINT, 32).uint(0, 64).address(recipient).coins(TON // 10)
        body.ref(inner.coins(0).bit(0).end())
        message = messages.internal(self.jetton.master, TON // 2, bounce=False, body=body.end())
        return with_state(message, self.state)

    def transfer(
        self, sender: Wallet, recipient: str, units: int, *, forward: int = 0, gas: int = TON // 10, memo: str = ""
    ) -> JettonTransfer:
        return JettonTransfer(
            jetton_wallet=self.jetton.wallet(sender.address),
            gas_units=gas,
            query_id=7,
            units=units,
            recipient=recipient,
            excess_to=sender.address,
            forward_units=forward,
            memo=memo,
        )


def issuer(admin: Wallet, name: str = "usd") -> Issuer:
    """Return a jetton; its name is a part of the master's state and so of its address."""
    content = Builder().uint(1, 8).raw(name.encode()).end()
    data = Builder().coins(0).address(admin.address).ref(content).ref(WALLET_CODE).end()
    state = StateInit(code=MASTER_CODE, data=data)
    return Issuer(admin, Jetton(master=state.address, wallet_code=WALLET_CODE, form="plain"), state)


def with_state(message: Cell, state: StateInit) -> Cell:
    """Return a contract's message that makes its recipient."""
    read = messages.read(message)
    head = Builder().uint(0b01, 2).bit(read.bounce).bit(0).address(read.sender).address(read.recipient)
    head.coins(read.units).bit(0).coins(0).coins(0).uint(0, 96).uint(0b11, 2).ref(state.cell())
    return head.bit(1).ref(read.body).end()


def at(transactions: Sequence[Transaction], address: str) -> list[Transaction]:
    """Return those of one account."""
    return [transaction for transaction in transactions if transaction.address == address]
