"""A paid invoice gets one receipt, whatever happens to it; e-mails that a buyer requests are counted exactly."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from uuid import UUID

import msgspec
import pytest
from structlog.testing import capture_logs

from core.errors import EmailTooMany, TooManyRequestsError
from core.settings.settings import load_settings
from core.texts.letters import Body
from models.db import base
from models.db.base import column, execute, rows, transaction
from models.deposits import rows as deposits
from models.invoices import receipts, resolution, settlement
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow
from models.ledger.ledger import MATURING, PAYOUT_HELD, Account, lock_balances
from models.merchants import emails
from models.merchants.emails import EmailRow
from models.outcomes import reversals
from tests.models.builders import CATALOGUE, USDT, Chain, assert_sound, merchant
from tests.models.db.collisions import at_once, wait_until_somebody_waits
from tests.models.invoices.builders import PRICE, expired, invoice, paid, settled
from tests.models.refunds.builders import accept, end, send_back, sent, short

ANN: Final = "ann@mail.example"
DAI: Final = 5 * 10**18
ENV: Final = {
    "ENVIRONMENT": "development",
    "DATABASE_URL": "postgresql://x@127.0.0.1/x",
    "REDIS_URL": "redis://127.0.0.1",
    "PAY_URL": "https://pay.example",
}


@pytest.fixture(autouse=True)
def _post_office() -> None:
    emails.use(load_settings(ENV | {"SMTP_URL": "smtp://127.0.0.1:1"}))


def written() -> list[tuple[str, str]]:
    return rows("SELECT kind, recipient FROM emails ORDER BY id")


def body_of(email: EmailRow) -> Body:
    post = emails.post()
    assert post is not None
    return msgspec.json.decode(email.open(post.box), type=Body)


def only_email() -> EmailRow:
    (read_rows,) = EmailRow.read("true")
    return read_rows


def ask(of: InvoiceRow, recipient: str = ANN) -> None:
    with transaction():
        post, locked = emails.post(), invoices.lock(of.id)
        assert post is not None
        assert locked is not None
        receipts.write_asked(CATALOGUE, locked, post, recipient)


def waits_before_it_locks_a_balance(balance: Account, work: Callable[[], object]) -> None:
    """Run work while another transaction has the turn, which then locks a balance, as a cheque does."""

    def is_free() -> None:
        assert lock_balances(balance) > [0]

    waits_before_it_locks(work, is_free, merchant_id=balance.holder)


def waits_before_it_locks(work: Callable[[], object], is_free: Callable[[], object], *, merchant_id: UUID) -> None:
    """Run work while another transaction has the turn, which then locks a row."""

    def run() -> None:
        try:
            work()
        finally:
            base.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction():
            emails.wait_turn(merchant_id)
            done = pool.submit(run)
            wait_until_somebody_waits(limit_s=10)
            execute("SET LOCAL lock_timeout = '100ms'")
            is_free()
        done.result()


def test_a_receipt_waits_for_its_turn_before_any_balance_is_locked(shop: UUID, chain: Chain) -> None:
    """A cheque takes its turn, then its merchant's balance: the other way round each would wait for the other."""
    paid(chain, invoice(shop, payer_email=ANN), PRICE)
    mine = invoice(shop, payer_email=ANN)
    chain.pay_and_confirm(mine, PRICE)
    waits_before_it_locks_a_balance(Account(shop, MATURING, "USDT"), lambda: settlement.settle(CATALOGUE, mine.id))
    assert written() == [("receipt", ANN)] * 2


