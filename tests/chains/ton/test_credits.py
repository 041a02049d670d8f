"""Credits by payers, forgers and the chain itself at one of our addresses, run by TON's own code."""

from __future__ import annotations

import dataclasses

import pytest

from chains.ton import boc, messages, transactions
from chains.ton.cells import Cell
from chains.ton.credits import CoinCredit, JettonCredit, coin_credit, jetton_credit
from chains.ton.jettons import JETTONS, Jetton
from chains.ton.slices import Builder, Slice
from chains.ton.transactions import Transaction
from chains.ton.transfers import CoinTransfer
from chains.ton.wallet import StateInit
from devstack.ton.ledger import Ledger, sent_by
from tests.chains.ton.recorded import TRANSACTIONS
from tests.chains.ton.world import FAUCET, INTERNAL_TRANSFER, NOTIFICATION, TON, Issuer, Wallet, at, issuer, with_state

OURS = Wallet("deposit").address
YEAR_S = 365 * 86_400
USDT = JETTONS["0:b113a994b5024a16719f69139328eb759596c38a25f59028b146fecdc3621dfe"]


def coins(ran: list[Transaction], *jettons: Jetton) -> list[CoinCredit]:
    return [credit for transaction in ran if (credit := coin_credit(transaction, jettons)) is not None]


def jettons_of(ran: list[Transaction], *jettons: Jetton) -> list[JettonCredit]:
    return [credit for transaction in ran if (credit := jetton_credit(transaction, jettons)) is not None]


@pytest.fixture
def payer(ledger: Ledger) -> Wallet:
    wallet = Wallet("payer")
    ledger.pay(FAUCET, wallet.address, 50 * TON)
    return wallet


@pytest.fixture
def usd(ledger: Ledger, payer: Wallet) -> Issuer:
    """Return a jetton of which the payer has a million."""
    admin = Wallet("admin")
    ledger.pay(FAUCET, admin.address, 50 * TON)
    made = issuer(admin)
    made.issue(ledger, payer.address, 10**6)
    return made


# Coin ---------------------------------------------------------------------------------------------------------------


def test_an_aborted_transaction_at_an_undeployed_wallet_credits(ledger: Ledger) -> None:
    (transaction,) = ledger.pay(FAUCET, OURS, TON)
    assert (transaction.aborted, transaction.succeeded, ledger.balance(OURS)) == (True, False, TON)
    assert coin_credit(transaction, []) == CoinCredit(recipient=OURS, units=TON, sender=FAUCET)


def test_a_payment_that_bounces_from_an_undeployed_wallet_does_not_credit(ledger: Ledger) -> None:
    first, back = ledger.pay(FAUCET, OURS, TON, bounce=True)
    assert (ledger.balance(OURS), back.incoming.bounced, first.bounce) == (0, True, "returned")
    # Neither here nor where it comes back.
    assert coins([first, back]) == []


def test_a_payment_to_a_wallet_with_code_credits_whatever_it_says(ledger: Ledger) -> None:
    ours = Wallet("deposit")
    ledger.pay(FAUCET, ours.address, TON)
    ours.transfer(ledger, coin_to(FAUCET, 1))
    proof = proved(Builder().uint(1, 8).end())
    for body in (None, Builder().uint(0xDEADBEEF, 32).end(), Builder().ref(proof).end()):
        for bounce in (True, False):
            ran = ledger.pay(FAUCET, ours.address, TON, bounce=bounce, body=body)
            assert coins(ran) == [CoinCredit(recipient=ours.address, units=TON, sender=FAUCET)]


def proved(cell: Cell) -> Cell:
    """Return a proof that a cell is in a tree, which names it without bringing it."""
    branch = Cell(bytes([1, 1]) + cell.hash + cell.depth.to_bytes(2, "big"), 288, is_exotic=True)
    data = bytes([3]) + cell.hash + cell.depth.to_bytes(2, "big")
    return Cell(data, 280, (branch,), is_exotic=True)


