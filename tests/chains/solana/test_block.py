"""Balances before and after a transaction show payments to us, however these were made; nothing else counts."""

from __future__ import annotations

import base64

import pytest
from solders.instruction import AccountMeta, Instruction
from solders.pubkey import Pubkey

from chains.base import Transfer
from devstack.solana.programs import TOKEN, close_holding, create_associated, give_away, holding_bytes, move_tokens
from tests.chains.solana.world import ACCOUNT, HOT_WALLET, OTHER, OURS, SECOND, THEIRS, World
from tests.peers.solana.chain import BUYER, DECIMALS, NAMESAKE, SOL, TAXED, USDC, USDT, holding

WRAPPED = "So11111111111111111111111111111111111111112"
RENT = 2_039_280


def test_sol_and_tokens_are_found_with_their_sender(chain: World) -> None:
    paid, moved = chain.solana.transfer(OURS, 3 * SOL), chain.solana.token(OURS, 5_000_000)
    theirs = chain.solana.transfer(THEIRS, SOL)

    scan = chain.included(paid, moved, theirs)

    sol, usdt = sorted(scan.transfers, key=lambda each: each.currency)
    assert (sol.ordinal, sol.currency, sol.units, sol.sender, sol.recipient) == (
        "1",
        "SOL",
        3 * SOL,
        BUYER.address,
        OURS,
    )
    assert (usdt.currency, usdt.units, usdt.sender, usdt.recipient) == ("USDT", 5_000_000, BUYER.address, OURS)
    assert {sol.txid, usdt.txid} < {txid for _, txid in scan.sent}
    assert {signer for signer, _ in scan.sent} == {BUYER.address}
    assert len(scan.sent) == 3


def test_two_of_ours_in_one_transaction(chain: World) -> None:
    calls = [BUYER.coin(OURS, SOL), BUYER.coin(SECOND, 2 * SOL), *chain.solana.token_calls(SECOND, 7)]

    scan = chain.included(chain.solana.signed(calls))

    assert sorted((each.currency, each.units, each.recipient) for each in scan.transfers) == sorted(
        [("SOL", SOL, OURS), ("SOL", 2 * SOL, SECOND), ("USDT", 7, SECOND)]
    )
    assert len({(each.txid, each.ordinal) for each in scan.transfers}) == 3
    assert len({each.txid for each in scan.transfers}) == 1
    keys = chain.solana.block(scan.block.height)["transactions"][0]["transaction"]["accountKeys"]
    places = {"SOL": lambda each: each.recipient, "USDT": lambda each: holding(each.recipient)}
    assert all(keys[int(each.ordinal)]["pubkey"] == places[each.currency](each) for each in scan.transfers)


def test_several_payments_to_one_address_are_one(chain: World) -> None:
    calls = [BUYER.coin(OURS, SOL), BUYER.coin(OURS, 2 * SOL)]

    assert chain.credits(chain.solana.signed(calls)) == [("SOL", 3 * SOL, OURS)]


def test_namesake_token_with_a_fee(chain: World) -> None:
    assert chain.credits(chain.solana.token(OURS, 5_000_000, mint=TAXED)) == []
    assert chain.credits(chain.solana.token(OURS, 5_000_000, mint=NAMESAKE)) == []
    assert chain.credits(chain.solana.token(OURS, 5_000_000, mint=USDC)) == [("USDC", 5_000_000, OURS)]


def test_a_failed_transaction_pays_nothing_and_has_its_signer(chain: World) -> None:
    chain.solana.give_tokens(OTHER.address, 5)
    paid = [OTHER.coin(OURS, SOL), *chain.solana.token_calls(OURS, 9, buyer=OTHER)]

    scan = chain.included(chain.solana.signed(paid, buyer=OTHER), fails=True)

    assert scan.transfers == ()
    assert [signer for signer, _ in scan.sent] == [OTHER.address]


def test_keys_of_a_lookup_table_are_paid_like_others(chain: World) -> None:
    table = chain.solana.table(OURS, holding(SECOND))
    chain.solana.give_tokens(SECOND, 1)
    tokens = move_tokens(
        Pubkey.from_string(holding(BUYER.address)), Pubkey.from_string(USDT), Pubkey.from_string(holding(SECOND)),
        BUYER.key, units=6, decimals=DECIMALS,
    )  # fmt: skip
    chain.solana.mine()

    raw = chain.solana.signed([BUYER.coin(OURS, SOL), tokens], tables=[table])

    assert chain.credits(raw) == [("SOL", SOL, OURS), ("USDT", 6, SECOND)]


@pytest.mark.parametrize("version", ["legacy", 0, 1])
def test_every_version_is_read(chain: World, version: int | str) -> None:
    assert chain.credits(chain.solana.transfer(OURS, SOL, version=version)) == [("SOL", SOL, OURS)]