def test_a_reversal_waits_for_the_turn_before_any_balance_is_locked(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    for _ in range(2):
        chain.pay_and_confirm(mine, PRICE // 2)
    settled(mine)
    first, second = (deposit.id for deposit in deposits.of_owner(mine.id))
    reversals.reverse_of_invoice(CATALOGUE, first, mine.id)
    execute("UPDATE invoices SET payer_email = %s WHERE id = %s", (ANN, mine.id))
    waits_before_it_locks_a_balance(
        Account(shop, MATURING, "USDT"), lambda: reversals.reverse_of_invoice(CATALOGUE, second, mine.id)
    )
    assert (settled(mine).confirmed_units, written()) == (0, [])


def test_the_credit_of_a_stray_waits_for_the_turn_before_any_balance_is_locked(shop: UUID, chain: Chain) -> None:
    def strayed(txid: str) -> InvoiceRow:
        mine = invoice(shop)
        chain.pay_and_confirm(mine, DAI, currency="DAI", stray="asset", txid=txid)
        return settled(mine)

    accept(strayed("0xother"), "0xother")
    mine = strayed("0xstray")
    execute("UPDATE invoices SET payer_email = %s WHERE id = %s", (ANN, mine.id))
    waits_before_it_locks_a_balance(Account(shop, MATURING, "DAI"), lambda: accept(mine, "0xstray"))
    assert written() == []


def test_the_end_of_a_refund_waits_for_the_turn_before_any_balance_is_locked(shop: UUID, chain: Chain) -> None:
    mine = short(chain, shop)
    refund = sent(send_back(mine))
    execute("UPDATE invoices SET payer_email = %s WHERE id = %s", (ANN, mine.id))
    waits_before_it_locks_a_balance(Account(shop, PAYOUT_HELD, "USDT"), lambda: end(refund, "failed"))
    assert written() == []


def test_a_deposit_is_outvoted_after_the_turn_and_before_its_refund_is_locked(shop: UUID, chain: Chain) -> None:
    """All who lock both lock them in this order: an end of the refund is one of them."""
    mine = short(chain, shop)
    refund = sent(send_back(mine))
    (txid,) = column("SELECT txid FROM deposits")
    chain.reorg(3)
    chain.pay(mine, PRICE // 2, txid=txid)
    execute("UPDATE invoices SET payer_email = %s WHERE id = %s", (ANN, mine.id))
    execute(
        "INSERT INTO deposit_quorums (deposit_id, round, network, reason, asked_at, attempts, next_attempt_at, problem)"
        " SELECT id, round, network, 'amount', app_now(), 0, app_now(), '' FROM deposits"
    )
    (asked,) = deposits.of_owner(mine.id)

    def outvote() -> None:
        with transaction():
            assert reversals.outvote(CATALOGUE, asked)

    waits_before_it_locks(
        outvote,
        lambda: execute("SELECT 1 FROM payouts WHERE id = %s FOR UPDATE NOWAIT", (refund.id,)),
        merchant_id=shop,
    )
    assert column("SELECT status FROM deposits") == ["reversed"]


def test_a_receipt_is_written_in_the_commit_that_pays_the_invoice(shop: UUID, chain: Chain, rung: list[str]) -> None:
    mine = invoice(shop, payer_email=ANN, order_id="order-7")
    chain.pay_and_confirm(mine, PRICE, txid="0xpaid")

    settlement.settle(CATALOGUE, mine.id)

    email = only_email()
    assert (email.kind, email.recipient, email.object_id, email.subject) == (
        "receipt",
        ANN,
        mine.id,
        "Receipt for 10.00 USD",
    )
    assert "deliver_emails" in rung
    body = body_of(email)
    for text in ("Shop received your payment", "10 USDT on Ethereum", "order-7", "0xpaid", str(mine.id)):
        assert text in body.text
        assert text in body.html
    assert f'href="https://pay.example/pay/{mine.id}"' in body.html
    assert "more than was asked" not in body.text


def test_a_receipt_is_rolled_back_with_its_sale(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop, payer_email=ANN)
    chain.pay_and_confirm(mine, PRICE)

    with contextlib.suppress(ConnectionError), transaction():
        settlement.settle_locked(CATALOGUE, mine.id)
        raise ConnectionError
    assert (written(), invoices.reread(mine.id).status) == ([], "check")

    assert settled(mine).status == "paid"
    assert written() == [("receipt", ANN)]


def test_the_receipt_of_an_overpaid_invoice_names_the_excess(shop: UUID, chain: Chain) -> None:
    mine = paid(chain, invoice(shop, payer_email=ANN), PRICE + 2 * USDT)

    assert mine.status == "paid_over"
    assert "That is 2 USDT more than was asked" in body_of(only_email()).text


def test_no_receipt_is_written_without_an_address_or_a_mail_server(shop: UUID, chain: Chain) -> None:
    paid(chain, invoice(shop))
    emails.use(load_settings(ENV))
    late = paid(chain, invoice(shop, payer_email=ANN))
    assert written() == []

    # Nor later, once there is a server.
    emails.use(load_settings(ENV | {"SMTP_URL": "smtp://127.0.0.1:1"}))
    settled(late)
    assert written() == []


def test_an_accepted_payment_gets_a_receipt(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop, payer_email=ANN)
    paid(chain, mine, PRICE // 2)
    assert expired(chain, mine).status == "wrong_amount"
    assert written() == []

    with transaction():
        resolution.accept_payment(CATALOGUE, invoices.reread(mine.id))

    assert written() == [("receipt", ANN)]
    assert "5 USDT on Ethereum" in body_of(only_email()).text


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_an_invoice_that_is_paid_again_after_a_reorg_gets_no_second_receipt(
    shop: UUID, chain: Chain, *, is_forgotten: bool
) -> None:
    mine = invoice(shop, payer_email=ANN)
    chain.mine()
    assert paid(chain, mine).status == "paid"
    first = written()
    if is_forgotten:
        execute("DELETE FROM emails")
        first = []

    chain.reorg(CATALOGUE.networks["ethereum"].confirmations)
    assert invoices.reread(mine.id).status == "check"
    assert paid(chain, mine).status == "paid"
    assert paid(chain, mine, USDT).status == "paid_over"

    assert written() == first


def test_two_concurrent_settlements_write_one_receipt(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop, payer_email=ANN)
    chain.pay_and_confirm(mine, PRICE)

    assert not [error for error in at_once(4, lambda _: settlement.settle(CATALOGUE, mine.id)) if error]

    assert written() == [("receipt", ANN)]
    assert_sound()


def test_a_requested_email_is_a_link_while_open_and_a_receipt_once_paid(shop: UUID, chain: Chain) -> None:
    mine = invoice(shop)
    ask(mine)
    email = only_email()
    assert (email.kind, email.subject) == ("payment", "Your payment of 10.00 USD")
    assert "Pay now" in body_of(email).html
    assert f"https://pay.example/pay/{mine.id}" in body_of(email).text

    execute("DELETE FROM emails")
    ask(paid(chain, mine))
    email = only_email()
    assert (email.kind, email.subject) == ("payment", "Receipt for 10.00 USD")

    execute("DELETE FROM emails")
    other = invoice(shop)
    ask(expired(chain, other))
    assert only_email().subject == "About your payment of 10.00 USD"
    assert "Pay now" not in body_of(only_email()).html


def test_receipts_and_requests_for_other_payments_do_not_count(shop: UUID, chain: Chain) -> None:
    mine, other = paid(chain, invoice(shop, payer_email=ANN)), invoice(shop)
    for _ in range(5):
        ask(mine)

    ask(other)

    assert rows("SELECT kind, count(*) FROM emails GROUP BY 1 ORDER BY 1") == [("payment", 6), ("receipt", 1)]


def test_requests_are_allowed_again_when_the_first_is_an_hour_old(shop: UUID) -> None:
    mine = invoice(shop)
    for _ in range(5):
        ask(mine)
    execute("UPDATE emails SET created_at = created_at - interval '50 minutes'")
    with pytest.raises(TooManyRequestsError) as refusal:
        ask(mine)
    assert 500 < refusal.value.retry_after_s <= 600

    execute("UPDATE emails SET created_at = created_at - interval '10 minutes'")
    ask(mine)


def test_a_merchants_text_cannot_inject_headers_or_markup(shop: UUID, chain: Chain) -> None:
    nasty: Any = "x\r\nBcc: all@mail.example\n<script>alert(1)</script>\u202e\x1b"
    execute("UPDATE merchants SET name = %s WHERE id = %s", (nasty, shop))
    paid(chain, invoice(shop, payer_email=ANN, order_id=nasty))

    email = only_email()
    body = body_of(email)
    assert (email.subject, email.recipient) == ("Receipt for 10.00 USD", ANN)
    assert "<script" not in body.html
    assert not {"\u202e", "\x1b", "\r"} & set(body.text + body.html)
    assert not [line for line in body.text.splitlines() if line.startswith("Bcc")]


def test_one_address_gets_at_most_the_daily_cap_from_one_merchant(shop: UUID) -> None:
    emails.use(load_settings(ENV | {"SMTP_URL": "smtp://127.0.0.1:1", "EMAIL_RECIPIENT_DAY_MAX": "2"}))
    ask(invoice(shop), "Ann@mail.example")
    ask(invoice(shop), "ann+2@mail.example")

    with pytest.raises(EmailTooMany):
        ask(invoice(shop))
    # The same mailbox again.
    with pytest.raises(EmailTooMany):
        ask(invoice(shop), "ann+1+x@mail.example")
    ask(invoice(shop), "bob@mail.example")
    ask(invoice(merchant()))
    execute("UPDATE emails SET created_at = created_at - interval '1 day'")
    ask(invoice(shop))

    assert len(written()) == 5


def test_a_merchant_above_its_daily_cap_sends_no_emails_but_still_sells(shop: UUID, chain: Chain) -> None:
    emails.use(load_settings(ENV | {"SMTP_URL": "smtp://127.0.0.1:1", "EMAIL_MERCHANT_DAY_MAX": "1"}))
    ask(invoice(shop), "bob@mail.example")
    mine = invoice(shop, payer_email=ANN)
    chain.pay_and_confirm(mine, PRICE, txid="0xpaid")

    with capture_logs() as lines:
        decided = settled(mine)

    assert decided.status == "paid"
    assert [line["event"] for line in lines] == ["email.capped", "deposit.credited", "invoice.paid"]
    assert len(written()) == 1
