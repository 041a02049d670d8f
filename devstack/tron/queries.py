"""Answers queries about blocks, transactions and accounts. Called by answers.

A view is the chain as a node shows it: up to its newest block, or up to the newest solid block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from core.addresses import base58
from core.addresses.evm import keccak256
from devstack.tron.blocks import Block
from devstack.tron.rules import CREATE_FEE, CREATE_NET_FEE, NET_PRICE
from devstack.tron.shapes import Json, account_json, block_json, hexed, included_json, info_json, visible
from devstack.tron.simulator import Simulator
from devstack.tron.wire import VERSION, MalformedError, raw_of
from devstack.tron.world import FREE_NET, World

# As the whole main chain has them.
TOTAL_ENERGY: Final = 180_000_000_000
TOTAL_NET: Final = 43_200_000_000
BLOCKS_MAX: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The part of the chain that a query sees."""

    simulator: Simulator
    is_solid: bool
    # Addresses are written in base58, in questions and answers.
    is_visible: bool

    @property
    def height(self) -> int:
        """Return the height of its newest block."""
        return self.simulator.solid_height() if self.is_solid else self.simulator.head.height

    @property
    def block(self) -> Block:
        """Return its newest block."""
        return self.simulator.blocks[self.height]

    @property
    def world(self) -> World:
        """Return the state after its newest block."""
        return self.simulator.world_at(self.height)

    def address(self, asked: Json, name: str) -> bytes:
        """Return an address of a query. Raises MalformedError if it is written in the other form."""
        text = str(asked.get(name, ""))
        if not self.is_visible:
            text = base58.encode_checked(_unhexed(text))
        return raw_of(text)

    def tell(self, answer: Any) -> Any:
        """Return an answer with addresses in the query's form."""
        return visible(answer) if self.is_visible else answer


def now_block(view: View, _asked: Json) -> Json:
    """Return the newest block."""
    return block_json(view.block)


def block_by_number(view: View, asked: Json) -> Json:
    """Return a block, nothing if it does not exist yet."""
    height = int(asked["num"])
    return block_json(view.simulator.blocks[height]) if 0 <= height <= view.height else {}


def block_by(view: View, asked: Json) -> Json:
    """Return a block by its id or number, else the newest; with its transactions if the query asks for them."""
    named = str(asked.get("id_or_num", view.height))
    if named.isdecimal() and len(named) < 64:  # noqa: PLR2004  the digits of an id
        document = block_by_number(view, {"num": named})
    else:
        document = next(
            (block_json(block) for block in view.simulator.blocks[: view.height + 1] if block.id == named), {}
        )
    if str(asked.get("detail", False)).lower() != "true":
        document.pop("transactions", None)
    return document


def block_range(view: View, asked: Json) -> Json:
    """Return the blocks from one height up to, and without, another."""
    first, end = int(asked["startNum"]), min(int(asked["endNum"]), view.height + 1)
    return {"block": [block_json(block) for block in view.simulator.blocks[first : min(end, first + BLOCKS_MAX)]]}


def infos_by_number(view: View, asked: Json) -> list[Json]:
    """Return the effects of a block's transactions."""
    height = int(asked["num"])
    if not 0 <= height <= view.height:
        return []
    block = view.simulator.blocks[height]
    return [info_json(block, one) for one in block.included]


def transaction(view: View, asked: Json) -> Json:
    """Return a transaction of a block."""
    place = view.simulator.places.get(str(asked["value"]))
    if place is None or place[0] > view.height:
        return {}
    return included_json(view.simulator.blocks[place[0]].included[place[1]])


def transaction_info(view: View, asked: Json) -> Json:
    """Return the effect of a transaction."""
    place = view.simulator.places.get(str(asked["value"]))
    if place is None or place[0] > view.height:
        return {}
    block = view.simulator.blocks[place[0]]
    return info_json(block, block.included[place[1]])


def node_info(view: View, _asked: Json) -> Json:
    """Return the newest and the solid block."""
    simulator = view.simulator
    solid = simulator.blocks[simulator.solid_height()]
    return {
        "block": f"Num:{simulator.head.height},ID:{simulator.head.id}",
        "solidityBlock": f"Num:{solid.height},ID:{solid.id}",
        "beginSyncNum": 0,
        "currentConnectCount": 0,
        "configNodeInfo": {"codeVersion": VERSION},
    }


def account(view: View, asked: Json) -> Json:
    """Return an account, nothing if it was never activated."""
    address = view.address(asked, "address")
    world = view.world
    state = world.accounts.get(address)
    if state is None:
        return {}
    return account_json(address, state, balance=world.balance(address), is_contract=address in world.contracts)


def account_resource(view: View, asked: Json) -> Json:
    """Return the resources that an account may use without paying."""
    state = view.world.accounts.get(view.address(asked, "address"))
    if state is None:
        return {}
    now_ms = view.block.time_ms
    resources = {
        "freeNetUsed": state.net.left(now_ms),
        "freeNetLimit": FREE_NET,
        "EnergyUsed": state.energy.left(now_ms),
        "EnergyLimit": state.energy_limit,
        "TotalNetLimit": TOTAL_NET,
        "TotalEnergyLimit": TOTAL_ENERGY,
    }
    return {name: value for name, value in resources.items() if value}


def chain_parameters(view: View, _asked: Json) -> Json:
    """Return the prices, and the other parameters that the chain sets by vote."""
    values = {
        "getTransactionFee": NET_PRICE,
        "getCreateAccountFee": CREATE_NET_FEE,
        "getCreateNewAccountFeeInSystemContract": CREATE_FEE,
        "getCreateNewAccountBandwidthRate": 1,
        "getEnergyFee": view.simulator.world.energy_price,
        "getFreeNetLimit": FREE_NET,
        "getTotalEnergyLimit": TOTAL_ENERGY,
        "getAllowMultiSign": 1,
        "getMultiSignFee": 1_000_000,
    }
    return {"chainParameter": [{"key": key, "value": value} for key, value in values.items()]}


def contract(view: View, asked: Json) -> Json:
    """Return a smart contract."""
    address = view.address(asked, "value")
    known = view.world.contracts.get(address)
    if known is None:
        return {}
    code = view.world.machine.code(view.world.root, address)
    return {
        "name": known.name,
        "contract_address": hexed(address),
        "origin_address": hexed(address),
        "bytecode": code.hex(),
        "code_hash": keccak256(code).hex(),
        "consume_user_resource_percent": 100,
        "origin_energy_limit": 10_000_000,
        "abi": {},
    }


def _unhexed(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise MalformedError("INVALID hex String") from error
