"""Creates, blocks and unblocks wallets: each call takes effect once, and returns unused addresses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count as count_up
from typing import Any
from uuid import UUID

import msgspec
import pytest

from actors import context
from actors.wallets.calls import block_wallet, create_wallet
from actors.wallets.ticks import credit_unblocked_wallets
from core.addresses.evm import checksum_evm
from core.errors import (
    DomainError,
    IdempotencyInProgress,
    IdempotencyKeyReused,
    InvoiceAddressFailed,
    WalletNoNetwork,
    WalletStaticNotFound,
    WalletUnknownCurrency,
    WalletUnsupportedNetwork,
)
from models.db.base import execute, one, rows, transaction, value
from models.deposits.offered import OfferedNetworks
from models.ledger.ledger import MATURING
from models.merchants import term_changes
from models.queue.calls import CallInfo, ReplayedError, begin
from models.wallets import settlement as wallet_settlement
from models.wallets.rows import find_by_order
from tests.actors.asking import ask, configure
from tests.models.addresses.test_pool import PUBLIC_KEY, add_chunk
from tests.models.builders import Chain, assert_sound, begin_scans, merchant
from tests.models.db.collisions import at_once
from tests.models.ledger.figures import balances_of
from tests.models.queue.builders import info
from tests.models.wallets.builders import received, reread, settled

pytestmark = pytest.mark.usefixtures("shop_endpoint")

ETHEREUM: dict[str, Any] = {"currency": "USDT", "network": "ethereum"}


@pytest.fixture(autouse=True)
def _gateway(database: str) -> Iterator[None]:
    """Configure a gateway with providers for ethereum and bsc, and a full pool."""
    configure(database, ADDRESS_PUBLIC_KEY=PUBLIC_KEY)
    begin_scans()
    for chunk in range(2):
        add_chunk(chunk)
    yield
    assert_sound()


def create(merchant_id: UUID, body: dict[str, Any] = ETHEREUM, call: CallInfo | None = None) -> dict[str, Any]:
    answer: dict[str, Any] = ask(create_wallet, call or info(merchant_id), body)
    return answer


def block(merchant_id: UUID, address: str, *, force: bool = True) -> dict[str, Any]:
    wanted = {"address": address, "is_force_block": force}
    answer: dict[str, Any] = ask(block_wallet, info(merchant_id), wanted)
    return answer


def count(table: str) -> int:
    return value(f"SELECT count(*) FROM {table}")


# Creation ---------------------------------------------------------------------------------------------------


def test_a_wallet_has_a_pool_address_in_its_shown_form(shop: UUID) -> None:
    answer = create(shop, ETHEREUM | {"order_id": "customer-1"})

    assert set(answer) == {"uuid", "address", "network", "currency", "order_id", "url"}
    stored = reread(UUID(answer["uuid"]))
    assert answer["address"] == checksum_evm(stored.address)
    assert (answer["network"], answer["currency"], answer["order_id"]) == ("ethereum", "USDT", "customer-1")
    assert one("SELECT owner_id FROM address_owners WHERE owner_kind = 'wallet'") == (stored.id,)
    assert count("calls") == 1


def test_a_wallets_balance_is_probed_on_networks_with_hidden_transfers(shop: UUID) -> None:
    wallet = create(shop)

    stored = rows("SELECT network, address FROM balance_probes")

    assert set(stored) == {(n, wallet["address"].lower()) for n in ("ethereum", "bsc", "polygon", "avalanche")}


def test_a_repetition_returns_the_wallet_and_takes_no_address(shop: UUID) -> None:
    first = create(shop)

    assert create(shop) == create(shop, call=info(shop, "key")) == first
    assert (count("wallets"), count("address_owners"), count("address_returns")) == (1, 1, 0)
    assert create(shop, ETHEREUM | {"order_id": "customer-1"}) != first


def test_fifty_concurrent_calls_make_one_wallet_and_lose_no_address(shop: UUID) -> None:
    answers = at_once(50, lambda _: create(shop))

    assert not [answer for answer in answers if isinstance(answer, Exception)]
    assert len({answer["address"] for answer in answers if isinstance(answer, dict)}) == 1
    assert (count("wallets"), count("address_owners"), count("calls")) == (1, 1, 50)


def test_the_second_concurrent_call_returns_its_address(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    first, look, looks = create(shop), find_by_order, count_up()

    def blind_at_first(*key: Any) -> object:
        return look(*key) if next(looks) else None

    monkeypatch.setattr("actors.wallets.calls.wallets.find_by_order", blind_at_first)

    assert create(shop) == first
    assert rows("SELECT ordinal FROM address_returns WHERE taken_at IS NULL") == [(1,)]
    assert (count("wallets"), count("address_owners")) == (1, 1)


def test_a_key_returns_its_first_response(shop: UUID) -> None:
    first = create(shop, call=info(shop, "key"))

    with pytest.raises(ReplayedError) as replay:
        create(shop, call=info(shop, "key"))
    assert msgspec.json.decode(replay.value.response or "") == first
    with pytest.raises(IdempotencyKeyReused):
        create(shop, call=info(shop, "key", b"other"))


def test_a_key_returns_its_response_even_if_the_network_is_no_longer_served(shop: UUID) -> None:
    create(shop, call=info(shop, "key"))
    object.__setattr__(context.context(), "offered", OfferedNetworks(frozenset()))

    with pytest.raises(ReplayedError):
        create(shop, call=info(shop, "key"))
    with pytest.raises(WalletUnsupportedNetwork):
        create(shop)


def test_a_key_in_progress_is_refused_at_once(shop: UUID) -> None:
    holder = info(shop, "key")

    def attempt(number: int) -> dict[str, Any]:
        if number == 0:
            with transaction():
                begin(holder)
                execute("SELECT pg_sleep(1)")
            return {}
        execute("SELECT pg_sleep(0.3)")
        return create(shop, call=info(shop, "key"))

    _, refused = at_once(2, attempt)

    assert isinstance(refused, IdempotencyInProgress)
    assert count("wallets") == 0


def test_a_redelivered_call_gets_its_response(shop: UUID) -> None:
    call = info(shop)
    create(shop, call=call)

    with pytest.raises(ReplayedError):
        create(shop, call=call)
    assert count("wallets") == 1


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"currency": "XYZ", "network": "ethereum"}, WalletUnknownCurrency),
        ({"currency": "USD", "network": "ethereum"}, WalletUnknownCurrency),
        ({"currency": "usdt", "network": "ethereum"}, WalletUnknownCurrency),
        ({"currency": "USDT"}, WalletNoNetwork),
        ({"currency": "USDT", "network": "Ethereum"}, WalletUnsupportedNetwork),
        ({"currency": "USDT", "network": "litecoin"}, WalletUnsupportedNetwork),
        ({"currency": "ETH", "network": "bsc"}, WalletUnsupportedNetwork),
        # Of the catalogue, but this gateway has no provider for it.
        ({"currency": "USDT", "network": "polygon"}, WalletUnsupportedNetwork),
        ({"currency": "BTC"}, WalletUnsupportedNetwork),
    ],
)
def test_a_wallet_on_an_unserved_network_is_refused_and_leaves_no_trace(
    shop: UUID, body: dict[str, Any], error: type[DomainError]
) -> None:
    with pytest.raises(error):
        create(shop, body, info(shop, "key"))

    assert [count(table) for table in ("wallets", "calls", "address_owners", "address_returns")] == [0] * 4
    assert create(shop, call=info(shop, "key", b"other"))


def test_a_method_that_the_merchant_does_not_accept_is_refused(shop: UUID) -> None:
    with transaction():
        term_changes.replace_accepted(shop, [("USDT", "bsc")])

    with pytest.raises(WalletUnsupportedNetwork):
        create(shop)
    assert create(shop, ETHEREUM | {"network": "bsc"})["network"] == "bsc"


@pytest.mark.parametrize(("currency", "network"), [("ETH", "ethereum"), ("BNB", "bsc")])
def test_the_only_network_of_a_coin_is_filled_in(shop: UUID, currency: str, network: str) -> None:
    answer = create(shop, {"currency": currency})

    assert answer["network"] == network
    assert create(shop, {"currency": currency, "network": network}) == answer


def test_a_wallet_keeps_the_merchants_fee_at_its_creation(shop: UUID) -> None:
    context.context().terms.read(shop)
    execute("UPDATE merchants SET own_fee_ppm = 7, terms_version = terms_version + 1 WHERE id = %s", (shop,))

    first = create(shop)
    execute("UPDATE merchants SET own_fee_ppm = 9, terms_version = terms_version + 1 WHERE id = %s", (shop,))

    assert reread(UUID(first["uuid"])).fee_ppm == 7


def test_without_addresses_no_wallet_is_created_until_the_pool_is_filled(shop: UUID, database: str) -> None:
    execute("SELECT setval('address_claims_evm', 127)")
    configure(database, ADDRESS_PUBLIC_KEY=PUBLIC_KEY)
    with pytest.raises(InvoiceAddressFailed):
        create(shop, call=info(shop, "key"))
    assert (count("wallets"), count("calls")) == (0, 0)

    add_chunk(2)
    configure(database, ADDRESS_PUBLIC_KEY=PUBLIC_KEY)
    assert create(shop, call=info(shop, "key"))


def test_a_failed_creation_returns_its_address(shop: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("actors.wallets.calls.wallets.create", fail)
    with pytest.raises(ZeroDivisionError):
        create(shop)

    assert rows("SELECT ordinal FROM address_returns WHERE taken_at IS NULL") == [(0,)]
    assert (count("wallets"), count("calls")) == (0, 0)


# Block ------------------------------------------------------------------------------------------------------


def test_blocking_and_unblocking_return_the_present_state(shop: UUID) -> None:
    made = create(shop)
    expected = {"uuid": made["uuid"], "address": made["address"]}

    for text in (made["address"], made["address"].lower()):
        assert block(shop, text) == expected | {"blocked": True}
        assert block(shop, text, force=False) == expected | {"blocked": False}
    assert block(shop, made["address"], force=False) == expected | {"blocked": False}


def test_another_merchants_wallet_is_not_found(shop: UUID) -> None:
    theirs = create(merchant())

    for address in (theirs["address"], "0x" + "0" * 40, "nonsense"):
        with pytest.raises(WalletStaticNotFound):
            block(shop, address)
    assert not reread(UUID(theirs["uuid"])).is_blocked
    assert count("calls") == 1


def test_unblocking_credits_held_deposits_before_it_answers(shop: UUID, rung: list[str]) -> None:
    made = create(shop)
    mine, chain = reread(UUID(made["uuid"])), Chain()
    block(shop, made["address"])
    received(chain, mine, 10**19)
    assert (balances_of(shop), rung) == ({}, [])

    block(shop, made["address"], force=False)

    assert balances_of(shop) == {MATURING: 985 * 10**16}
    assert rung == ["deliver_webhooks", "credit_unblocked_wallets"]
    assert not reread(mine.id).is_credit_due


def test_the_scheduled_actor_credits_deposits_that_the_call_left(
    shop: UUID, rung: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = create(shop)
    mine, chain = reread(UUID(made["uuid"])), Chain()
    block(shop, made["address"])
    for _ in range(5):
        chain.pay(mine, 10**19)
    chain.confirm()
    settled(mine)
    monkeypatch.setattr(wallet_settlement, "DEPOSITS_PER_STEP", 2)
    block(shop, made["address"], force=False)
    rung.clear()

    credit_unblocked_wallets()
    assert rung == ["deliver_webhooks"] * 2 + ["credit_unblocked_wallets"]
    rung.clear()
    credit_unblocked_wallets()
    assert rung == ["deliver_webhooks"]
    rung.clear()
    credit_unblocked_wallets()

    assert rung == []
    assert balances_of(shop) == {MATURING: 5 * 985 * 10**16}


def test_an_unblocking_whose_call_died_is_finished_by_the_scheduled_actor(
    shop: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = create(shop)
    mine, chain = reread(UUID(made["uuid"])), Chain()
    block(shop, made["address"])
    received(chain, mine, 10**19)
    call = info(shop)
    body = {"address": made["address"], "is_force_block": False}

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(wallet_settlement, "credit_held", die)
        with pytest.raises(KeyboardInterrupt):
            ask(block_wallet, call, body)
    assert balances_of(shop) == {}
    assert_sound()
    with pytest.raises(ReplayedError):
        ask(block_wallet, call, body)

    credit_unblocked_wallets()

    assert balances_of(shop) == {MATURING: 985 * 10**16}