def coin_to(recipient: str, units: int) -> CoinTransfer:
    return CoinTransfer(recipient=recipient, units=units, bounce=False)


def test_storage_debt(ledger: Ledger) -> None:
    # The wallet has code, little coin, and no payment for years.
    ours = Wallet("deposit")
    ledger.pay(FAUCET, ours.address, TON // 20)
    ours.transfer(ledger, coin_to(FAUCET, TON // 25))
    ledger.now += 8 * YEAR_S
    before = ledger.balance(ours.address)
    (transaction,) = ledger.pay(FAUCET, ours.address, TON)
    charge = TON - transaction.change

    assert coin_credit(transaction, []) == CoinCredit(recipient=ours.address, units=TON, sender=FAUCET)
    # The payer's coin is credited whole; the account's rent is a charge of its own.
    assert charge == transaction.total_fees >= transaction.storage_fees > before
    assert ledger.balance(ours.address) == before + TON - charge


def test_a_debt_that_a_message_does_not_cover_freezes_and_credits() -> None:
    due, paid = (transactions.read(boc.read_base64(TRANSACTIONS[name][0])) for name in ("rent_due", "rent_paid"))
    assert (due.status_after, due.storage_due, due.change) == ("frozen", 150_241_671, -3_781_200)
    credits_of = [coin_credit(transaction, []) for transaction in (due, paid)]
    assert [credit and credit.units for credit in credits_of] == [1, TON]
    assert (paid.storage_fees, paid.change) == (150_241_671, TON - 150_241_671)


def test_a_request_of_our_own_credits_nothing(ledger: Ledger) -> None:
    ours = Wallet("deposit")
    ledger.pay(FAUCET, ours.address, TON)
    ran = ours.transfer(ledger, coin_to(FAUCET, 5))
    assert [credit.recipient for credit in coins(ran)] == [FAUCET]


def test_a_message_without_coin_credits_nothing(ledger: Ledger) -> None:
    assert coins(ledger.pay(FAUCET, OURS, 0)) == []


# Jettons ------------------------------------------------------------------------------------------------------------


def test_no_notification(ledger: Ledger, payer: Wallet, usd: Issuer) -> None:
    ran = payer.transfer(ledger, usd.transfer(payer, OURS, 250))
    assert at(ran, OURS) == []
    assert jettons_of(ran, usd.jetton) == [
        JettonCredit(jetton=usd.jetton, recipient=OURS, units=250, sender=payer.address, query_id=7)
    ]


def test_a_second_payment_to_the_same_wallet_credits_too(ledger: Ledger, payer: Wallet, usd: Issuer) -> None:
    for units in (250, 3):
        ran = payer.transfer(ledger, usd.transfer(payer, OURS, units, forward=TON // 50, memo="of an invoice"))
        assert [credit.units for credit in jettons_of(ran, usd.jetton)] == [units]
        # The coin that came along is no payment.
        assert [credit for credit in coins(ran, usd.jetton) if credit.recipient == OURS] == []
        assert at(ran, OURS)[0].incoming.units == TON // 50


def test_jettons_from_their_master_credit_without_a_sender(ledger: Ledger, usd: Issuer) -> None:
    ran = usd.issue(ledger, OURS, 99)
    assert [(credit.units, credit.sender) for credit in jettons_of(ran, usd.jetton)] == [(99, "")]


def test_a_wallet_of_another_master(ledger: Ledger, payer: Wallet, usd: Issuer) -> None:
    # The same code, the same name, another master.
    other = issuer(payer, "usd")
    assert other.jetton.master != usd.jetton.master
    other.issue(ledger, payer.address, 10**6)
    ran = payer.transfer(ledger, other.transfer(payer, OURS, 250, forward=1))
    assert [credit.units for credit in jettons_of(ran, other.jetton)] == [250]
    assert jettons_of(ran, usd.jetton) == []


def test_a_namesake_jetton_called_gram(ledger: Ledger, payer: Wallet, usd: Issuer) -> None:
    gram = issuer(payer, "Gram")
    gram.issue(ledger, payer.address, 10**18)
    ran = payer.transfer(ledger, gram.transfer(payer, OURS, 5 * TON, forward=2))
    assert jettons_of(ran, usd.jetton) == []
    # Of coin, no more than came.
    assert [(credit.units, credit.recipient) for credit in coins(at(ran, OURS), usd.jetton)] == [(2, OURS)]


def test_a_forged_notification(ledger: Ledger, payer: Wallet, usd: Issuer) -> None:
    body = Builder().uint(NOTIFICATION, 32).uint(7, 64).coins(10**6).address(payer.address).bit(0).end()
    message = messages.internal(OURS, TON // 10, bounce=False, body=body)
    ran = ledger.send(payer.order(ledger, message))
    assert jettons_of(ran, usd.jetton) == []
    assert [credit.units for credit in coins(at(ran, OURS), usd.jetton)] == [TON // 10]


def internal_transfer(units: int, sender: str) -> Cell:
    body = Builder().uint(INTERNAL_TRANSFER, 32).uint(7, 64).coins(units).address(sender).address(sender)
    return body.coins(0).bit(0).end()


def test_a_stranger_makes_our_jetton_wallet_and_sends_it_nothing(ledger: Ledger, payer: Wallet, usd: Issuer) -> None:
    # The state is genuine, so that the wallet is made; its code refuses the sender.
    body = internal_transfer(10**6, payer.address)
    message = messages.internal(usd.jetton.wallet(OURS), TON, bounce=False, body=body)
    ran = ledger.send(payer.order(ledger, with_state(message, usd.jetton.state(OURS))))
    assert (ran[1].address, ran[1].status_after, ran[1].aborted) == (usd.jetton.wallet(OURS), "active", True)
    assert jettons_of(ran, usd.jetton) == []
    # A payment into it credits afterwards, and nothing of before is counted.
    later = payer.transfer(ledger, usd.transfer(payer, OURS, 5))
    assert [credit.units for credit in jettons_of(later, usd.jetton)] == [5]


def test_a_wallet_that_begins_with_jettons(ledger: Ledger, payer: Wallet, usd: Issuer) -> None:
    code = usd.jetton.wallet_code
    data = Builder().coins(10**6).address(OURS).address(usd.jetton.master).ref(code).end()
    forged = StateInit(code=code, data=data)
    assert usd.jetton.owner(forged) is None
    message = messages.internal(forged.address, TON, bounce=False, body=internal_transfer(1, payer.address))
    assert jettons_of(ledger.send(payer.order(ledger, with_state(message, forged))), usd.jetton) == []


def transaction_of(ledger: Ledger, payer: Wallet, usd: Issuer) -> Transaction:
    ran = payer.transfer(ledger, usd.transfer(payer, OURS, 250))
    (transaction,) = at(ran, usd.jetton.wallet(OURS))
    assert jetton_credit(transaction, [usd.jetton]) is not None
    return transaction


def test_each_mark_of_an_arrival_is_needed(ledger: Ledger, payer: Wallet, usd: Issuer) -> None:
    transaction = transaction_of(ledger, payer, usd)
    incoming = transaction.incoming

    def with_message(**changes: object) -> Transaction:
        return dataclasses.replace(transaction, incoming=dataclasses.replace(incoming, **changes))  # type: ignore[arg-type]

    assert transaction.action is not None
    forged = [
        dataclasses.replace(transaction, aborted=True),
        dataclasses.replace(transaction, action=None),
        dataclasses.replace(transaction, action=dataclasses.replace(transaction.action, success=False)),
        dataclasses.replace(transaction, compute=dataclasses.replace(transaction.compute, success=False)),
        dataclasses.replace(transaction, address=usd.jetton.wallet(FAUCET)),
        with_message(state=usd.jetton.state(FAUCET)),
        with_message(state=None),
        with_message(bounced=True),
        with_message(kind="in"),
        with_message(body=Builder().uint(0x0F8A7EA5, 32).cells(rest_of(incoming.body)).end()),
        with_message(body=Builder().uint(INTERNAL_TRANSFER, 32).end()),
        with_message(body=internal_transfer(0, FAUCET)),
        with_message(body=Cell(bytes([2]) + bytes(32), 264, is_exotic=True)),
    ]
    assert [jetton_credit(each, [usd.jetton]) for each in forged] == [None] * len(forged)
    assert jetton_credit(transaction, []) is None
    assert jetton_credit(transaction, [USDT, usd.jetton]) is not None


def rest_of(cell: Cell) -> Cell:
    parts = Slice(cell)
    parts.uint(32)
    return parts.rest()


def test_what_our_jetton_wallet_returns_is_no_payment(ledger: Ledger, usd: Issuer) -> None:
    ours = Wallet("hot")
    ledger.pay(FAUCET, ours.address, 5 * TON)
    usd.issue(ledger, ours.address, 100)
    # More than there is: the wallet refuses, and the coin comes back.
    refused = ours.transfer(ledger, usd.transfer(ours, FAUCET, 10**9))
    assert [transaction.incoming.bounced for transaction in at(refused, ours.address)] == [False, True]
    assert coins(at(refused, ours.address), usd.jetton) == []


def test_the_wallets_of_usdt_have_the_addresses_of_the_main_net() -> None:
    # A wallet of the main net with its data at some time: 11,387,790.649145 USDT.
    owner = "0:23fa979918f1fe702db9100bf843e87c7015eccd39a4721e9b6bac170bc04ce3"
    later = boc.read_base64(
        "te6ccgEBAQEATAAAkwYKW203ZzmABH9S8yMeP84FtyIBfwh9D44CvZmnNI5D0211guF4"
        "CZxwAsROplLUCShZxn2kTkyjrdZWWw4ol9ZAosUb+zcNiHf6"
    )
    assert USDT.wallet(owner) == "0:2626cf30b702bdded845efc883efa45029ff59defdacc4ce7b8b0a5966d75002"
    data = Slice(later)
    assert (data.uint(4), data.coins(), data.address(), data.address()) == (0, 11_387_790_649_145, owner, USDT.master)
    assert USDT.owner(USDT.state(owner)) == owner
    assert USDT.owner(StateInit(code=USDT.wallet_code, data=later)) is None


@pytest.mark.parametrize(
    "data",
    [
        Builder().end(),
        Builder().uint(1, 4).coins(0).address(OURS).address(USDT.master).end(),
        Builder().uint(0, 4).coins(1).address(OURS).address(USDT.master).end(),
        Builder().uint(0, 4).coins(0).address(OURS).address(FAUCET).end(),
        Builder().uint(0, 4).coins(0).address("").address(USDT.master).end(),
        Builder().uint(0, 4).coins(0).address(OURS).address(USDT.master).bit(0).end(),
        Builder().uint(0, 4).coins(0).address(OURS).address(USDT.master).ref(Builder().end()).end(),
        Cell(bytes([2]) + bytes(32), 264, is_exotic=True),
    ],
)
def test_a_state_of_another_wallet_has_no_owner(data: Cell) -> None:
    assert USDT.owner(USDT.state(OURS)) == OURS
    assert USDT.owner(StateInit(code=USDT.wallet_code, data=data)) is None
    assert USDT.owner(StateInit(code=Builder().end(), data=USDT.state(OURS).data)) is None


def test_a_sender_may_be_in_the_masterchain(ledger: Ledger) -> None:
    sender = "-1:" + "33" * 32
    (transaction,) = ledger.send(sent_by(sender, messages.internal(OURS, TON, bounce=False)))
    assert coin_credit(transaction, []) == CoinCredit(recipient=OURS, units=TON, sender=sender)
