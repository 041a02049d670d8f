"""The hash of a block proves its header, and with it the time by which payments are judged."""

from typing import Any

import msgspec
import pytest
import rlp

from chains.evm import wire
from core.addresses.evm import keccak256

EMPTY_TREE = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"
NO_UNCLES = "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347"
# Block 0 of Ethereum.
GENESIS: dict[str, Any] = {
    "hash": "0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3",
    "parentHash": "0x" + "00" * 32,
    "sha3Uncles": NO_UNCLES,
    "miner": "0x" + "00" * 20,
    "stateRoot": "0xd7f8974fb5ac78d9ac099b9ad5018bedc2ce0a72dad1827a1709da30580f0544",
    "transactionsRoot": EMPTY_TREE,
    "receiptsRoot": EMPTY_TREE,
    "logsBloom": "0x" + "00" * 256,
    "difficulty": "0x400000000",
    "number": "0x0",
    "gasLimit": "0x1388",
    "gasUsed": "0x0",
    "timestamp": "0x0",
    "extraData": "0x11bbe8db4e347b4e8c937c1c8370e4b5ed33adb3db69cbdb7a38e1e50b1b82fa",
    "mixHash": "0x" + "00" * 32,
    "nonce": "0x0000000000000042",
}
ETHEREUM = {
    "baseFeePerGas": "0x7",
    "withdrawalsRoot": EMPTY_TREE,
    "blobGasUsed": "0x0",
    "excessBlobGas": "0x60000",
    "parentBeaconBlockRoot": "0x" + "0b" * 32,
    "requestsHash": "0x" + "0c" * 32,
}
AVALANCHE = {
    "extDataHash": "0x" + "0d" * 32,
    "baseFeePerGas": "0x5d21dba00",
    "extDataGasUsed": "0x0",
    "blockGasCost": "0x0",
    "blobGasUsed": "0x0",
    "excessBlobGas": "0x0",
    "parentBeaconBlockRoot": "0x" + "00" * 32,
}
DATA = {"extDataHash", "withdrawalsRoot", "parentBeaconBlockRoot", "requestsHash"}


def proved(body: dict[str, Any]) -> bool:

    return wire.block(msgspec.convert(body, wire.Header), int(body["number"], 16)).is_proved


def forked(tail: dict[str, str]) -> dict[str, Any]:
    """Return the first block with further fields, under the hash that it then has, as an independent library says."""
    front = [_raw(name, text) for name, text in GENESIS.items() if name != "hash"]
    digest = keccak256(rlp.encode([*front, *(_raw(name, text) for name, text in tail.items())]))
    return {**GENESIS, **tail, "hash": "0x" + digest.hex()}


def _raw(name: str, text: str) -> bytes:
    is_number = name not in DATA and name in {
        *ETHEREUM, *AVALANCHE, "difficulty", "number", "gasLimit", "gasUsed", "timestamp"
    }  # fmt: skip
    number = int(text, 16) if is_number else 0
    return number.to_bytes((number.bit_length() + 7) // 8, "big") if is_number else bytes.fromhex(text[2:])


def test_the_first_block_of_ethereum_is_proved_by_its_hash() -> None:
    assert proved(GENESIS)


@pytest.mark.parametrize(
    "lie",
    [{"timestamp": "0x1"}, {"parentHash": "0x" + "01" * 32}, {"gasUsed": "0x1"}, {"miner": None}, {"nonce": "42"}],
)
def test_another_time_or_a_field_less_proves_nothing(lie: dict[str, Any]) -> None:
    assert not proved({**GENESIS, **lie})


@pytest.mark.parametrize(
    "tail",
    [dict(list(ETHEREUM.items())[:fields]) for fields in range(1, 7)]
    + [dict(list(AVALANCHE.items())[:fields]) for fields in (1, 2, 4, 7)],
)
def test_what_forks_added_is_part_of_it(tail: dict[str, str]) -> None:
    body = forked(tail)
    assert proved(body)
    assert not proved({**body, "timestamp": "0x2"})


def test_fields_that_we_do_not_know_leave_it_unproved() -> None:
    assert not proved(forked({**ETHEREUM, "blockAccessListHash": "0x0e"}) | {"blockAccessListHash": None})


@pytest.mark.parametrize("lie", [{"extraData": "11"}, {"extraData": "0x" + "11" * 56}])
def test_odd_or_long_fields_prove_nothing(lie: dict[str, Any]) -> None:
    assert not proved({**GENESIS, **lie})


def test_a_number_that_is_none_is_a_field_less() -> None:
    assert not proved({**GENESIS, "difficulty": "17179869184"})
