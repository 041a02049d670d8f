"""Building, signing and sending EVM transfers, and the price of gas."""

from collections.abc import Iterator
from typing import Any

import pytest

from chains.base import ProviderError
from chains.evm.spends.gas import AbsurdFeeError, GasPrice, gas_price
from chains.evm.spends.terms import gas_offer
from chains.evm.spends.tx import plan_spend, send_transfer, sign_spend, signing_with
from chains.net.json_rpc import JsonRpc, RpcError
from core.addresses.evm import keccak256
from devstack.evm.tokens import install_token
from tests.chains.conftest import OURS, Chain
from tests.peers.anvil import BUYER, BUYER_KEY
from tests.peers.json_rpc_node import JsonRpcNode

GWEI = 10**9
FEE = gas_offer(gas_limit=21_000, price_units=21 * GWEI, tip_units=GWEI)


def test_calldata_is_the_erc20_transfer() -> None:
    spend = plan_spend(to=OURS, units=255, contract="0x" + "cc" * 20)

    assert spend.data == "0xa9059cbb" + "0" * 24 + "a1" * 20 + "0" * 62 + "ff"
    assert (spend.to, spend.value_wei) == ("0x" + "cc" * 20, 0)


@pytest.mark.parametrize("contract", [None, "0x" + "cc" * 20])
def test_a_recipient_that_is_no_address_is_refused(contract: str | None) -> None:
    with pytest.raises(ProviderError, match="not an address"):
        plan_spend(to="0x1234", units=1, contract=contract)


def test_signing_again_gives_the_same_bytes() -> None:
    spend = plan_spend(to=OURS, units=1, contract=None)
    first, second = (sign_spend(spend, signing_with(BUYER_KEY), chain_id=1, nonce=0, offer=FEE) for _ in range(2))

    assert first == second
    assert first.raw.startswith(b"\x02")


MORE_GAS = gas_offer(**FEE.terms | {"gas_limit": 21_001})


@pytest.mark.parametrize("change", [{"chain_id": 2}, {"nonce": 1}, {"offer": MORE_GAS}])
def test_every_term_is_signed(change: dict[str, Any]) -> None:
    spend = plan_spend(to=OURS, units=1, contract=None)
    terms: dict[str, Any] = {"chain_id": 1, "nonce": 0, "offer": FEE}

    assert sign_spend(spend, signing_with(BUYER_KEY), **terms) != sign_spend(
        spend, signing_with(BUYER_KEY), **(terms | change)
    )


@pytest.mark.parametrize(
    ("contract", "tip_wei", "txid"),
    [
        (None, GWEI, "0xbed454206b65566b7599e94acff642152f450fe8449a000cd1e45310b275df9f"),
        (None, 20 * GWEI, "0xe3d53d793b2b6a37240304d129edda57599453bf824d806a68c36fbbdccf7351"),
        ("0x" + "cc" * 20, GWEI, "0x717220cd03b448668a49adb471a204f28a7eeda36b2bfafd86589fdfd427b238"),
        ("0x" + "cc" * 20, 20 * GWEI, "0x36d6b6ba2b738c77a778de0c7fe79256c326d6ce39462adfef848dc5f5072ca0"),
    ],
)
def test_signing_is_deterministic(contract: str | None, tip_wei: int, txid: str) -> None:
    """A spend that is signed again after an update has to be the one that is on its way already."""
    fee = gas_offer(gas_limit=60_000, price_units=20 * GWEI, tip_units=tip_wei)
    spend = plan_spend(to=OURS, units=255, contract=contract)
    signed = sign_spend(spend, signing_with("0x" + "11" * 32), chain_id=56, nonce=7, offer=fee)

    assert (signed.txid, "0x" + keccak256(signed.raw).hex()) == (txid, txid)


def test_coin_arrives(chain: Chain) -> None:
    txid = send_transfer(chain.node.rpc, BUYER_KEY, to=OURS, units=10**18)

    [deposit] = chain.scan(chain.node.mine()).transfers
    assert (deposit.txid, deposit.sender, deposit.units) == (txid, BUYER, 10**18)


