"""Test tokens at the addresses of the real ones."""

from collections.abc import Callable

import pytest

from core.catalogue.catalogue import load_catalogue
from devstack.contracts.code import contracts
from devstack.evm.anvil import Anvil
from devstack.evm.tokens import install_token, install_tokens
from tests.peers.anvil import BUYER, HandMined, calldata

CATALOGUE = load_catalogue("development")
ETHEREUM = CATALOGUE.pairs_on("ethereum")
OTHER = "0x" + "0e" * 20


@pytest.fixture
def chain(anvil: Callable[..., Anvil]) -> HandMined:
    return HandMined(anvil("ethereum", block_time_s=None).url)


def read(chain: HandMined, contract: str, signature: str, *words: str) -> str:
    return str(chain.ask("eth_call", {"to": contract, "data": calldata(signature, *words)}, "latest"))


def balance(chain: HandMined, contract: str, holder: str) -> int:
    return int(read(chain, contract, "balanceOf(address)", holder), 16)


def test_every_token_of_the_network_has_its_decimals_and_its_holder(chain: HandMined) -> None:
    installed = install_tokens(chain.url, ETHEREUM, BUYER, 1_000_000)

    assert installed == {pair.currency: pair.contract for pair in ETHEREUM if pair.contract is not None}
    for currency, contract in installed.items():
        decimals = CATALOGUE.pairs[currency, "ethereum"].decimals
        assert int(read(chain, contract, "decimals()"), 16) == decimals
        assert balance(chain, contract, BUYER) == 1_000_000 * 10**decimals
        assert int(read(chain, contract, "totalSupply()"), 16) == 1_000_000 * 10**decimals
        assert currency.encode() in bytes.fromhex(read(chain, contract, "symbol()")[2:])


def test_installing_again_keeps_other_balances(chain: HandMined) -> None:
    usdt = install_tokens(chain.url, ETHEREUM, BUYER, 10)["USDT"]
    chain.send(usdt, data=calldata("transfer(address,uint256)", OTHER, 7))
    chain.mine()

    install_tokens(chain.url, ETHEREUM, BUYER, 10)

    assert (balance(chain, usdt, OTHER), balance(chain, usdt, BUYER)) == (7, 10_000_000)


def test_no_holder_spends_more_than_its_balance(chain: HandMined) -> None:
    usdt = install_tokens(chain.url, ETHEREUM, BUYER, 1)["USDT"]
    txid = chain.send(usdt, data=calldata("transfer(address,uint256)", OTHER, 1_000_001))
    chain.mine()

    assert chain.receipt(txid)["status"] == "0x0"
    assert balance(chain, usdt, OTHER) == 0


def test_an_allowance_is_spent_once(chain: HandMined) -> None:
    usdt = install_tokens(chain.url, ETHEREUM, BUYER, 1)["USDT"]
    chain.ask("anvil_setBalance", OTHER, hex(10**18))
    chain.send(usdt, data=calldata("approve(address,uint256)", OTHER, 5))
    chain.mine()
    spend = calldata("transferFrom(address,address,uint256)", BUYER, OTHER, 5)
    first, second = (chain.send(usdt, data=spend, sender=OTHER) for _ in range(2))
    chain.mine()

    assert (chain.receipt(first)["status"], chain.receipt(second)["status"]) == ("0x1", "0x0")
    assert balance(chain, usdt, OTHER) == 5


def test_a_networks_own_coin_is_no_token(chain: HandMined) -> None:
    with pytest.raises(ValueError, match="ETH on ethereum has no contract"):
        install_token(chain.rpc, CATALOGUE.pairs["ETH", "ethereum"], balances={})


def test_every_kind_of_token_keeps_its_storage_in_the_same_places() -> None:
    slots = {name: contract["slots"] for name, contract in contracts().items() if name.startswith("token")}

    assert len(slots) == 5
    # One of them has a variable more.
    assert all(places.items() >= slots["token"].items() for places in slots.values())
