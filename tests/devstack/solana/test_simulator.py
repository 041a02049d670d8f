"""The simulated chain does as a Solana node does, as far as it is looked at from outside."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from solders.compute_budget import set_compute_unit_limit, set_compute_unit_price
from solders.keypair import Keypair
from solders.message import to_bytes_versioned
from solders.pubkey import Pubkey
from solders.transaction import VersionedTransaction

from devstack.solana.buyer import Buyer, new_address
from devstack.solana.programs import close_holding, give_away, move_tokens, write_memo
from devstack.solana.simulator import Simulator
from tests.peers.solana.chain import BUYER, NAMESAKE, NETWORK, SOL, TAXED, USDT, Solana, holding

ACCOUNT_RENT = 2_039_280
LEAST_COIN = 890_880
FEE = 5_000
OTHER = Buyer("0c" * 32)


def text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def holders(meta: Any, moment: str) -> dict[str, int]:
    return {one["owner"]: int(one["uiTokenAmount"]["amount"]) for one in meta[f"{moment}TokenBalances"]}


# Coins and tokens.


def test_a_transfer_is_in_the_balances_before_and_after(solana: Solana) -> None:
    to = new_address()
    signature = solana.send(solana.transfer(to, 5 * SOL))
    slot = solana.settle()

    (one,) = solana.block(slot - 1)["transactions"]
    keys = [key["pubkey"] for key in one["transaction"]["accountKeys"]]
    meta = one["meta"]
    paid = dict(zip(keys, map(int.__sub__, meta["postBalances"], meta["preBalances"]), strict=True))
    assert one["transaction"]["signatures"] == [signature]
    assert (paid[to], paid[BUYER.address], meta["fee"], meta["err"]) == (5 * SOL, -5 * SOL - FEE, FEE, None)
    assert solana.balance(to) == 5 * SOL


def test_a_token_comes_with_a_new_account_and_its_rent(solana: Solana) -> None:
    to = new_address()
    before = solana.balance(BUYER.address)
    signature = solana.send(solana.token(to, 7))
    solana.settle()

    meta = solana.included(signature)["meta"]
    assert holders(meta, "post")[to] == 7
    assert to not in holders(meta, "pre")
    assert solana.balance(BUYER.address) == before - ACCOUNT_RENT - FEE
    assert solana.token_balance(to) == 7
    assert [len(one["instructions"]) for one in meta["innerInstructions"]] == [4]
    (entry,) = [one for one in meta["postTokenBalances"] if one["owner"] == to]
    assert (entry["mint"], entry["programId"]) == (USDT, "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA")
    assert entry["uiTokenAmount"] == {
        "amount": "7", "decimals": 6, "uiAmount": 7e-06, "uiAmountString": "0.000007",
    }  # fmt: skip


def test_a_taxed_token_brings_less_than_was_sent_and_a_namesake_is_another_mint(solana: Solana) -> None:
    to = new_address()
    solana.send(solana.token(to, 1_000, mint=TAXED))
    solana.send(solana.token(to, 1_000, mint=NAMESAKE))
    solana.mine()

    assert solana.token_balance(to, TAXED) == 990
    assert solana.token_balance(to, NAMESAKE) == 1_000
    assert solana.token_balance(to, USDT) == 0
    assert len({holding(to, mint) for mint in (USDT, NAMESAKE, TAXED)}) == 3


def test_the_rent_refuses_small_coins_and_small_rests(solana: Solana) -> None:
    solana.give(OTHER.address, 2 * LEAST_COIN + FEE)
    small = solana.fault(
        "sendTransaction", text(solana.transfer(new_address(), LEAST_COIN - 1)), {"encoding": "base64"}
    )
    rest = solana.transfer(BUYER.address, 2 * LEAST_COIN - 1, buyer=OTHER)
    rests = solana.fault("sendTransaction", text(rest), {"encoding": "base64"})
    whole = solana.send(solana.transfer(BUYER.address, 2 * LEAST_COIN, buyer=OTHER))
    solana.settle()

    assert (small.code, small.data["err"]) == (-32002, {"InsufficientFundsForRent": {"account_index": 1}})
    assert rests.data["err"] == {"InsufficientFundsForRent": {"account_index": 0}}
    assert solana.included(whole)["meta"]["err"] is None
    assert solana.balance(OTHER.address) == 0
    assert solana.ask("getMinimumBalanceForRentExemption", 0) == LEAST_COIN
    assert solana.ask("getMinimumBalanceForRentExemption", 165) == ACCOUNT_RENT


def test_a_sweep_by_two_keys_brings_the_rent_home(solana: Solana) -> None:
    solana.give_tokens(OTHER.address, 9)
    before = solana.balance(BUYER.address)
    source, target = (Pubkey.from_string(holding(one)) for one in (OTHER.address, BUYER.address))
    calls = [
        move_tokens(source, Pubkey.from_string(USDT), target, OTHER.key, units=9, decimals=6),
        close_holding(source, BUYER.key, OTHER.key),
    ]
    signature = solana.send(solana.signed(calls, others=[OTHER.keypair]))
    solana.settle()

    assert solana.balance(BUYER.address) == before + ACCOUNT_RENT - 2 * FEE
    assert solana.token_balance(OTHER.address) == 0
    assert holders(solana.included(signature)["meta"], "pre")[OTHER.address] == 9
    assert OTHER.address not in holders(solana.included(signature)["meta"], "post")


def test_a_frozen_account_neither_gives_nor_takes_until_it_is_melted(solana: Solana) -> None:
    solana.give_tokens(OTHER.address, 9)
    solana.act("freeze", address=holding(OTHER.address))
    refused = solana.fault("sendTransaction", text(solana.token(OTHER.address, 1)), {"encoding": "base64"})
    assert refused.data["err"] == {"InstructionError": [1, {"Custom": 17}]}

    solana.act("freeze", address=holding(OTHER.address), is_frozen=False)
    solana.send(solana.token(OTHER.address, 1))
    solana.mine()
    assert solana.token_balance(OTHER.address) == 10


def test_an_account_changes_its_owner(solana: Solana) -> None:
    solana.give(OTHER.address, SOL)
    solana.give_tokens(OTHER.address, 9)
    place = Pubkey.from_string(holding(OTHER.address))
    signature = solana.send(solana.signed([give_away(place, BUYER.key, OTHER.key)], buyer=OTHER))
    solana.settle()

    meta = solana.included(signature)["meta"]
    assert (holders(meta, "pre"), holders(meta, "post")) == ({OTHER.address: 9}, {BUYER.address: 9})


def test_a_lookup_table_names_an_account_behind_the_others(solana: Solana) -> None:
    to = new_address()
    table = solana.table(new_address(), to)
    signature = solana.send(solana.signed([BUYER.coin(to, SOL)], tables=[table]))
    slot = solana.settle()

    one = solana.included(signature)
    assert to not in one["transaction"]["message"]["accountKeys"]
    assert one["transaction"]["message"]["addressTableLookups"][0]["writableIndexes"] == [1]
    assert one["meta"]["loadedAddresses"] == {"writable": [to], "readonly": []}
    (shown,) = solana.block(slot - 1)["transactions"]
    assert shown["transaction"]["accountKeys"][-1] == {
        "pubkey": to, "signer": False, "source": "lookupTable", "writable": True,
    }  # fmt: skip
    assert shown["meta"]["postBalances"][-1] == SOL
    assert [line["signature"] for line in solana.ask("getSignaturesForAddress", to)] == [signature]


def test_one_transaction_pays_several_and_carries_a_memo(solana: Solana) -> None:
    first, second = new_address(), new_address()
    calls = [BUYER.coin(first, SOL), BUYER.coin(second, 2 * SOL), write_memo("order 7 ✓", BUYER.key)]
    solana.send(solana.signed(calls))
    solana.settle()

    assert [solana.balance(one) for one in (first, second)] == [SOL, 2 * SOL]
    assert solana.ask("getSignaturesForAddress", first)[0]["memo"] == "[11] order 7 ✓"


# Failures.


def test_a_failed_transaction_is_in_a_block_and_costs_its_fee(solana: Solana) -> None:
    solana.give(OTHER.address, SOL)
    raw = solana.transfer(BUYER.address, 2 * SOL, buyer=OTHER)
    signature = solana.send(raw, skipPreflight=True)
    solana.settle()

    meta = solana.included(signature)["meta"]
    assert meta["err"] == {"InstructionError": [0, {"Custom": 1}]}
    assert meta["status"] == {"Err": meta["err"]}
    assert solana.balance(OTHER.address) == SOL - FEE
    (status,) = solana.ask("getSignatureStatuses", [signature])["value"]
    assert (status["err"], status["confirmationStatus"]) == (meta["err"], "finalized")


def test_who_cannot_pay_the_fee_enters_no_block(solana: Solana) -> None:
    signature = solana.send(solana.transfer(BUYER.address, 1, buyer=OTHER), skipPreflight=True)
    solana.settle()

    assert solana.included(signature) is None
    assert solana.block(solana.chain.head.slot - 1)["transactions"] == []
    assert solana.ask("getSignatureStatuses", [signature], {"searchTransactionHistory": True})["value"] == [None]


def test_a_wrong_signature_and_rubbish_are_refused(solana: Solana) -> None:
    raw = bytearray(solana.transfer(OTHER.address, SOL))
    raw[5] ^= 1
    assert solana.fault("sendTransaction", text(bytes(raw)), {"encoding": "base64"}).code == -32003
    for rubbish in (b"", b"\1abc", bytes(raw) + b"\0"):
        assert solana.fault("sendTransaction", text(rubbish), {"encoding": "base64"}).code == -32602
    assert solana.fault("sendTransaction", "ß", {"encoding": "base64"}).code == -32602
    # Without the check beforehand it is taken, and lands nowhere.
    signature = solana.send(bytes(raw), skipPreflight=True)
    solana.settle()
    assert solana.included(signature) is None


def test_a_price_below_the_floor_lands_nowhere_until_it_dies(solana: Solana) -> None:
    solana.act("price", floor=1_000)
    cheap = solana.signed([set_compute_unit_price(999), BUYER.coin(OTHER.address, SOL)])
    dear = solana.signed([set_compute_unit_price(1_000), BUYER.coin(OTHER.address, 2 * SOL)])
    signatures = [solana.send(raw) for raw in (cheap, dear)]
    solana.mine()
    assert solana.chain.waiting == 1
    assert solana.balance(OTHER.address) == 2 * SOL

    solana.mine(148)
    assert solana.chain.waiting == 1
    solana.mine()
    assert solana.chain.waiting == 0
    assert solana.ask("getSignatureStatuses", signatures, {"searchTransactionHistory": True})["value"][0] is None


def test_the_floor_of_one_account_is_asked_only_of_those_that_write_it(solana: Solana) -> None:
    busy, calm = new_address(), new_address()
    solana.act("price", floor=7, accounts=[busy])
    for to in (busy, calm):
        solana.send(solana.transfer(to, SOL))
    solana.mine()

    assert [solana.balance(to) for to in (busy, calm)] == [0, SOL]
    assert [solana.ask("getRecentPrioritizationFees", keys)[-1]["prioritizationFee"] for keys in ([busy], [calm])] == [
        7,
        0,
    ]


# The life of a transaction.


def test_a_blockhash_lives_for_150_blocks(solana: Solana) -> None:
    raws = [solana.transfer(OTHER.address, SOL + number) for number in range(2)]
    blockhash = solana.chain.head.hash
    latest = solana.ask("getLatestBlockhash", {"commitment": "processed"})["value"]
    assert latest == {"blockhash": blockhash, "lastValidBlockHeight": solana.chain.head.height + 150}

    solana.mine(149)
    assert solana.ask("isBlockhashValid", blockhash, {"commitment": "processed"})["value"] is True
    landed = solana.send(raws[0])
    solana.mine()
    assert solana.chain.head.height == latest["lastValidBlockHeight"]
    assert solana.chain.status(landed) is not None

    assert solana.ask("isBlockhashValid", blockhash, {"commitment": "processed"})["value"] is False
    refused = solana.fault("sendTransaction", text(raws[1]), {"encoding": "base64", "preflightCommitment": "processed"})
    assert (refused.code, refused.data["err"]) == (-32002, "BlockhashNotFound")
    assert refused.message == "Transaction simulation failed: Blockhash not found"
    solana.send(raws[1], skipPreflight=True)
    solana.mine()
    assert solana.chain.waiting == 0
    assert solana.balance(OTHER.address) == SOL


def test_the_same_bytes_land_once(solana: Solana) -> None:
    raw = solana.transfer(OTHER.address, SOL)
    assert solana.send(raw) == solana.send(raw)
    solana.mine()
    again = solana.fault("sendTransaction", text(raw), {"encoding": "base64", "preflightCommitment": "processed"})
    solana.send(raw, skipPreflight=True)
    solana.mine()

    assert (again.code, again.data["err"]) == (-32002, "AlreadyProcessed")
    assert solana.balance(OTHER.address) == SOL


def test_a_blockhash_that_is_not_final_yet_is_unknown_to_a_check_at_finalized(solana: Solana) -> None:
    solana.mine()
    raw = solana.transfer(OTHER.address, SOL)

    refused = solana.fault("sendTransaction", text(raw), {"encoding": "base64"})
    assert refused.data["err"] == "BlockhashNotFound"


def test_simulation_keeps_nothing_and_shows_accounts_and_units(solana: Solana) -> None:
    raw = solana.token(OTHER.address, 7)
    options = {
        "encoding": "base64", "commitment": "processed",
        "accounts": {"encoding": "base64", "addresses": [holding(OTHER.address)]},
    }  # fmt: skip
    answer = solana.ask("simulateTransaction", text(raw), options)["value"]
    solana.settle()

    assert answer["err"] is None
    assert 10_000 < answer["unitsConsumed"] < 40_000
    assert base64.b64decode(answer["accounts"][0]["data"][0])[64:72] == (7).to_bytes(8, "little")
    assert solana.token_balance(OTHER.address) == 0
    stale = solana.signed([BUYER.coin(OTHER.address, SOL)])
    solana.mine(151)
    assert solana.ask("simulateTransaction", text(stale), {"encoding": "base64"})["value"]["err"] == "BlockhashNotFound"
    replaced = solana.ask("simulateTransaction", text(stale), {"encoding": "base64", "replaceRecentBlockhash": True})
    assert replaced["value"]["err"] is None


def test_the_fee_has_a_part_for_signatures_and_one_for_the_price(solana: Solana) -> None:
    calls = [set_compute_unit_limit(1_000), set_compute_unit_price(1_000_000), BUYER.coin(OTHER.address, SOL)]
    raw = solana.signed(calls)
    message = text(to_bytes_versioned(VersionedTransaction.from_bytes(raw).message))
    assert solana.ask("getFeeForMessage", message, {"commitment": "processed"})["value"] == FEE + 1_000

    signature = solana.send(raw)
    solana.settle()
    assert solana.included(signature)["meta"]["fee"] == FEE + 1_000
    solana.mine(150)
    assert solana.ask("getFeeForMessage", message)["value"] is None


# Slots and history.


def test_height_counts_blocks_and_slots_have_holes(solana: Solana) -> None:
    first = solana.mine()
    solana.chain.skip(1_000)
    second = solana.mine()
    solana.settle()

    assert second == first + 1_001
    assert solana.block(second)["parentSlot"] == first
    assert solana.block(second)["blockHeight"] == solana.block(first)["blockHeight"] + 1
    assert solana.block(second)["previousBlockhash"] == solana.block(first)["blockhash"]
    assert solana.fault("getBlock", first + 5).code == -32007
    assert solana.ask("getBlocks", first, second) == [first, second]
    assert solana.ask("getBlocks", first + 1, second - 1) == []
    assert solana.fault("getBlocks", first, first + 500_001).code == -32602
    assert solana.ask("getSlot") - solana.ask("getBlockHeight") > 20_000_000


def test_every_tenth_slot_has_no_block() -> None:
    solana = Solana(skip_every=10)
    solana.mine(30)

    slots = [block.slot for block in solana.chain.blocks]
    assert len(slots) == 31
    assert [slot for slot in range(slots[0], slots[-1]) if slot not in slots] == [
        slot for slot in range(slots[0] + 1, slots[-1]) if slot % 10 == 0
    ]


def test_each_commitment_has_its_own_head_and_state() -> None:
    solana = Solana(finality_lag=3, confirmation_lag=1)
    solana.mine(5)
    signature = solana.send(solana.transfer(OTHER.address, SOL))
    slot = solana.mine()

    def status() -> tuple[str, int | None]:
        (one,) = solana.ask("getSignatureStatuses", [signature])["value"]
        return one["confirmationStatus"], one["confirmations"]

    def balances() -> list[int]:
        return [solana.balance(OTHER.address, name) for name in ("processed", "confirmed", "finalized")]

    assert [solana.ask("getSlot", {"commitment": name}) for name in ("processed", "confirmed", "finalized")] == [
        slot, slot - 1, slot - 3,
    ]  # fmt: skip
    assert (status(), balances()) == (("processed", 0), [SOL, 0, 0])
    assert solana.fault("getBlock", slot, {"commitment": "confirmed"}).code == -32004
    assert solana.fault("getBlock", slot, {"commitment": "processed"}).code == -32602
    solana.mine()
    assert (status(), balances()) == (("confirmed", 1), [SOL, SOL, 0])
    assert solana.included(signature)["slot"] == slot
    assert solana.fault("getBlock", slot).code == -32004
    assert solana.ask("getTransaction", signature) is None
    solana.mine(2)
    assert (status(), balances()) == (("finalized", None), [SOL, SOL, SOL])
    assert solana.ask("getMultipleAccounts", [OTHER.address], {"encoding": "base64"})["context"]["slot"] == slot
    assert solana.fault("getSlot", {"minContextSlot": slot + 9}).code == -32016


def test_a_pruned_block_is_told_by_another_code(solana: Solana) -> None:
    signature = solana.send(solana.transfer(OTHER.address, SOL))
    slot = solana.mine()
    solana.mine(5)
    solana.chain.prune(slot + 1)

    assert solana.fault("getBlock", slot).code == -32001
    assert solana.ask("getFirstAvailableBlock") == slot + 1
    assert solana.ask("getBlocks", slot, slot + 2) == [slot + 1, slot + 2]
    assert solana.included(signature) is None
    assert solana.ask("getSignaturesForAddress", OTHER.address) == []


def test_an_old_status_is_told_only_by_a_search_of_history(solana: Solana) -> None:
    signature = solana.send(solana.transfer(OTHER.address, SOL))
    solana.mine(152)

    assert solana.ask("getSignatureStatuses", [signature])["value"] == [None]
    (status,) = solana.ask("getSignatureStatuses", [signature], {"searchTransactionHistory": True})["value"]
    assert status["confirmationStatus"] == "finalized"


def test_a_version_that_is_not_asked_for_hides_the_whole_block(solana: Solana) -> None:
    signatures = [
        solana.send(solana.transfer(OTHER.address, SOL + place, version=version))
        for place, version in enumerate(("legacy", 0, 1))
    ]
    slot = solana.mine()
    solana.mine()

    assert {one["version"] for one in solana.block(slot)["transactions"]} == {"legacy", 0, 1}
    refused = solana.fault("getBlock", slot, {"maxSupportedTransactionVersion": 0})
    assert (refused.code, refused.message[:27]) == (-32015, "Transaction version (1) is ")
    assert solana.fault("getBlock", slot).code == -32015
    assert "version" not in solana.ask("getTransaction", signatures[0])
    assert solana.fault("getTransaction", signatures[2], {"maxSupportedTransactionVersion": 0}).code == -32015
    assert solana.ask("getBlock", slot, {"transactionDetails": "signatures"})["signatures"] == signatures
    assert "transactions" not in solana.ask("getBlock", slot, {"transactionDetails": "none"})


def test_signatures_of_an_address_are_paged_from_the_newest(solana: Solana) -> None:
    sent = []
    for number in range(5):
        sent.append(solana.send(solana.transfer(OTHER.address, SOL + number)))
        solana.mine()
    solana.mine()

    def page(**options: object) -> list[str]:
        return [line["signature"] for line in solana.ask("getSignaturesForAddress", OTHER.address, options)]

    assert page() == sent[::-1]
    assert page(limit=2) == [sent[4], sent[3]]
    assert page(before=sent[3], limit=2) == [sent[2], sent[1]]
    assert page(until=sent[2]) == [sent[4], sent[3]]


def test_a_reorg_takes_back_what_is_not_final() -> None:
    solana = Solana(finality_lag=3, confirmation_lag=0)
    raws = [solana.transfer(OTHER.address, SOL), solana.token(OTHER.address, 7)]
    signatures = [solana.send(raw) for raw in raws]
    slot = solana.mine()
    solana.mine()
    old = solana.block(slot)["blockhash"]
    solana.chain.reorg(2, [(text(raws[1]), 1)])

    assert solana.block(slot)["blockhash"] != old
    assert solana.included(signatures[0]) is None
    assert solana.included(signatures[1])["slot"] == slot + 1
    assert (solana.balance(OTHER.address), solana.token_balance(OTHER.address)) == (0, 7)
    with pytest.raises(LookupError):
        solana.chain.reorg(1_000)


# The file.


def test_a_file_brings_back_the_same_chain(tmp_path: Path) -> None:
    path = tmp_path / "chain.jsonl"
    first = Simulator(NETWORK.chain_identity, skip_every=4, path=path)
    first.act("coin", {"address": BUYER.address, "units": 100 * SOL})
    first.act("mint", {"address": USDT, "decimals": 6})
    first.act("tokens", {"address": BUYER.address, "mint": USDT, "units": 100})
    solana = Solana()
    solana.chain = first
    solana.send(solana.token(OTHER.address, 7))
    first.mine(3)
    solana.send(solana.transfer(OTHER.address, SOL))
    first.mine()
    first.reorg(1)
    first.advance(500)
    first.mine(2)
    with path.open("ab") as file:
        file.write(b'{"act": "bl')

    second = Simulator(NETWORK.chain_identity, skip_every=4, path=path)
    assert [block.hash for block in second.blocks] == [block.hash for block in first.blocks]
    solana.chain = second
    assert (solana.balance(OTHER.address), solana.token_balance(OTHER.address)) == (0, 7)
    assert second.now_s() > second.blocks[0].time_s + 499
    assert second.mine() == first.mine()


def test_an_unknown_method_and_a_bad_address_are_refused(solana: Solana) -> None:
    assert solana.fault("getSecrets").code == -32601
    assert solana.fault("getBalance", "no address").code == -32602
    assert solana.fault("getBalance").code == -32602
    assert solana.fault("getBlock", "7").code == -32602
    assert solana.fault("getSlot", {"commitment": "hoped"}).code == -32602
    assert solana.fault("getTokenAccountBalance", OTHER.address).code == -32602
    assert solana.fault("getTokenAccountBalance", BUYER.address).code == -32602
    assert solana.fault("getMultipleAccounts", [str(Keypair().pubkey())] * 101).code == -32602
