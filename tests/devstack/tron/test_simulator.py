"""The simulated chain does what a TRON node does, as far as it is looked at from outside."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from devstack.tron import wire
from devstack.tron.rules import RefusedError
from devstack.tron.simulator import Simulator
from tests.peers.tron.chain import BUYER, FORGER, FORWARDER, LIFE_MS, NETWORK, TRX, USDT, Key, Tron

OTHER = Key(0xA11CE)
THIRD = wire.shown(b"\xc3" * 20)
DAY_S = 86_400


def refused(tron: Tron, whole: bytes) -> str:
    with pytest.raises(RefusedError) as caught:
        tron.send(whole)
    return caught.value.code


def test_a_transfer_to_a_new_address_creates_an_account_for_a_fee(tron: Tron) -> None:
    before = tron.balance(BUYER.address)
    txid = tron.send(tron.transfer(OTHER.address, 5 * TRX))
    tron.mine()

    info = tron.info(txid)
    assert (info["fee"], info["receipt"]) == (1_100_000, {"net_fee": 100_000})
    assert tron.balance(OTHER.address) == 5 * TRX
    assert tron.balance(BUYER.address) == before - 5 * TRX - 1_100_000
    assert tron.ask("wallet/gettransactionbyid", value=txid)["ret"] == [{"contractRet": "SUCCESS"}]


def test_bandwidth_is_free_until_it_is_used_up_and_comes_back_within_a_day(tron: Tron) -> None:
    tron.give(OTHER.address, TRX)
    size = len(tron.transfer(OTHER.address, 1)) + 64
    fees = []
    for _ in range(3):
        txid = tron.send(tron.transfer(OTHER.address, 1))
        tron.mine()
        fees.append(tron.info(txid).get("fee", 0))
    assert fees == [0, 0, size * 1_000]

    tron.chain.advance(DAY_S)
    tron.mine()
    txid = tron.send(tron.transfer(OTHER.address, 1))
    tron.mine()
    assert tron.info(txid)["receipt"] == {"net_usage": size}


def test_a_token_transfer_has_its_log_and_burns_energy_about_as_the_real_one_does(tron: Tron) -> None:
    first = tron.send(tron.token(OTHER.address, 7))
    tron.mine()
    second = tron.send(tron.token(OTHER.address, 7))
    tron.mine()

    info = tron.info(first)
    (log,) = info["log"]
    assert log["address"] == wire.raw_of(USDT).hex()
    assert [topic[-40:] for topic in log["topics"][1:]] == [BUYER.raw.hex(), OTHER.raw.hex()]
    assert int(log["data"], 16) == 7
    assert info["receipt"]["result"] == "SUCCESS"
    assert info["receipt"]["energy_fee"] == 100 * info["receipt"]["energy_usage_total"]
    assert 120_000 < info["receipt"]["energy_usage_total"] < 135_000
    assert 45_000 < tron.info(second)["receipt"]["energy_usage_total"] < 70_000
    assert tron.token_balance(OTHER.address) == 14
    # Who holds tokens only is no account yet.
    assert tron.ask("wallet/getaccount", address=OTHER.address) == {}


def test_staked_energy_is_used_before_any_is_bought(tron: Tron) -> None:
    tron.act("stake", address=BUYER.address, energy=100_000)
    txid = tron.send(tron.token(OTHER.address, 7))
    tron.mine()

    receipt = tron.info(txid)["receipt"]
    assert receipt["energy_usage"] == 100_000
    assert receipt["energy_fee"] == 100 * (receipt["energy_usage_total"] - 100_000)


def test_a_reverted_call_moves_nothing_and_burns_its_energy(tron: Tron) -> None:
    tron.give(OTHER.address, 100 * TRX)
    txid = tron.send(tron.token(THIRD, 1, key=OTHER))
    tron.mine()

    info = tron.info(txid)
    assert (info["result"], info["receipt"]["result"]) == ("FAILED", "REVERT")
    assert bytes.fromhex(info["resMessage"]) == b"REVERT opcode executed"
    assert 0 < info["fee"] < 2 * TRX
    assert tron.balance(OTHER.address) == 100 * TRX - info["fee"]


def test_too_low_a_limit_burns_all_of_it(tron: Tron) -> None:
    txid = tron.send(tron.token(OTHER.address, 7, fee_limit=2 * TRX))
    tron.mine()

    info = tron.info(txid)
    assert (info["receipt"]["result"], info["receipt"]["energy_fee"]) == ("OUT_OF_ENERGY", 2 * TRX)
    assert "log" not in info
    assert tron.token_balance(OTHER.address) == 0


def test_a_frozen_holder_moves_nothing() -> None:
    tron = Tron(code="token_frozen")
    tron.send(tron.called(USDT, "freeze(address)", BUYER.address))
    tron.mine()
    txid = tron.send(tron.token(OTHER.address, 7))
    tron.mine()

    assert tron.info(txid)["receipt"]["result"] == "REVERT"
    asked = {"owner_address": BUYER.address, "contract_address": USDT, "function_selector": "isFrozen(address)"}
    parameter = BUYER.raw.rjust(32, b"\0").hex()
    answer = tron.ask("wallet/triggerconstantcontract", parameter=parameter, **asked)
    assert int(answer["constant_result"][0], 16) == 1


@pytest.mark.parametrize(("function", "is_rejected"), [("forward", False), ("forward_and_revert", True)])
def test_internal_transfers_are_shown_separately(tron: Tron, function: str, *, is_rejected: bool) -> None:
    tron.act("code", address=FORWARDER, code="forwarder")
    txid = tron.send(tron.called(FORWARDER, f"{function}(address)", OTHER.address, units=3 * TRX))
    tron.mine()

    (internal,) = tron.info(txid)["internal_transactions"]
    assert internal["callValueInfo"] == [{"callValue": 3 * TRX}]
    assert internal.get("rejected", False) == is_rejected
    assert tron.balance(OTHER.address) == (0 if is_rejected else 3 * TRX)


def test_a_log_names_its_contract(tron: Tron) -> None:
    tron.act("code", address=FORGER, code="forger")
    txid = tron.send(tron.called(FORGER, "erc20(address,uint256)", OTHER.address, 9))
    tron.mine()

    assert [log["address"] for log in tron.info(txid)["log"]] == [wire.raw_of(FORGER).hex()]


def test_a_namesake_moves_beside_the_real_coins(tron: Tron) -> None:
    tron.act("asset", address=BUYER.address, asset="USDT", units=100)
    whole = BUYER.sign(tron.raw(wire.asset_transfer(BUYER.raw, OTHER.raw, 40, asset="USDT")))
    tron.send(whole)
    tron.mine()

    assert tron.ask("wallet/getaccount", address=OTHER.address)["assetV2"] == [{"key": "USDT", "value": 40}]
    assert (tron.token_balance(OTHER.address), tron.balance(OTHER.address)) == (0, 0)


def test_a_known_transaction_is_refused_by_its_code(tron: Tron) -> None:
    whole = tron.transfer(OTHER.address, 1)
    tron.send(whole)
    assert refused(tron, whole) == "DUP_TRANSACTION_ERROR"
    tron.mine()
    assert refused(tron, whole) == "DUP_TRANSACTION_ERROR"


def test_an_invalid_transaction_is_refused_by_its_code(tron: Tron) -> None:
    tron.mine()
    elsewhere = wire.raw_data(
        wire.transfer(BUYER.raw, OTHER.raw, 1), block_id="0" * 12 + "0001" + "ee" * 24,
        now_ms=tron.chain.now_ms(), expiration_ms=tron.chain.now_ms() + LIFE_MS,
    )  # fmt: skip
    move = wire.transfer(BUYER.raw, OTHER.raw, 1)
    tron.give(OTHER.address, 1)

    assert refused(tron, BUYER.sign(elsewhere)) == "TAPOS_ERROR"
    assert refused(tron, BUYER.sign(tron.raw(move, life_ms=-1_000))) == "TRANSACTION_EXPIRATION_ERROR"
    assert refused(tron, BUYER.sign(tron.raw(move, life_ms=DAY_S * 1_000 + 60_000))) == "TRANSACTION_EXPIRATION_ERROR"
    assert refused(tron, OTHER.sign(tron.raw(move))) == "SIGERROR"
    assert refused(tron, wire.field(1, tron.raw(move))) == "SIGERROR"
    assert refused(tron, tron.transfer(BUYER.address, 5, key=OTHER)) == "CONTRACT_VALIDATE_ERROR"
    assert refused(tron, tron.transfer(USDT, 5)) == "CONTRACT_VALIDATE_ERROR"
    assert refused(tron, tron.called(THIRD, "transfer(address,uint256)", THIRD, 1)) == "CONTRACT_VALIDATE_ERROR"


def test_an_account_without_coin_for_its_bytes_sends_nothing(tron: Tron) -> None:
    tron.give(OTHER.address, 2)
    for _ in range(2):
        tron.send(tron.transfer(BUYER.address, 1, key=OTHER))
        tron.mine()

    assert refused(tron, tron.transfer(BUYER.address, 1, key=OTHER)) == "BANDWITH_ERROR"


def test_an_account_obeys_the_keys_of_its_permission(tron: Tron) -> None:
    tron.act("permission", address=BUYER.address, threshold=1, keys=[OTHER.address])
    move = wire.transfer(BUYER.raw, OTHER.raw, 1)

    assert refused(tron, BUYER.sign(tron.raw(move))) == "SIGERROR"
    tron.send(OTHER.sign(tron.raw(move)))
    owner_permission = tron.ask("wallet/getaccount", address=BUYER.address)["owner_permission"]
    assert owner_permission["keys"] == [{"address": OTHER.address, "weight": 1}]


def test_an_expired_transaction_is_in_no_block(tron: Tron) -> None:
    tron.mine()
    whole = tron.transfer(OTHER.address, 1)
    tron.chain.reorg(1, [(whole.hex(), 0)])
    assert tron.info(wire.read_transaction(whole).txid)["blockNumber"] == 1

    late = tron.transfer(OTHER.address, 2)
    tron.chain.advance(2 * LIFE_MS // 1_000)
    tron.mine(2)
    tron.chain.reorg(1, [(late.hex(), 0)])
    assert tron.info(wire.read_transaction(late).txid) == {}


def test_solidity_lags_and_shows_its_own_state(tron: Tron) -> None:
    txid = tron.send(tron.transfer(OTHER.address, 5))
    tron.mine(19)
    assert tron.ask("walletsolidity/gettransactioninfobyid", value=txid) == {}
    assert tron.ask("walletsolidity/getaccount", address=OTHER.address) == {}

    tron.mine()
    assert tron.ask("walletsolidity/gettransactioninfobyid", value=txid)["blockNumber"] == 1
    assert tron.ask("walletsolidity/getaccount", address=OTHER.address)["balance"] == 5
    assert tron.ask("walletsolidity/getnowblock")["block_header"]["raw_data"]["number"] == 1


def test_a_reorg_makes_other_blocks_and_takes_back_what_it_does_not_bring_again(tron: Tron) -> None:
    kept, gone = tron.transfer(OTHER.address, 5), tron.transfer(OTHER.address, 7)
    tron.send(kept)
    tron.send(gone)
    tron.mine(3)
    before = list(tron.chain.ids)
    tron.chain.reorg(3, [(kept.hex(), 1)])

    assert len(tron.chain.ids) == len(before)
    assert not set(before[1:]) & set(tron.chain.ids)
    assert tron.balance(OTHER.address) == 5
    assert tron.info(wire.read_transaction(kept).txid)["blockNumber"] == 2
    assert tron.info(wire.read_transaction(gone).txid) == {}
    tron.send(gone)


def test_a_block_id_has_its_height_and_hashes_its_header(tron: Tron) -> None:
    tron.send(tron.transfer(OTHER.address, 5))
    tron.mine(2)
    first, second = (tron.ask("wallet/getblockbynum", num=height) for height in (1, 2))

    assert [int(block["blockID"][:16], 16) for block in (first, second)] == [1, 2]
    assert second["block_header"]["raw_data"]["parentHash"] == first["blockID"]
    (one,) = first["transactions"]
    assert hashlib.sha256(bytes.fromhex(one["raw_data_hex"])).hexdigest() == one["txID"]
    assert tron.ask("wallet/getblockbynum", num=0)["blockID"] == NETWORK.chain_identity
    assert tron.ask("wallet/getblockbynum", num=3) == {}


def test_a_chain_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "chain"
    chain = Simulator(NETWORK.chain_identity, path=path)
    chain.act("coin", {"address": BUYER.address, "units": 100 * TRX})
    tron = Tron()
    tron.chain = chain
    tron.send(tron.transfer(OTHER.address, 5 * TRX))
    chain.mine(3)
    chain.reorg(1)
    chain.advance(1_000)
    chain.mine()
    # No caller got an answer for the line that the kill cut off.
    with path.open("ab") as file:
        file.write(b'{"act": "blo')

    again = Simulator(NETWORK.chain_identity, path=path)
    assert again.ids == chain.ids
    assert again.world.root == chain.world.root
    assert again.now_ms() >= chain.now_ms() - 1_000
    again.mine()
    assert Simulator(NETWORK.chain_identity, path=path).ids == again.ids


def test_addresses_are_written_as_they_were_asked_for(tron: Tron) -> None:
    hexed = "41" + BUYER.raw.hex()
    assert tron.ask("wallet/getaccount", address=hexed, visible=False)["address"] == hexed
    assert tron.ask("wallet/getaccount", address=BUYER.address)["address"] == BUYER.address
    assert "Error" in tron.ask("wallet/getaccount", address=hexed)
    assert "Error" in tron.ask("wallet/getaccount", address=BUYER.address, visible=False)


def test_bytes_that_are_no_transaction_are_answered_as_such(tron: Tron) -> None:
    assert "Error" in tron.ask("wallet/broadcasthex", transaction="zz")
    assert "Error" in tron.ask("wallet/broadcasthex", transaction="0a02")
    assert tron.ask("wallet/nothing") is None
