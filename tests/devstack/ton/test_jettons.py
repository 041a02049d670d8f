"""USDT on the simulated chain: its wallets are where the pinned code says, and move, lock and return jettons."""

from __future__ import annotations

from chains.ton import boc
from chains.ton.credits import coin_credit, jetton_credit
from chains.ton.jettons import JETTONS
from chains.ton.slices import Builder, Slice
from devstack.ton import jettons
from devstack.ton.buyer import Buyer
from tests.peers.ton.chain import BUYER, RICHES, TON, USDT, Ton

OWNER = "0:" + "a1" * 32
PINNED = JETTONS[USDT]


def value(answered: object, place: int = 0) -> str:
    return str(answered["stack"][place][1])  # type: ignore[index]


def address(answered: object, place: int = 0) -> str:
    cell = answered["stack"][place][1]["bytes"]  # type: ignore[index]
    return Slice(boc.read_base64(cell)).address()


def test_the_issuer_and_the_wallets_answer_like_the_real_ones() -> None:
    ton = Ton()
    ton.give_tokens(OWNER, 500)
    ton.mine()
    question = boc.write_base64(Builder().address(OWNER).end())
    answered = ton.ask("runGetMethod", address=USDT, method="get_wallet_address", stack=[["tvm.Slice", question]])
    assert (answered["exit_code"], address(answered)) == (0, PINNED.wallet(OWNER))

    issued = ton.ask("runGetMethod", address=USDT, method="get_jetton_data", stack=[])
    assert boc.read_base64(issued["stack"][4][1]["bytes"]) == PINNED.wallet_code
    wallet = ton.ask("runGetMethod", address=PINNED.wallet(OWNER), method="get_wallet_data", stack=[])
    assert (int(value(wallet), 16), address(wallet, 1), address(wallet, 2)) == (500, OWNER, USDT)
    shown = ton.ask("getAddressInformation", address=PINNED.wallet(OWNER))
    assert (shown["state"], boc.read_base64(shown["code"])) == ("active", PINNED.wallet_code)


def test_a_transfer_makes_the_wallet_notifies_and_returns_the_rest() -> None:
    ton = Ton()
    ton.send(ton.token(OWNER, 700))
    ton.mine()
    assert (ton.token_balance(OWNER), ton.token_balance(BUYER.address)) == (700, RICHES - 700)
    (arrived,) = ton.chain.ran[PINNED.wallet(OWNER)]
    credit = jetton_credit(arrived.transaction, [PINNED])
    assert credit is not None
    assert (credit.recipient, credit.units, credit.sender) == (OWNER, 700, BUYER.address)
    (notice,) = ton.chain.ran[OWNER]
    assert coin_credit(notice.transaction, [PINNED]) is None
    assert (ton.balance(OWNER), ton.balance(PINNED.wallet(OWNER))) == (1, jettons.GAS_UNITS // 10)
    # The gas that was not needed.
    assert ton.chain.ran[BUYER.address][-1].transaction.incoming.sender == PINNED.wallet(OWNER)


def test_jettons_that_a_wallet_does_not_have_or_take_come_back() -> None:
    ton = Ton()
    poor = Buyer("0c" * 32)
    ton.give(poor.address, TON)
    ton.mine()
    ton.send(ton.token(OWNER, 5, buyer=poor))
    ton.send(ton.token(OWNER, RICHES + 1))
    ton.mine()
    assert (ton.token_balance(OWNER), ton.token_balance(BUYER.address)) == (0, RICHES)
    ton.give_tokens(OWNER, 1)
    ton.mine()
    ton.lock(OWNER)
    ton.mine()
    ton.send(ton.token(OWNER, 7))
    ton.mine()
    assert (ton.token_balance(OWNER), ton.token_balance(BUYER.address)) == (1, RICHES)
    ton.lock(OWNER, 0)
    ton.mine()
    ton.send(ton.token(OWNER, 7))
    ton.mine()
    assert ton.token_balance(OWNER) == 8


def test_only_wallets_of_usdt_bring_jettons() -> None:
    ton = Ton()
    ton.give_tokens(OWNER, 1)
    ton.mine()
    forged = jettons.transferred("", OWNER, 10**9)
    ton.deliver("0:" + "ee" * 32, forged)
    ton.mine()
    assert (ton.token_balance(OWNER), ton.chain.ran[PINNED.wallet(OWNER)][-1].transaction.aborted) == (1, True)


def test_a_contract_without_the_method_says_so() -> None:
    ton = Ton()
    assert ton.ask("runGetMethod", address=OWNER, method="seqno", stack=[])["exit_code"] == -13
    assert ton.ask("runGetMethod", address=USDT, method="seqno", stack=[])["exit_code"] == 11
    ton.send(ton.transfer(OWNER, TON))
    ton.mine()
    assert int(value(ton.ask("runGetMethod", address=BUYER.address, method="seqno", stack=[])), 16) == 1
    before = ton.ask("runGetMethod", address=BUYER.address, method="seqno", stack=[], seqno=1)
    assert before["exit_code"] == -13


def test_a_setting_is_a_part_of_all_settings() -> None:
    ton = Ton()
    price = ton.ask("getConfigParam", config_id=21)["config"]["bytes"]
    assert Slice(boc.read_base64(price)).uint(8) == 0xD1
    assert ton.fault("getConfigParam", config_id=99).code == 500