@pytest.mark.parametrize("code", ["token", "token_no_return"])
def test_a_token_arrives(chain: Chain, code: str) -> None:
    install_token(chain.node.rpc, chain.pair("USDT"), balances={BUYER: 10**12}, code=code)
    txid = send_transfer(chain.node.rpc, BUYER_KEY, to=OURS, units=77, contract=chain.contract("USDT"))

    [deposit] = chain.scan(chain.node.mine()).transfers
    assert (deposit.txid, deposit.sender, deposit.units) == (txid, BUYER, 77)


def test_transfers_that_wait_together_take_the_next_nonces(chain: Chain) -> None:
    for units in (1, 2, 3):
        send_transfer(chain.node.rpc, BUYER_KEY, to=OURS, units=units)

    assert [units for _, _, units in chain.transfers()] == [1, 2, 3]


def test_a_transfer_that_must_fail_is_not_sent(chain: Chain) -> None:
    with pytest.raises(RpcError):
        send_transfer(chain.node.rpc, BUYER_KEY, to=OURS, units=10**30, contract=chain.contract("USDT"))
    assert chain.node.ask("eth_getTransactionCount", BUYER, "pending") == "0x0"


@pytest.fixture
def node() -> Iterator[JsonRpcNode]:
    answers = {
        "eth_chainId": "0x1",
        "eth_getTransactionCount": "0x0",
        "eth_estimateGas": "0x5208",
        "eth_feeHistory": {"baseFeePerGas": [hex(GWEI), hex(2 * GWEI)], "reward": [["0x1"], [hex(3 * GWEI)], ["0x2"]]},
    }
    with JsonRpcNode(answers) as node:
        yield node


def client(node: JsonRpcNode) -> JsonRpc:
    return JsonRpc(node.url, timeout_s=5)


def test_the_price_follows_the_next_base_fee_and_a_middling_tip(node: JsonRpcNode) -> None:
    node.answers["eth_feeHistory"] = {
        "baseFeePerGas": [hex(GWEI), hex(2 * GWEI)],
        "reward": [[hex(GWEI)], [hex(9 * GWEI)], [hex(3 * GWEI)]],
    }
    price = gas_price(client(node))

    assert price == GasPrice(base_wei=2 * GWEI, tip_wei=3 * GWEI)
    assert price.max_wei == 7 * GWEI
    assert price.expected_wei == 5 * GWEI + GWEI // 2


@pytest.mark.parametrize("reward", [None, [], [["0x0"], ["0x1"], ["0x2"]]])
def test_a_tip_is_never_below_what_nodes_relay(node: JsonRpcNode, reward: object) -> None:
    node.answers["eth_feeHistory"] = {"baseFeePerGas": ["0x1"], "reward": reward}

    assert gas_price(client(node)).tip_wei == 10**8


@pytest.mark.parametrize(
    ("base_wei", "tip_wei"), [(1_000 * GWEI, GWEI), (GWEI, 2_000 * GWEI), (10**30, 0)], ids=["base", "tip", "both"]
)
def test_an_absurd_price_is_refused(node: JsonRpcNode, base_wei: int, tip_wei: int) -> None:
    node.answers["eth_feeHistory"] = {"baseFeePerGas": [hex(base_wei)], "reward": [[hex(tip_wei)]]}

    with pytest.raises(AbsurdFeeError):
        gas_price(client(node))


@pytest.mark.parametrize("history", [{"baseFeePerGas": []}, {"baseFeePerGas": ["1"]}, {}, "0x1"])
def test_an_invalid_fee_history_is_refused(node: JsonRpcNode, history: object) -> None:
    node.answers["eth_feeHistory"] = history

    with pytest.raises(ProviderError):
        gas_price(client(node))


def test_absurd_gas_is_refused_before_anything_is_sent(node: JsonRpcNode) -> None:
    node.answers["eth_estimateGas"] = hex(10**7)

    with pytest.raises(AbsurdFeeError, match="gas for one transfer"):
        send_transfer(client(node), BUYER_KEY, to=OURS, units=1)
    assert "eth_sendRawTransaction" not in node.asked


def test_a_node_that_returns_another_id_is_not_believed(node: JsonRpcNode) -> None:
    node.answers["eth_sendRawTransaction"] = "0x" + "de" * 32

    with pytest.raises(ProviderError, match="another transaction's id"):
        send_transfer(client(node), BUYER_KEY, to=OURS, units=1)
