"""tronweb reads our TRON transactions as we meant them, and our own chain accepts tronweb's."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chains.family import DEPOSITS, HOT
from chains.spending import Draft, FateKind, KeyRef, Lying, Sweep, Window
from chains.tron.keys import address_of
from core.addresses import tron as address_tron
from core.catalogue.catalogue import Pair
from devstack.servers.npm import NoNpmError
from devstack.tron import wire
from tests.chains.tron.world import (
    CAP,
    DERIVER,
    HOT_KEY,
    KEYRING,
    OURS,
    THEIRS,
    USDT_PAIR,
    World,
    case,
    payment,
    world,
)
from tests.peers.libraries.fetched import TRONWEB, fetched
from tests.peers.libraries.library import Library
from tests.peers.tron.chain import BUYER, TRX, USDT, Key, Tron

WORDS = " ".join(["abandon"] * 11 + ["about"])
BUYER_KEY = f"{0xB0B:064x}"
UNITS = 7_654_321
TRANSFER_SELECTOR = "A9059CBB"

PACK = """\
#!/bin/sh
[ "$1" = --version ] && exit
mkdir -p package/dist && echo evil >package/dist/TronWeb.js && tar czf tronweb.tgz package
"""


@pytest.fixture
def chain() -> Iterator[World]:
    with Tron(solidity_lag=3) as tron:
        for holder in (HOT_KEY, OURS):
            tron.give(holder.address, 1_000 * TRX)
            tron.send(tron.token(holder.address, 50 * TRX))
        tron.mine(5)
        yield world(tron)


def swept(chain: World, pair: Pair | None, units: int) -> Draft:
    lying = Lying(key=OURS, pair=pair, units=units, is_rest=False, height=1, block_hash="any")
    step = chain.treasurer.step(lying, HOT_KEY, cap_units=CAP)
    assert isinstance(step, Sweep)
    return step.draft


MADE = {
    "a payout of TRX": (lambda chain: chain.drafted(payment(UNITS)), HOT),
    "a payout of a token": (lambda chain: chain.drafted(payment(UNITS, pair=USDT_PAIR)), HOT),
    "a sweep of TRX": (lambda chain: swept(chain, None, 1_000 * TRX), DEPOSITS),
    "a sweep of a token": (lambda chain: swept(chain, USDT_PAIR, 50 * TRX), DEPOSITS),
}


@pytest.mark.parametrize(("make", "account"), MADE.values(), ids=MADE)
def test_each_of_our_transactions_is_rebuilt_to_the_byte(
    chain: World, tronweb: Library, make: Callable[[World], Draft], account: int
) -> None:
    draft = make(chain)
    attempt = chain.spender.sign(draft, counter=None, keys=KEYRING)
    (output,), window = draft.intent.outputs, draft.claim
    assert isinstance(window, Window)
    assert window.ends_at is not None

    answer = tronweb.ask("read", whole=attempt.raw.hex())

    assert (answer["txid"], answer["signer"]) == (attempt.txid, draft.intent.wallet.address)
    assert answer["raw"] == wire.read_transaction(attempt.raw).raw.hex()
    raw = answer["raw_data"]
    assert raw["ref_block_bytes"] + raw["ref_block_hash"] == window.reference[12:32].upper()
    assert raw["expiration"] == window.ends_at.timestamp() * 1000
    assert raw["timestamp"] == draft.offer.terms["timestamp_ms"]
    assert raw.get("fee_limit", 0) == draft.offer.terms["fee_limit"]
    (contract,) = raw["contract"]
    value = contract["parameter"]["value"]
    assert value["owner_address"] == written(draft.intent.wallet.address)
    if draft.intent.pair is None:
        assert (value["to_address"], value["amount"]) == (written(output.recipient), output.units)
    else:
        assert (value["contract_address"], value.get("call_value", 0)) == (written(USDT), 0)
        assert answer["call"] == {
            "selector": TRANSFER_SELECTOR, "to": output.recipient, "units": str(output.units)
        }  # fmt: skip

    key = tronweb.ask("derive", words=WORDS, path=path(account, 0))["key"]
    # How a signature's parity is written is everybody's own; nodes take both.
    assert answer["signature"][:128] == tronweb.ask("sign", key=key, whole=attempt.raw.hex())[:128]


def test_our_changed_transaction_has_no_valid_signer(chain: World, tronweb: Library) -> None:
    """The other library really computes: its answer is not a copy of its input."""
    attempt = chain.signed(payment(UNITS))[1]
    changed = attempt.raw.replace(bytes.fromhex(hexed(THEIRS)), bytes.fromhex(hexed(BUYER.address)))

    answer = tronweb.ask("read", whole=changed.hex())

    assert answer["txid"] != attempt.txid
    assert answer["signer"] != HOT_KEY.address
    assert "code" in tronweb.ask("send", url=chain.tron.url, whole=changed.hex())
    assert chain.tron.chain.waiting == 0


@pytest.mark.parametrize("pair", [None, USDT_PAIR], ids=["TRX", "USDT"])
def test_our_transaction_arrives_sent_by_either_library(chain: World, tronweb: Library, pair: Pair | None) -> None:
    draft, attempt = chain.signed(payment(UNITS, pair=pair))

    answer = tronweb.ask("send", url=chain.tron.url, whole=attempt.raw.hex())
    assert (answer["result"], answer["txid"]) == (True, attempt.txid)
    # tronweb reads balances of irreversible blocks alone.
    chain.tron.mine(5)

    fate = chain.spender.fate(case(draft, attempt))
    assert (fate.kind, fate.txid, fate.is_success) == (FateKind.INCLUDED, attempt.txid, True)
    asked = {"url": chain.tron.url, "of": THEIRS}
    arrived = tronweb.ask("held", key=BUYER_KEY, token=USDT, **asked) if pair else tronweb.ask("balance", **asked)
    assert int(arrived) == UNITS


def test_trx_that_tronweb_sends_is_found(chain: World, tronweb: Library) -> None:
    assert tronweb.ask("pay", url=chain.tron.url, key=BUYER_KEY, to=OURS.address, units=UNITS)["result"]

    assert chain.transfers() == [("native", "TRX", UNITS, OURS.address)]


def test_a_token_that_tronweb_sends_is_found(chain: World, tronweb: Library) -> None:
    tronweb.ask("payToken", url=chain.tron.url, key=BUYER_KEY, token=USDT, to=OURS.address, units=str(UNITS))

    assert chain.transfers() == [("0", "USDT", UNITS, OURS.address)]


def test_tronweb_gets_a_nodes_refusal(chain: World, tronweb: Library) -> None:
    answer = tronweb.ask("pay", url=chain.tron.url, key="01" * 32, to=OURS.address, units=1)
    assert answer["code"] == "CONTRACT_VALIDATE_ERROR"


def test_another_file_than_the_pinned_one_is_not_run(tmp_path: Path) -> None:
    npm = tmp_path / "npm"
    npm.write_text(PACK)
    npm.chmod(0o755)

    with pytest.raises(NoNpmError, match="another file"):
        fetched({"PATH": f"{tmp_path}:/usr/bin:/bin"}, tmp_path / "cache", TRONWEB)
    assert list((tmp_path / "cache").rglob("*.cjs")) == []


def test_both_write_addresses_alike_and_refuse_misspelt_ones(tronweb: Library) -> None:
    chance = random.Random(20261124)  # noqa: S311
    for _ in range(100):
        secret = chance.randrange(1, 2**255)
        answer = tronweb.ask("address", key=f"{secret:064x}")
        key = Key(secret)
        ours = address_of(key.coordinates)

        assert answer == {"base58": ours, "hex": hexed(ours), "again": ours}
        assert [address_tron.stored(text) for text in (ours, answer["hex"])] == [ours] * 2
        place, letter = (
            chance.randrange(34),
            chance.choice("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"),
        )
        changed = ours[:place] + letter + ours[place + 1 :]
        assert (address_tron.stored(changed) is not None) == tronweb.ask("isAddress", text=changed)


@pytest.mark.parametrize("account", [DEPOSITS, HOT])
def test_keys_come_of_the_words_as_everywhere(tronweb: Library, account: int) -> None:
    for index in (0, 1, 77, 2**31 - 1):
        answer = tronweb.ask("derive", words=WORDS, path=path(account, index))

        assert answer["address"] == DERIVER.address(account, index)
        if account == DEPOSITS:
            ref = KeyRef(address=answer["address"], ordinal=index)
            assert KEYRING.sign(ref, bytes(32)) == Key(int(answer["key"], 16)).signature(bytes(32))


def path(account: int, index: int) -> str:
    return f"m/44'/195'/{account}'/0/{index}"


def hexed(address: str) -> str:
    return (wire.PREFIX + wire.raw_of(address)).hex()


def written(address: str) -> str:
    """Write an address as tronweb's decoder does."""
    return hexed(address).upper()