def test_rent_that_a_program_returns_to_us_is_sol(chain: World) -> None:
    chain.solana.give_tokens(OTHER.address, 0)
    source = Pubkey.from_string(holding(OTHER.address))
    close = close_holding(source, Pubkey.from_string(OURS), OTHER.key)

    assert chain.credits(chain.solana.signed([close], buyer=OTHER)) == [("SOL", RENT, OURS)]


def test_rent_home_is_no_topup(chain: World) -> None:
    """The rent of a token account that a sweep closes comes from its owner."""
    chain.solana.give_tokens(OTHER.address, 50)
    source, target = (Pubkey.from_string(holding(one)) for one in (OTHER.address, BUYER.address))
    swept = [
        move_tokens(source, Pubkey.from_string(USDT), target, OTHER.key, units=50, decimals=DECIMALS),
        close_holding(source, BUYER.key, OTHER.key),
    ]

    slot = chain.included(chain.solana.signed(swept, others=[OTHER.keypair])).block.height
    scan = chain.scan(slot, {BUYER.address})

    assert {(each.currency, each.sender) for each in scan.transfers} == {
        ("SOL", OTHER.address),
        ("USDT", OTHER.address),
    }


def test_an_account_that_becomes_ours_brings_nothing(chain: World) -> None:
    chain.solana.give_tokens(OTHER.address, 50)
    source = Pubkey.from_string(holding(OTHER.address))
    given = give_away(source, Pubkey.from_string(OURS), OTHER.key)
    more = move_tokens(
        Pubkey.from_string(holding(BUYER.address)), Pubkey.from_string(USDT), source, BUYER.key,
        units=6, decimals=DECIMALS,
    )  # fmt: skip
    raw = chain.solana.signed([given, more], others=[OTHER.keypair])

    assert chain.credits(raw) == []
    # It is ours from then on, and still not the account that is swept.
    assert chain.credits(chain.solana.signed([more])) == []


def test_a_token_account_of_ours_at_another_address_brings_nothing(chain: World) -> None:
    data = holding_bytes(Pubkey.from_string(USDT), Pubkey.from_string(OURS), 0)
    chain.solana.act(
        "account", address=str(ACCOUNT.pubkey()), lamports=RENT, owner=str(TOKEN), data=base64.b64encode(data).decode()
    )
    more = move_tokens(
        Pubkey.from_string(holding(BUYER.address)), Pubkey.from_string(USDT), ACCOUNT.pubkey(), BUYER.key,
        units=6, decimals=DECIMALS,
    )  # fmt: skip

    scan = chain.included(chain.solana.signed([more]))

    assert scan.transfers == ()
    assert len(scan.sent) == 1


def test_wrapped_sol_and_the_account_s_rent_bring_nothing(chain: World) -> None:
    chain.solana.act("mint", address=WRAPPED, decimals=9)
    source = create_associated(BUYER.key, Pubkey.from_string(OURS), Pubkey.from_string(WRAPPED))
    target = Pubkey.from_string(holding(OURS, WRAPPED))
    sync = Instruction(TOKEN, b"\x11", [AccountMeta(target, is_signer=False, is_writable=True)])

    scan = chain.included(chain.solana.signed([source, BUYER.coin(str(target), SOL), sync]))

    assert scan.transfers == ()
    assert len(scan.sent) == 1


def _sender(chain: World, raw: bytes) -> str:
    (transfer,) = chain.included(raw).transfers
    assert isinstance(transfer, Transfer)
    return transfer.sender


def test_the_sender_is_the_one_owner_whose_balance_fell(chain: World) -> None:
    chain.solana.give_tokens(OTHER.address, 50)
    coin, tokens = OTHER.coin(OURS, SOL), chain.solana.token_calls(OURS, 9, buyer=OTHER)

    # Another key pays the fee, and in part the rent of an account.
    assert _sender(chain, chain.solana.signed([coin], others=[OTHER.keypair])) == OTHER.address
    assert _sender(chain, chain.solana.signed(tokens, others=[OTHER.keypair])) == OTHER.address


def test_of_two_payers_none_is_the_sender(chain: World) -> None:
    chain.solana.give_tokens(OTHER.address, 50)
    coins = [BUYER.coin(OURS, SOL), OTHER.coin(OURS, SOL)]
    tokens = [*chain.solana.token_calls(OURS, 9), *chain.solana.token_calls(OURS, 9, buyer=OTHER)]

    assert _sender(chain, chain.solana.signed(coins, others=[OTHER.keypair])) == ""
    assert _sender(chain, chain.solana.signed(tokens, others=[OTHER.keypair])) == ""


def test_every_signer_is_named(chain: World) -> None:
    scan = chain.included(chain.solana.signed([OTHER.coin(THEIRS, SOL)], others=[OTHER.keypair]))

    [txid] = {txid for _, txid in scan.sent}
    assert scan.sent == ((BUYER.address, txid), (OTHER.address, txid))


def test_the_hot_wallet_is_asked_for_like_any_address(chain: World) -> None:
    assert chain.credits(chain.solana.transfer(HOT_WALLET, SOL)) == [("SOL", SOL, HOT_WALLET)]
