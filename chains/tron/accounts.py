"""Asks one node for accounts, tokens and prices. Called by the reader, the drafts and the treasurer of TRON."""

from typing import Annotated, Final

import msgspec

from chains.base import ProviderError, check_units
from chains.net.rest import RestError, RestNode
from chains.tron import wire
from core.catalogue.catalogue import Pair

# Where nodes tell of the newest block, and where of the newest that is irreversible.
NEWEST: Final = "wallet"
SOLID: Final = "walletsolidity"
# More energy no call may take, and more sun no chain asks for a unit of anything: who tells of it cannot be asked.
ENERGY_MAX: Final = 10**9
PRICE_MAX: Final = 10**9
# Of what asks a token for a holder's balance.
BALANCE_SELECTOR: Final = "70a08231"


class Key(msgspec.Struct):
    """One of those who may sign."""

    address: str
    weight: int = 0


class Permission(msgspec.Struct):
    """Who may sign for an account, and how much weight it takes."""

    threshold: int = 0
    keys: list[Key] = []

    def is_alone(self, address: str) -> bool:
        """Return whether one key alone may sign, the address's own."""
        mine = [key for key in self.keys if key.address.lower() == address]
        return len(self.keys) == len(mine) == 1 and 0 < self.threshold <= mine[0].weight


class Account(msgspec.Struct):
    """An account; one without an address was never activated."""

    address: str = ""
    balance: wire.Sun = 0
    type: str = ""
    owner_permission: Permission | None = None
    active_permission: list[Permission] = []

    @property
    def is_contract(self) -> bool:
        """Return whether it is a contract's."""
        return self.type == "Contract"

    def is_foreign(self, address: str) -> bool:
        """Return whether anybody but a stored address's own key may move what is there.

        What the node leaves out is what every account has at first: its own key.
        """
        own = wire.asked(address)
        told = [*self.active_permission, *([self.owner_permission] if self.owner_permission else [])]
        return not all(permission.is_alone(own) for permission in told)


class Resource(msgspec.Struct):
    """What an account may use without paying for it."""

    energy_max: int = msgspec.field(default=0, name="EnergyLimit")
    energy_used: int = msgspec.field(default=0, name="EnergyUsed")
    free_max: int = msgspec.field(default=0, name="freeNetLimit")
    free_used: int = msgspec.field(default=0, name="freeNetUsed")
    net_max: int = msgspec.field(default=0, name="NetLimit")
    net_used: int = msgspec.field(default=0, name="NetUsed")

    @property
    def energy(self) -> int:
        """Return the energy that is left of what was staked for."""
        return max(0, self.energy_max - self.energy_used)

    @property
    def bytes(self) -> int:
        """Return the larger of the two allowances of bandwidth: one transaction uses one of them."""
        return max(0, self.free_max - self.free_used, self.net_max - self.net_used)


class _Entry(msgspec.Struct):
    key: str
    value: int = 0


class _Parameters(msgspec.Struct):
    entries: list[_Entry] = msgspec.field(name="chainParameter")


class Prices(msgspec.Struct, frozen=True):
    """What the chain asks, in sun."""

    energy: int
    byte: int
    # An account that there was not before, in all.
    activation: int
    # Bytes that an account has free each day.
    free_bytes: int


class _Outcome(msgspec.Struct):
    result: bool = False
    code: str = ""
    message: str = ""


class _Ret(msgspec.Struct):
    ret: str = ""


class _Tried(msgspec.Struct):
    ret: list[_Ret] = []


class Call(msgspec.Struct):
    """What a call would do."""

    outcome: _Outcome = msgspec.field(default_factory=_Outcome, name="result")
    energy_used: Annotated[int, msgspec.Meta(ge=0, le=ENERGY_MAX)] = 0
    constant_result: list[str] = []
    # None where the node does not tell them.
    logs: list[wire.Log] | None = None
    transaction: _Tried = msgspec.field(default_factory=_Tried)

    @property
    def refusal(self) -> str:
        """Return why it would have no effect; "" where it would have one."""
        if (
            self.outcome.result
            and not self.outcome.message
            and all(each.ret != "FAILED" for each in self.transaction.ret)
        ):
            return ""
        return f"the contract refuses it: {self.outcome.code} {wire.words(self.outcome.message)}"[:200]


def account(node: RestNode, address: str, where: str = NEWEST) -> Account:
    """Return an account."""
    found = node.ask(f"{where}/getaccount", {"address": wire.asked(address), "visible": False}, Account)
    if found.address and wire.stored(found.address) != address:
        raise ProviderError("another account than was asked for")
    return found


def resource(node: RestNode, address: str) -> Resource:
    """Return what an account may use for nothing."""
    return node.ask("wallet/getaccountresource", {"address": wire.asked(address), "visible": False}, Resource)


def prices(node: RestNode) -> Prices:
    """Return today's prices. ProviderError where one of them is not told, or is none."""
    told = node.ask("wallet/getchainparameters", {}, _Parameters)
    known = {entry.key: entry.value for entry in told.entries}
    try:
        found = Prices(
            energy=known["getEnergyFee"],
            byte=known["getTransactionFee"],
            activation=known["getCreateNewAccountFeeInSystemContract"] + known["getCreateAccountFee"],
            free_bytes=known.get("getFreeNetLimit", 0),
        )
    except KeyError as error:
        raise ProviderError(f"the chain's parameters lack {error}") from None
    if not all(0 < price <= PRICE_MAX for price in (found.energy, found.byte, found.activation)):
        raise ProviderError("a price that no chain asks")
    return found


def call(node: RestNode, sender: str, contract: str, data: str, where: str = NEWEST) -> Call:
    """Try a call, which changes nothing."""
    question = {
        "owner_address": wire.asked(sender),
        "contract_address": wire.asked(contract),
        "data": data,
        "visible": False,
    }
    try:
        return node.ask(f"{where}/triggerconstantcontract", question, Call)
    except RestError as error:
        if "REVERT" in error.text.upper():
            return Call(outcome=_Outcome(message=error.text))
        raise


def held(node: RestNode, address: str, pair: Pair | None, where: str = NEWEST) -> int:
    """Return what an address holds of a coin, in token units; None for TRX."""
    contract = None if pair is None else pair.contract
    if contract is None:
        return account(node, address, where).balance
    told = call(node, address, contract, BALANCE_SELECTOR + wire.word(address), where)
    if told.refusal or len(told.constant_result) != 1:
        raise ProviderError("a token does not tell a balance")
    word = wire.data(told.constant_result[0])
    if len(word) != wire.WORD_BYTES:
        raise ProviderError("a token's balance is no number")
    return check_units(int.from_bytes(word, "big"))
