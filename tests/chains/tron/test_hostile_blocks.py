"""Hostile contents of true blocks, and false blocks of providers: they credit nothing and stop no scan."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from chains.base import ProviderError
from devstack.tron import wire
from devstack.tron.shapes import hexed, log_json
from tests.chains.tron.twists import Twist, twisted
from tests.chains.tron.world import OURS, THEIRS, World
from tests.peers.tron.chain import BUYER, FORWARDER, TRX

UNITS = 4 * TRX
# As nodes number the making of a contract, and where it says who made it.
CREATE, OWNER = 30, 1


def passed_on(chain: World) -> int:
    """Let a contract pass TRX on to us; return the block."""
    chain.tron.act("code", address=FORWARDER, code="forwarder")
    chain.tron.send(chain.tron.called(FORWARDER, "forward(address)", OURS.address, units=UNITS))
    return chain.tron.mine()


def with_internals(**answer: object) -> Twist:
    """Say something else of what contracts did on their own."""
    return lambda infos: [
        info | {"internal_transactions": [one | answer for one in info["internal_transactions"]]} for info in infos
    ]


@pytest.mark.parametrize("note", ["call", b"call".hex(), b"suicide".hex()])
def test_trx_of_a_call_or_of_a_contract_s_end_is_ours_however_its_node_writes_that(chain: World, note: str) -> None:
    height = passed_on(chain)

    with twisted(chain, gettransactioninfobyblocknum=with_internals(note=note)) as liar:
        assert [(each.ordinal, each.units) for each in liar.scan(height).transfers] == [("internal:0", UNITS)]


@pytest.mark.parametrize(
    "note",
    [
        *(b"delegateResourceOf%s" % kind for kind in (b"Energy", b"Bandwidth")),
        b"unDelegateResourceOfEnergy",
        b"freezeForEnergy",
        b"unfreezeForEnergy",
        b"",
    ],
)
def test_a_stake_for_our_address_credits_no_trx(chain: World, note: bytes) -> None:
    """Nodes show a stake like a transfer; otherwise a staker would pay with TRX that it keeps."""
    height = passed_on(chain)

    with twisted(chain, gettransactioninfobyblocknum=with_internals(note=note.hex())) as liar:
        assert liar.scan(height).transfers == ()


def test_staking_that_was_refused_for_an_amount_below_nothing_stops_no_scan(chain: World) -> None:
    height = passed_on(chain)
    refused = with_internals(note=b"delegateResourceOfEnergy".hex(), rejected=True, callValueInfo=[{"callValue": -1}])

    with twisted(chain, gettransactioninfobyblocknum=refused) as liar:
        assert liar.scan(height).transfers == ()


def rewritten(contract: Callable[[wire.Signed], bytes], told_as: Mapping[str, Any]) -> dict[str, Twist]:
    """Report transactions with another contract in bytes and JSON; they need no valid signature."""
    new: dict[str, str] = {}

    def block(answer: Any) -> Any:
        for one in answer.get("transactions", ()):
            was = wire.read_raw(bytes.fromhex(one["raw_data_hex"]))
            raw = wire.raw_data(
                contract(was), block_id="00" * 32, now_ms=was.timestamp_ms, expiration_ms=was.expiration_ms
            )  # fmt: skip
            new[one["txID"]] = hashlib.sha256(raw).hexdigest()
            one["raw_data"]["contract"][0] = {"type": told_as["type"], "parameter": {"value": told_as["value"]}}
            one |= {"raw_data_hex": raw.hex(), "txID": new[one["txID"]]}
        return answer

    def infos(answer: Any) -> Any:
        return [info | {"id": new[info["id"]]} for info in answer]

    return {"getblockbynum": block, "gettransactioninfobyblocknum": infos}


def _construction(was: wire.Signed) -> bytes:
    """Return the making of a contract."""
    frame = wire.field(1, b"type.googleapis.com/protocol.CreateSmartContract")
    return wire.field(1, CREATE) + wire.field(2, frame + wire.field(2, wire.field(OWNER, wire.PREFIX + was.owner)))


@pytest.mark.parametrize("is_token", [False, True], ids=["TRX", "USDT"])
def test_a_constructor_pays_us_like_any_call_and_stops_no_scan(chain: World, is_token: bool) -> None:  # noqa: FBT001
    if is_token:
        chain.tron.send(chain.tron.token(OURS.address, UNITS))
        height = chain.tron.mine()
    else:
        height = passed_on(chain)

    value = {"owner_address": hexed(BUYER.raw), "new_contract": {"name": "payer"}}
    with twisted(chain, **rewritten(_construction, {"type": "CreateSmartContract", "value": value})) as liar:
        (deposit,) = liar.scan(height).transfers
    assert (deposit.units, deposit.recipient) == (UNITS, OURS.address)


def _capitals(answer: Any) -> Any:
    if isinstance(answer, list):
        return [one | {"id": one["id"].upper()} for one in answer]
    for one in answer.get("transactions", ()):
        one |= {"txID": one["txID"].upper(), "raw_data_hex": one["raw_data_hex"].upper()}
    return answer


def test_ids_in_capitals_are_the_same_ids(chain: World) -> None:
    txid = chain.tron.send(chain.tron.transfer(OURS.address, TRX))
    height = chain.tron.mine()

    with twisted(chain, getblockbynum=_capitals, gettransactioninfobyblocknum=_capitals) as liar:
        scan = liar.scan(height)
    assert ([each.txid for each in scan.transfers], scan.sent) == ([txid], ((BUYER.address, txid),))


def _twice(answer: Any) -> Any:
    """Show each twice, the second time in capitals."""
    if isinstance(answer, list):
        return answer + _capitals(answer)
    again = [one | {"txID": one["txID"].upper()} for one in answer.get("transactions", ())]
    return answer | {"transactions": [*answer.get("transactions", ()), *again]} if again else answer


def test_one_transfer_in_two_spellings_is_not_two(chain: World) -> None:
    chain.tron.send(chain.tron.transfer(OURS.address, TRX))
    height = chain.tron.mine()

    with (
        twisted(chain, getblockbynum=_twice, gettransactioninfobyblocknum=_twice) as liar,
        pytest.raises(ProviderError, match="twice"),
    ):
        liar.scan(height)


def _changed(change: Callable[[dict[str, Any]], object]) -> Twist:
    def twist(answer: Any) -> Any:
        for one in answer if isinstance(answer, list) else answer.get("transactions", ()):
            change(one)
        return answer

    return twist


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("gettransactioninfobyblocknum", lambda info: info.update(fee=-1)),
        ("gettransactioninfobyblocknum", lambda info: info.update(fee=2**64)),
        ("gettransactioninfobyblocknum", lambda info: info.update(fee=1.5)),
        ("gettransactioninfobyblocknum", lambda info: info["log"][0].update(data="ff" * 32)),
        ("gettransactioninfobyblocknum", lambda info: info.update(id="0x" + info["id"])),
        ("getblockbynum", lambda one: one.update(txID=one["txID"][:-1])),
        ("getblockbynum", lambda one: one["raw_data"].update(contract=[])),
    ],
    ids=["a fee below nothing", "a fee of no chain's", "half a fee", "all there is", "0x", "a short id", "nothing"],
)
def test_an_impossible_answer_is_a_providers_fault(
    chain: World, path: str, change: Callable[[dict[str, Any]], object]
) -> None:
    chain.tron.send(chain.tron.token(OURS.address, TRX))
    height = chain.tron.mine()

    with twisted(chain, **{path: _changed(change)}) as liar, pytest.raises(ProviderError):
        liar.scan(height)


@pytest.mark.parametrize("units", [0, -1])
def test_a_transfer_of_nothing_or_less_is_a_provider_s_fault(chain: World, units: int) -> None:
    chain.tron.send(chain.tron.transfer(OURS.address, TRX))
    height = chain.tron.mine()
    value = {"amount": units, "owner_address": hexed(BUYER.raw), "to_address": hexed(wire.raw_of(OURS.address))}

    def transfer(was: wire.Signed) -> bytes:
        return wire.transfer(was.owner, was.to, units % 2**64)

    with (
        twisted(chain, **rewritten(transfer, {"type": wire.TRANSFER, "value": value})) as liar,
        pytest.raises(ProviderError, match=r"nothing is moved|no coin has -1 units"),
    ):
        liar.scan(height)


def test_logs_of_what_runs_no_contract_are_a_provider_s_fault(chain: World) -> None:
    chain.tron.send(chain.tron.token(OURS.address, TRX))
    logs = chain.tron.chain.blocks[chain.tron.mine()].included[0].info.run
    assert logs is not None
    chain.tron.send(chain.tron.transfer(THEIRS, TRX))
    height = chain.tron.mine()
    forged = _changed(lambda info: info.update(receipt={"result": "SUCCESS"}, log=[log_json(one) for one in logs.logs]))

    with (
        twisted(chain, gettransactioninfobyblocknum=forged) as liar,
        pytest.raises(ProviderError, match="runs no contract"),
    ):
        liar.scan(height)
