"""@solana/kit reads our Solana transactions as we meant them, and the development chain takes and shows kit's own."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from solders.instruction import AccountMeta, Instruction
from solders.keypair import Keypair
from solders.message import Message
from solders.pubkey import Pubkey

from chains.solana import programs, transactions
from chains.solana.keys import SCHEME
from devstack.solana.buyer import new_address
from devstack.solana.engine import unsigned
from devstack.solana.programs import TOKEN, TOKEN_2022, associated
from devstack.solana.transactions import Signed
from tests.chains.solana.spends.test_transactions import BODIES, attempt_of
from tests.peers.libraries.library import Library, LibraryError
from tests.peers.solana.chain import BUYER, SOL, USDT, Solana

BUYER_KEY = "0b" * 32
UNITS = 7_654_321
WRITES = 1


@pytest.fixture
def solana() -> Iterator[Solana]:
    with Solana(confirmation_lag=0) as chain:
        yield chain


@pytest.mark.parametrize("name", BODIES)
def test_each_of_our_transactions_is_rebuilt_to_the_byte(kit: Library, name: str) -> None:
    body = BODIES[name]
    txid, whole = attempt_of(body)

    answer = kit.ask("read", whole=whole.hex())

    assert (answer["txid"], answer["version"]) == (txid, "legacy")
    assert (tuple(answer["signers"]), answer["checks"]) == (body.signers, [True] * len(body.signers))
    assert (answer["payer"], answer["blockhash"]) == (body.payer, body.reference)
    assert answer["message"] == transactions.message(body).hex()
    assert sorted_keys(bytes.fromhex(answer["rebuilt"])) == transactions.message(body)
    move = next(one for one in answer["calls"] if one["program"] in {programs.SYSTEM, programs.TOKEN})
    if body.mint:
        target = kit.ask("associated", owner=body.recipient, mint=body.mint)
        assert move["accounts"][2] == [target, WRITES]
        assert move["data"] == (bytes([12]) + body.units.to_bytes(8, "little") + bytes([body.decimals])).hex()
    else:
        assert move["accounts"][1][0] == body.recipient
        assert move["data"] == (bytes([2, 0, 0, 0]) + body.units.to_bytes(8, "little")).hex()
    memos = [bytes.fromhex(one["data"]).decode() for one in answer["calls"] if one["program"] == programs.MEMO]
    assert memos == ([body.memo] if body.memo else [])


def sorted_keys(raw: bytes) -> bytes:
    """Return a message with its accounts in the order of their bytes; kit sorts them as texts."""
    message = Message.from_bytes(raw)
    signed = Signed(raw=b"", transaction=unsigned(message))
    keys = message.account_keys
    calls = [
        Instruction(
            keys[one.program_id_index],
            bytes(one.data),
            [
                AccountMeta(keys[place], is_signer=message.is_signer(place), is_writable=signed.is_writable(place))
                for place in bytes(one.accounts)
            ],
        )
        for one in message.instructions
    ]
    return bytes(Message.new_with_blockhash(calls, keys[0], message.recent_blockhash))


def test_a_changed_transaction_has_no_valid_signature(kit: Library) -> None:
    """The other library really computes: its answer is not a copy of its input."""
    _, whole = attempt_of(BODIES["coin"])
    changed = whole[:-1] + bytes([whole[-1] ^ 1])

    assert kit.ask("read", whole=changed.hex())["checks"] == [False]


def test_both_sign_alike(kit: Library, solana: Solana) -> None:
    other = Keypair.from_seed(b"\x0c" * 32)
    for raw, keys in (
        (solana.transfer(new_address(), SOL), [BUYER_KEY]),
        (solana.signed([BUYER.coin(str(other.pubkey()), SOL)]), [BUYER_KEY]),
    ):
        assert kit.ask("sign", keys=keys, whole=raw.hex()) == [raw[1:65].hex()]


@pytest.mark.parametrize("mint", [None, USDT], ids=["SOL", "USDT"])
def test_a_payment_of_kit_lands_and_kit_reads_it_back(kit: Library, solana: Solana, mint: str | None) -> None:
    to = new_address()
    asked = {"url": solana.url, "key": BUYER_KEY, "to": to, "units": UNITS}
    txid = kit.ask("payToken", token=mint, decimals=6, **asked) if mint else kit.ask("pay", **asked)
    slot = solana.settle() - 1

    assert (solana.token_balance(to) if mint else solana.balance(to)) == UNITS
    if mint:
        assert kit.ask("held", url=solana.url, token=mint, of=to) == str(UNITS)
    else:
        assert kit.ask("balance", url=solana.url, of=to) == UNITS
    for details in ("full", "accounts"):
        (one,) = kit.ask("block", url=solana.url, slot=slot, details=details)["transactions"]
        assert one["transaction"]["signatures"] == [txid]
        assert one["meta"]["fee"] == 5_000
    assert kit.ask("status", url=solana.url, txid=txid)["confirmationStatus"] == "finalized"


def test_kit_knows_the_refusals_by_their_codes(kit: Library, solana: Solana) -> None:
    poor = kit.ask("address", key="0d" * 32)
    with pytest.raises(LibraryError, match=r"^-32002 "):
        kit.ask("pay", url=solana.url, key="0d" * 32, to=poor, units=1)
    solana.chain.skip(1)
    slot = solana.mine()
    solana.mine()
    with pytest.raises(LibraryError, match=r"^-32007 "):
        kit.ask("block", url=solana.url, slot=slot - 1, details="none")
    with pytest.raises(LibraryError, match=r"^-32004 "):
        kit.ask("block", url=solana.url, slot=slot + 9, details="none")
    solana.send(solana.transfer(poor, SOL, version=1))
    slot = solana.settle() - 1
    with pytest.raises(LibraryError, match=r"^-32015 "):
        kit.ask("block", url=solana.url, slot=slot, details="full")


def test_both_see_the_same_fee(kit: Library, solana: Solana) -> None:
    whole = solana.transfer(new_address(), SOL)

    assert kit.ask("fee", url=solana.url, whole=whole.hex()) == 5_000


def test_both_write_addresses_alike_and_refuse_the_same(kit: Library) -> None:
    chance = random.Random(20261128)  # noqa: S311
    for _ in range(100):
        seed = chance.randbytes(32)
        ours = str(Keypair.from_seed(seed).pubkey())
        mint = SCHEME.address(chance.randbytes(32))

        assert kit.ask("address", key=seed.hex()) == ours
        for program in (TOKEN, TOKEN_2022):
            place = kit.ask("associated", owner=ours, mint=mint, program=str(program))
            assert place == str(associated(Pubkey.from_string(ours), Pubkey.from_string(mint), program))
            assert place == programs.associated(ours, mint, str(program))
            assert kit.ask("isOffCurve", text=place)
            assert not programs.is_on_curve(place)
        assert kit.ask("isOffCurve", text=mint) != programs.is_on_curve(mint)
