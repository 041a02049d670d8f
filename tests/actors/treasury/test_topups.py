"""Top-ups of the hot wallet, and our own moves as a scan sees them. On a real node."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from core.addresses.evm import checksum_evm
from devstack.evm.anvil import Anvil
from models.db.base import execute
from models.ledger.ledger import CUSTODY, EQUITY, GATEWAY, Account
from models.treasury import addresses
from tests.actors.scan.world import ETHER, FORWARDER, World
from tests.models.ledger.figures import net_of
from tests.models.spends import by_hand
from tests.models.treasury.builders import COLD, HOT, pin_hot, spend, topup_rows
from tests.peers.anvil import BUYER, calldata

EQUITY_ETH = Account(GATEWAY, EQUITY, "ETH")
CUSTODY_ETH = Account(GATEWAY, CUSTODY, "ETH", "ethereum")


@pytest.fixture
def world(database: str, anvil: Callable[..., Anvil]) -> Iterator[World]:
    with World(database, anvil).served_by() as made:
        pin_hot()
        yield made
        made.assert_sound()


def send(world: World, to: str, units: int, *, currency: str = "ETH") -> str:
    txid, raw = world.signed(to, units, currency=currency)
    assert world.node.ask("eth_sendRawTransaction", raw) == txid
    return txid


def mature(world: World) -> None:
    world.advance(world.network.maturity - 1)
    # A development node calls a block final only two epochs later.
    execute("UPDATE chain_cursors SET final_height = height")
    world.poll()


def include(world: World, spend_id: object, height: int, *, fee: int = 0) -> None:
    """Note that a spend is in a block, with effect."""
    block_hash = world.node.ask("eth_getBlockByNumber", hex(height), False)["hash"]
    by_hand.change(
        "state = 'mined', mined_txid = 'known', mined_height = %s, mined_hash = %s, is_success = true,"
        " effect = 'exact', chain_fee_units = %s",
        "id = %s",
        (height, block_hash, fee, spend_id),
    )


def test_a_transfer_to_the_hot_wallet_is_booked_as_the_gateways_own_at_maturity(world: World) -> None:
    txid = send(world, HOT, 5 * ETHER)
    send(world, HOT, 7_000_000, currency="USDT")
    world.advance()
    assert topup_rows("currency", "status") == [("ETH", "pending"), ("USDT", "pending")]
    assert net_of(EQUITY_ETH) == 0

    mature(world)

    assert topup_rows("txid", "units", "status", "origin", "sender")[0] == (
        txid,
        5 * ETHER,
        "booked",
        "transfer",
        BUYER,
    )
    assert (net_of(EQUITY_ETH), net_of(CUSTODY_ETH)) == (5 * ETHER, -5 * ETHER)
    assert net_of(Account(GATEWAY, EQUITY, "USDT")) == 7 * 10**18
    world.poll(3)
    assert net_of(EQUITY_ETH) == 5 * ETHER
    assert world.deposits() == []


def test_a_top_up_that_a_reorg_takes_is_reversed_and_may_return(world: World) -> None:
    txid, raw = world.signed(HOT, ETHER, currency="ETH")
    world.node.ask("eth_sendRawTransaction", raw)
    world.mine()
    mature(world)
    assert net_of(EQUITY_ETH) == ETHER

    world.reorg(world.network.maturity + 1)
    world.advance()
    assert topup_rows("status", "round") == [("reversed", 1)]
    assert (net_of(EQUITY_ETH), net_of(CUSTODY_ETH)) == (0, 0)

    world.node.ask("eth_sendRawTransaction", raw)
    world.mine()
    mature(world)
    assert topup_rows("txid", "status", "round") == [(txid, "booked", 2)]
    assert net_of(EQUITY_ETH) == ETHER


def test_an_operators_transfer_by_the_cold_address_is_booked_since_no_books_had_it(world: World) -> None:
    assert addresses.set_cold("ethereum", COLD)
    world.node.ask("anvil_setBalance", COLD, hex(10 * ETHER))
    world.node.send(HOT, value=3 * ETHER, sender=COLD)
    world.mine()
    mature(world)

    assert topup_rows() == [(3 * ETHER, "booked", "cold")]
    assert (net_of(EQUITY_ETH), net_of(CUSTODY_ETH)) == (3 * ETHER, -3 * ETHER)
    world.reorg(world.network.maturity + 1)
    world.advance()
    assert (net_of(EQUITY_ETH), net_of(CUSTODY_ETH)) == (0, 0)


def test_a_second_reading_finds_a_top_up_that_the_first_missed(world: World) -> None:
    world.providers[0].hide_logs()
    send(world, HOT, 7_000_000, currency="USDT")
    world.mine()
    world.advance(8)
    assert topup_rows() == []

    world.providers[0].lies.clear()
    world.rescan()
    assert topup_rows("units", "currency") == [(7 * 10**18, "USDT")]


def test_gas_for_a_deposit_address_does_not_pay_its_invoice(world: World) -> None:
    mine = world.coin_invoice()
    address = mine.address.lower()
    txid = send(world, address, ETHER)
    gas = spend(recipient=address, sender=BUYER, token_units=ETHER, txid=txid)
    height = world.mine()
    world.catch_up()

    # Its block is not noted: the balance is above the deposits, but not new.
    world.probe()
    assert world.deposits() == []

    include(world, gas, height)
    world.advance(2)
    world.probe()
    world.rescan()

    assert world.deposits() == []
    assert world.status(mine) == "check"


def test_coin_beyond_the_gas_in_a_payment_still_counts(world: World) -> None:
    mine = world.coin_invoice()
    address = mine.address.lower()
    gas = spend(recipient=address, sender=BUYER, token_units=ETHER, txid=send(world, address, ETHER))
    height = world.mine()
    include(world, gas, height)
    world.pay_by_contract(mine, ETHER)
    world.confirm_sent()
    world.probe()
    world.settle(mine)

    assert world.deposits("amount_units", "ordinal") == [(ETHER, "trace:0")]
    assert world.status(mine) == "paid"


def test_a_payout_that_a_contract_passes_on_to_an_invoice_pays_it(world: World) -> None:
    mine = world.coin_invoice()
    txid = world.node.send(FORWARDER, value=ETHER, data=calldata("forward(address)", mine.address.lower()))
    world._nonce += 1
    height = world.mine()
    out = spend(recipient=FORWARDER, sender=BUYER, token_units=ETHER, txid=txid)
    include(world, out, height)
    world.confirm()
    world.probe()

    assert world.deposits("txid", "ordinal") == [(txid, "trace:0")]


def test_a_sweep_is_neither_a_top_up_nor_missing_from_the_address(world: World) -> None:
    mine = world.coin_invoice()
    world.pay(mine, 2 * ETHER, currency="ETH")
    world.confirm_sent()
    address = mine.address.lower()
    txid = world.node.send(HOT, value=ETHER, sender=address)
    sweep = spend(purpose="sweep", sender=address, recipient=HOT, token_units=ETHER, txid=txid)
    height = world.mine()
    receipt = world.node.receipt(txid)
    fee = int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
    include(world, sweep, height, fee=fee)
    world.catch_up()
    world.probe()
    assert topup_rows() == []
    assert len(world.deposits()) == 1

    # Coin after the sweep is found to the last unit.
    world.pay_by_contract(mine, 5)
    world.advance()
    world.probe()
    assert world.deposits("amount_units", "ordinal") == [(2 * ETHER, "native"), (5, "trace:0")]


def test_a_reorg_of_a_gas_transfer_pauses_the_probe(world: World) -> None:
    mine = world.coin_invoice()
    address = mine.address.lower()
    txid, raw = world.signed(address, ETHER, currency="ETH")
    world.node.ask("eth_sendRawTransaction", raw)
    gas = spend(recipient=address, sender=BUYER, token_units=ETHER, txid=txid)
    height = world.mine()
    world.catch_up()
    include(world, gas, height)
    # It moves one block down: the row still has the old height.
    world.reorg(1, (raw, 0))
    world.advance(2)
    world.probe()

    assert world.deposits() == []


def test_the_hot_wallet_is_pinned_and_a_former_cold_address_stays_ours(database: str) -> None:
    del database
    pin_hot()
    assert addresses.pin_hot("ethereum", HOT)
    assert not addresses.pin_hot("ethereum", checksum_evm("0x" + "bb" * 20).lower())
    assert addresses.set_cold("ethereum", COLD)
    assert addresses.set_cold("ethereum", "0x" + "c1" * 20)
    assert addresses.is_cold("ethereum", COLD)
    assert addresses.address("ethereum", "cold") == "0x" + "c1" * 20
    assert not addresses.set_cold("ethereum", HOT)
