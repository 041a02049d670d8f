"""Terms are in force from the response that confirms them, in every process, despite caches."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import pytest

from actors import context
from actors.invoices.calls import create_invoice, select_method
from actors.merchants.terms import set_accepted, set_accuracy, set_discount
from actors.queue.caller import CallReply
from actors.wallets.calls import create_wallet
from core.errors import (
    AcceptedUnknownMethod,
    AccuracyBadPercent,
    DomainError,
    GatewayBusy,
    InvoiceNoPayAsset,
    PaymentBelowMinimum,
    PaymentUnknownCurrency,
    PaymentUnsupportedNetwork,
    PayMethodNotAccepted,
    WalletUnsupportedNetwork,
)
from core.merchants.terms_schemas import SetAccepted
from models.db.base import execute, one, transaction
from models.invoices import rows as invoices
from models.merchants.terms import TermsCache, load_terms
from models.queue.calls import AbandonedError, ReplayedError, abandon
from tests.actors import asking
from tests.actors.asking import configure
from tests.models.addresses.test_pool import PUBLIC_KEY, add_chunk
from tests.models.builders import STANDARD, begin_scans, merchant
from tests.models.db.collisions import at_once
from tests.models.invoices.builders import keep_rates, seen
from tests.models.queue.builders import info

ETHEREUM = {"currency": "USDT", "network": "ethereum"}
BSC = {"currency": "USDT", "network": "bsc"}
RATES = {"USD": 1, "USDT": 1, "ETH": 3000, "BNB": 900}


@pytest.fixture(autouse=True)
def _gateway(database: str) -> None:
    """Configure a gateway with providers for ethereum and bsc, rates and a full pool."""
    configure(database, ADDRESS_PUBLIC_KEY=PUBLIC_KEY)
    begin_scans()
    for chunk in range(3):
        add_chunk(chunk)
    for currency, usd in RATES.items():
        execute(
            "INSERT INTO rates (currency, usd, source, quoted_at) VALUES (%s, %s, 'test', app_now())", (currency, usd)
        )


class Process:
    """A process of the gateway with its own cached terms. One runs at a time."""

    def __init__(self) -> None:
        self.terms = TermsCache(STANDARD)

    def run(self, actor: Callable[..., CallReply], merchant_id: UUID | None, body: object) -> Any:
        object.__setattr__(context.context(), "terms", self.terms)
        return ask(actor, merchant_id, body)


def ask(actor: Callable[..., CallReply], merchant_id: UUID | None, body: object) -> Any:
    return asking.ask(actor, info(merchant_id), body)


def accept(shop: UUID, *methods: dict[str, str]) -> Any:
    return ask(set_accepted, shop, {"accepted": list(methods)})


def discount(shop: UUID, percent: float, method: dict[str, str]) -> Any:
    return ask(set_discount, shop, method | {"discount_percent": percent})


def price(amount: str, **body: object) -> dict[str, object]:
    return {"amount": amount, "currency": "USD", "to_currency": "USDT", "network": "ethereum"} | body


def pays(shop: UUID, **body: object) -> str:
    return str(ask(create_invoice, shop, price("100", **body))["payer_amount"])


def accuracy_of(shop: UUID, **body: object) -> int:
    made = invoices.find(shop, invoice_id=UUID(ask(create_invoice, shop, price("100", **body))["uuid"]))
    assert made is not None
    return made.accuracy_ppm


# Read and change --------------------------------------------------------------------------------------------


def test_accepted_methods_are_read_set_and_removed(shop: UUID) -> None:
    assert ask(set_accepted, shop, {}) == {"accepted": []}
    assert accept(shop, ETHEREUM, BSC, {"currency": "BTC"}, BSC) == {
        "accepted": [{"currency": "BTC", "network": "bitcoin"}, BSC, ETHEREUM]
    }
    assert ask(set_accepted, shop, {"accepted": None})["accepted"][1:] == [BSC, ETHEREUM]
    assert accept(shop) == ask(set_accepted, shop, {}) == {"accepted": []}
    assert load_terms(shop, STANDARD).version == 3


def test_discounts_are_read_by_name_and_returned_whole_when_changed(shop: UUID) -> None:
    ether = {"currency": "ETH", "network": "ethereum", "discount_percent": -1.25}
    assert ask(set_discount, shop, {}) == {"items": []}
    assert discount(shop, -1.25, {"currency": "ETH"}) == {"items": [ether]}
    assert discount(shop, 5, BSC) == {"items": [ether, BSC | {"discount_percent": 5}]}
    assert ask(set_discount, shop, {"network": "bsc"}) == {"items": [BSC | {"discount_percent": 5}]}
    assert ask(set_discount, shop, {"currency": "ETH"}) == {"items": [ether]}
    assert ask(set_discount, shop, {"currency": "DAI"}) == {"items": []}
    assert discount(shop, 0, BSC) == ask(set_discount, shop, {}) == {"items": [ether]}


def test_a_coin_without_a_network_means_all_its_networks(shop: UUID) -> None:
    items = discount(shop, 3, {"currency": "USDT"})["items"]

    assert {item["network"] for item in items} == set(context.context().catalogue.networks_of("USDT"))
    assert {(item["currency"], item["discount_percent"]) for item in items} == {("USDT", 3)}
    assert discount(shop, 0, {"currency": "USDT"}) == {"items": []}


def test_the_tolerance_is_read_and_changed_in_parts(shop: UUID) -> None:
    def tolerate(**body: object) -> Any:
        return ask(set_accuracy, shop, body)

    assert tolerate() == {"enabled": False, "accuracy_percent": 0}
    with pytest.raises(AccuracyBadPercent):
        tolerate(enabled=True)
    assert tolerate(accuracy_percent=2.5) == {"enabled": False, "accuracy_percent": 2.5}
    assert tolerate(enabled=True) == tolerate() == {"enabled": True, "accuracy_percent": 2.5}
    with pytest.raises(AccuracyBadPercent):
        tolerate(accuracy_percent=0.9999)
    assert tolerate(enabled=False, accuracy_percent=0) == {"enabled": False, "accuracy_percent": 0}
    assert tolerate(enabled=True, accuracy_percent=5) == {"enabled": True, "accuracy_percent": 5}


@pytest.mark.parametrize(
    ("actor", "body", "error"),
    [
        (set_accepted, {"accepted": [ETHEREUM, {"currency": "USDT"}]}, AcceptedUnknownMethod),
        (set_accepted, {"accepted": [ETHEREUM, {"currency": "KZT"}]}, AcceptedUnknownMethod),
        (set_discount, {"currency": "KZT", "discount_percent": 5}, PaymentUnknownCurrency),
        (set_discount, {"currency": "DAI", "network": "tron", "discount_percent": 5}, PaymentUnsupportedNetwork),
        (set_discount, ETHEREUM | {"discount_percent": 0.00001}, DomainError),
        (set_accuracy, {"enabled": True, "accuracy_percent": 1.00001}, AccuracyBadPercent),
    ],
)
def test_a_refused_change_leaves_no_trace(
    shop: UUID, actor: Callable[..., CallReply], body: object, error: type[DomainError]
) -> None:
    before = load_terms(shop, STANDARD)

    with pytest.raises(error):
        ask(actor, shop, body)
    assert load_terms(shop, STANDARD) == before
    assert one("SELECT count(*) FROM calls") == (0,)


def test_a_read_does_not_count_as_a_change(shop: UUID) -> None:
    for actor in (set_accepted, set_discount, set_accuracy):
        ask(actor, shop, {})

    assert load_terms(shop, STANDARD).version == 1


def test_a_call_takes_effect_once_or_never(shop: UUID) -> None:
    call, given_up = info(shop), info(shop)
    first = set_accepted(call, msgspec.convert({"accepted": [ETHEREUM]}, SetAccepted))

    with pytest.raises(ReplayedError) as replay:
        asking.ask(set_accepted, call, {"accepted": [ETHEREUM]})
    assert (replay.value.response or "").encode() == first.body
    assert abandon(given_up) is None
    with pytest.raises(AbandonedError):
        asking.ask(set_accepted, given_up, {"accepted": []})
    assert load_terms(shop, STANDARD).version == 2


def test_terms_of_merchants_are_independent(shop: UUID) -> None:
    other = merchant()
    discount(other, 50, ETHEREUM)
    accept(other, BSC)
    ask(set_accuracy, other, {"enabled": True, "accuracy_percent": 5})

    assert (pays(shop), accuracy_of(shop)) == ("100", 0)
    assert ask(set_accepted, shop, {}) == {"accepted": []}
    assert ask(set_discount, shop, {}) == {"items": []}
    assert ask(set_accuracy, shop, {})["enabled"] is False


# In force at once, in every process --------------------------------------------------------------------------


def test_a_discount_is_in_force_at_once_in_every_process(shop: UUID) -> None:
    here, elsewhere = Process(), Process()
    for percent in (0, 10, -10, 2.5, 0, 99):
        here.run(set_discount, shop, ETHEREUM | {"discount_percent": percent})

        for process in (here, elsewhere):
            made = process.run(create_invoice, shop, price("1000"))
            assert Decimal(made["payer_amount"]) == 10 * (100 - Decimal(str(percent)))
    assert elsewhere.terms.read(shop).version == load_terms(shop, STANDARD).version


def test_accepted_methods_are_in_force_at_once_in_every_process(shop: UUID) -> None:
    here, elsewhere = Process(), Process()
    for _ in range(2):
        for accepted, refused in ((ETHEREUM, BSC), (BSC, ETHEREUM)):
            here.run(set_accepted, shop, {"accepted": [accepted]})

            for process in (here, elsewhere):
                assert process.run(create_invoice, shop, price("10", network=accepted["network"]))
                with pytest.raises(PaymentUnsupportedNetwork):
                    process.run(create_invoice, shop, price("10", network=refused["network"]))


def test_stale_terms_refuse_no_invoice(shop: UUID) -> None:
    """A refusal reads the terms again, since no statement checks the version of an unwritten invoice."""
    here, elsewhere = Process(), Process()
    here.run(set_discount, shop, ETHEREUM | {"discount_percent": 99})
    with pytest.raises(PaymentBelowMinimum):
        elsewhere.run(create_invoice, shop, price("10"))
    here.run(set_discount, shop, ETHEREUM | {"discount_percent": 0})
    assert elsewhere.run(create_invoice, shop, price("10"))["payer_amount"] == "10"

    here.run(set_accepted, shop, {"accepted": [{"currency": "BTC"}]})
    agnostic = {"amount": "10", "currency": "USD"}
    with pytest.raises(InvoiceNoPayAsset):
        elsewhere.run(create_invoice, shop, agnostic)
    here.run(set_accepted, shop, {"accepted": []})
    assert elsewhere.run(create_invoice, shop, agnostic)["payment_status"] == "select"


def test_a_tolerance_is_in_force_at_once_and_frozen_at_creation(shop: UUID) -> None:
    elsewhere = Process()
    before = elsewhere.run(create_invoice, shop, price("100"))
    agnostic = elsewhere.run(create_invoice, shop, {"amount": "100", "currency": "USD"})
    Process().run(set_accuracy, shop, {"enabled": True, "accuracy_percent": 1.5})

    after = elsewhere.run(create_invoice, shop, price("100"))
    chosen = elsewhere.run(select_method, None, {"invoice_id": agnostic["uuid"]} | ETHEREUM)

    made_rows = [invoices.find_public(UUID(made["uuid"])) for made in (before, after, chosen)]
    assert [made.accuracy_ppm for made in made_rows if made] == [0, 15_000, 0]


def test_concurrent_creations_and_changes_never_mix_terms(shop: UUID) -> None:
    """Discount and tolerance change together, by one; an invoice has both of one version or neither."""

    def work(number: int) -> Any:
        if number == 0:
            for step in range(1, 21):
                time.sleep(0.02)
                with transaction():
                    execute("UPDATE merchants SET terms_version = terms_version + 1 WHERE id = %s", (shop,))
                    execute(
                        "UPDATE merchants SET accuracy_enabled = true, accuracy_ppm = %s WHERE id = %s",
                        (10_000 + step, shop),
                    )
                    execute("DELETE FROM discounts")
                    execute("INSERT INTO discounts VALUES (%s, 'USDT', 'ethereum', %s)", (shop, 10_000 + step))
        else:
            for _ in range(20):
                # A merchant whose terms changed at every attempt is asked to wait.
                with contextlib.suppress(GatewayBusy):
                    ask(create_invoice, shop, price("100"))

    assert [outcome for outcome in at_once(4, work) if isinstance(outcome, Exception)] == []
    made = one("SELECT count(*), count(*) FILTER (WHERE accuracy_ppm <> discount_ppm) FROM invoices")
    assert made is not None
    assert made[0] > 0
    assert made[1] == 0


# Effects ----------------------------------------------------------------------------------------------------


def test_a_discount_lowers_the_price_and_a_negative_one_raises_it(shop: UUID) -> None:
    discount(shop, 2.5, ETHEREUM)
    assert (pays(shop), pays(shop, network="bsc")) == ("97.5", "100")
    discount(shop, -99, ETHEREUM)
    assert pays(shop) == "199"
    assert pays(shop, currency="USDT", to_currency=None) == "199"


def test_later_quotes_keep_the_discount_of_the_first(shop: UUID) -> None:
    discount(shop, 10, ETHEREUM)
    made = ask(create_invoice, shop, price("100"))
    discount(shop, 50, ETHEREUM)
    keep_rates(USD=1, USDT=1)
    execute("UPDATE app_clock SET ahead = interval '16 minutes'")

    again = seen(invoices.reread(UUID(made["uuid"])))
    assert (again.generation, again.discount_ppm, again.payer_units) == (2, 100_000, 90 * 10**18)
    # The cached rates would serve this for as long as they are young.
    execute("UPDATE rates SET quoted_at = app_now()")
    context.context().market.forget()
    assert pays(shop) == "50"


def test_a_revived_invoice_keeps_its_discount_and_its_coin(shop: UUID) -> None:
    discount(shop, 10, ETHEREUM)
    made = ask(create_invoice, shop, price("100", order_id="o"))
    execute("UPDATE invoices SET status = 'expired', is_final = true")
    discount(shop, 50, ETHEREUM)
    accept(shop, BSC)

    revived = ask(create_invoice, shop, price("100", order_id="o", is_refresh=True))

    assert (revived["uuid"], revived["payer_amount"], revived["network"]) == (made["uuid"], "90", "ethereum")


def test_a_choice_gets_the_discount_in_force_at_that_time(shop: UUID) -> None:
    elsewhere = Process()
    agnostic = elsewhere.run(create_invoice, shop, {"amount": "100", "currency": "USD"})
    Process().run(set_discount, shop, ETHEREUM | {"discount_percent": 20})

    chosen = elsewhere.run(select_method, None, {"invoice_id": agnostic["uuid"]} | ETHEREUM)

    assert chosen["payer_amount"] == "80"
    assert "accepted" not in chosen


def test_a_choice_is_limited_to_methods_accepted_at_that_time(shop: UUID) -> None:
    elsewhere = Process()
    accept(shop, ETHEREUM)
    agnostic = elsewhere.run(create_invoice, shop, {"amount": "100", "currency": "USD"})
    accept(shop, BSC)

    for refused in (ETHEREUM, {"currency": "BTC"}, {"currency": "ETH", "network": "bsc"}):
        with pytest.raises(PayMethodNotAccepted):
            elsewhere.run(select_method, None, {"invoice_id": agnostic["uuid"]} | {"network": None} | refused)
    assert elsewhere.run(select_method, None, {"invoice_id": agnostic["uuid"]} | BSC)["network"] == "bsc"


def test_a_repeated_order_id_is_answered_after_accepted_methods_changed(shop: UUID) -> None:
    made = ask(create_invoice, shop, price("100", order_id="o"))
    accept(shop, BSC)

    assert ask(create_invoice, shop, price("100", order_id="o")) == made


def test_a_wallet_is_limited_to_accepted_methods(shop: UUID) -> None:
    accept(shop, BSC)

    with pytest.raises(WalletUnsupportedNetwork):
        ask(create_wallet, shop, ETHEREUM)
    assert ask(create_wallet, shop, BSC)["network"] == "bsc"


@pytest.mark.parametrize(
    ("setting", "own", "ppm"),
    [
        ({"enabled": True, "accuracy_percent": 2}, None, 20_000),
        ({"enabled": True, "accuracy_percent": 2}, 0, 0),
        ({"enabled": True, "accuracy_percent": 2}, 0.5, 5_000),
        ({"enabled": False, "accuracy_percent": 2}, None, 0),
        ({"enabled": False, "accuracy_percent": 2}, 4, 40_000),
        ({}, None, 0),
    ],
)
def test_an_invoices_own_tolerance_overrides_the_merchants(
    shop: UUID, setting: dict[str, object], own: float | None, ppm: int
) -> None:
    ask(set_accuracy, shop, setting)

    assert accuracy_of(shop, accuracy_payment_percent=own) == ppm
