"""Asks one node for accounts, tokens and prices. Called by the reader, the drafts and the treasurer of TRON."""

from typing import Annotated, Final

import msgspec

from chains.base import ProviderError, check_units
from chains.net.rest import RestError, RestNode
from chains.tron import wire
from core.catalogue.catalogue import Pair

# The paths for the state after the newest block, and after the newest irreversible one.
NEWEST: Final = "wallet"
SOLID: Final = "walletsolidity"
# No call takes more energy and no price is higher; a node that reports more is not believed.
ENERGY_MAX: Final = 10**9
PRICE_MAX: Final = 10**9
# The selector of balanceOf(address).
BALANCE_SELECTOR: Final = "70a08231"


class Key(msgspec.Struct):
    """A key that may sign, with its weight."""

    address: str
    weight: int = 0


class Permission(msgspec.Struct):
    """The keys that may sign for an account, and the weight that they need."""

    threshold: int = 0
    keys: list[Key] = []

    def is_alone(self, address: str) -> bool:
        """Return True if only the address's own key may sign."""
        mine = [key for key in self.keys if key.address.lower() == address]
        return len(self.keys) == len(mine) == 1 and 0 < self.threshold <= mine[0].weight


class Account(msgspec.Struct):
    """An account. An empty address means that it was never activated."""

    address: str = ""
    balance: wire.Sun = 0
    type: str = ""
    owner_permission: Permission | None = None
    active_permission: list[Permission] = []

    @property
    def is_contract(self) -> bool:
        """Return True if the account is a contract."""
        return self.type == "Contract"

    def is_foreign(self, address: str) -> bool:
        """Return True if another key than a stored address's own may move its coin.

        Permissions that the node leaves out are the initial ones: the account's own key.
        """
        own = wire.asked(address)
        permissions = [*self.active_permission, *([self.owner_permission] if self.owner_permission else [])]
        return not all(permission.is_alone(own) for permission in permissions)


class Resource(msgspec.Struct):
    """The resources that an account may use without a fee."""

    energy_max: int = msgspec.field(default=0, name="EnergyLimit")
    energy_used: int = msgspec.field(default=0, name="EnergyUsed")
    free_max: int = msgspec.field(default=0, name="freeNetLimit")
    free_used: int = msgspec.field(default=0, name="freeNetUsed")
    net_max: int = msgspec.field(default=0, name="NetLimit")
    net_used: int = msgspec.field(default=0, name="NetUsed")

    @property
    def energy(self) -> int:
        """Return the unused part of the staked energy."""
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
    """The chain's prices, in sun."""

    energy: int
    byte: int
    # The whole price of a new account.
    activation: int
    # Free bytes of an account each day.
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
    """The result of a trial call."""

    outcome: _Outcome = msgspec.field(default_factory=_Outcome, name="result")
    energy_used: Annotated[int, msgspec.Meta(ge=0, le=ENERGY_MAX)] = 0
    constant_result: list[str] = []
    # None if the node does not show logs.
    logs: list[wire.Log] | None = None
    transaction: _Tried = msgspec.field(default_factory=_Tried)

    @property
    def refusal(self) -> str:
        """Return the reason why the call would have no effect; "" if it would have one."""
        if (
            self.outcome.result
            and not self.outcome.message
            and all(each.ret != "FAILED" for each in self.transaction.ret)
        ):
            return ""
        return f"the contract refuses it: {self.outcome.code} {wire.words(self.outcome.message)}"[:200]


def account(node: RestNode, address: str, where: str = NEWEST) -> Account:
    """Return an account."""
    answer = node.ask(f"{where}/getaccount", {"address": wire.asked(address), "visible": False}, Account)
    if answer.address and wire.stored(answer.address) != address:
        raise ProviderError("another account than was asked for")
    return answer


def resource(node: RestNode, address: str) -> Resource:
    """Return the free resources of an account."""
    return node.ask("wallet/getaccountresource", {"address": wire.asked(address), "visible": False}, Resource)


def prices(node: RestNode) -> Prices:
    """Return the present prices. Raises ProviderError if one is missing or impossible."""
    answer = node.ask("wallet/getchainparameters", {}, _Parameters)
    known = {entry.key: entry.value for entry in answer.entries}
    try:
        agreed = Prices(
            energy=known["getEnergyFee"],
            byte=known["getTransactionFee"],
            activation=known["getCreateNewAccountFeeInSystemContract"] + known["getCreateAccountFee"],
            free_bytes=known.get("getFreeNetLimit", 0),
        )
    except KeyError as error:
        raise ProviderError(f"the chain's parameters lack {error}") from None
    if not all(0 < price <= PRICE_MAX for price in (agreed.energy, agreed.byte, agreed.activation)):
        raise ProviderError("a price that no chain asks")
    return agreed


def call(node: RestNode, sender: str, contract: str, data: str, where: str = NEWEST) -> Call:
    """Return the result of trying a call, without sending it."""
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


def balance(node: RestNode, address: str, pair: Pair | None, where: str = NEWEST) -> int:
    """Return an address's balance of a coin, in token units. pair: None for TRX."""
    contract = None if pair is None else pair.contract
    if contract is None:
        return account(node, address, where).balance
    answer = call(node, address, contract, BALANCE_SELECTOR + wire.word(address), where)
    if answer.refusal or len(answer.constant_result) != 1:
        raise ProviderError("a token does not tell a balance")
    word = wire.data(answer.constant_result[0])
    if len(word) != wire.WORD_BYTES:
        raise ProviderError("a token's balance is no number")
    return check_units(int.from_bytes(word, "big"))
