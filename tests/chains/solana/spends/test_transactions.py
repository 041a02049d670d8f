"""Messages are built, signed and read back here, byte by byte; solders and the chain's own programs judge them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from solders.hash import Hash
from solders.instruction import AccountMeta, Instruction
from solders.litesvm import LiteSVM
from solders.message import Message, MessageV0
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.token.associated import get_associated_token_address
from solders.transaction import VersionedTransaction
from solders.transaction_metadata import FailedTransactionMetadata

from chains.base import ProviderError
from chains.family import DEPOSITS, HOT
from chains.keys import Keys
from chains.solana import programs, transactions
from chains.solana.keys import SolanaDeriver
from chains.solana.transactions import Body
from chains.spending import KeyRef
from core.payouts.schemas import MEMO_CHARS_MAX

DERIVER = SolanaDeriver(Keys(" ".join(["abandon"] * 11 + ["about"]))._seed)
KEYRING = DERIVER.keyring()
HOT_KEY = KeyRef(address=DERIVER.address(HOT, 0), ordinal=None)
OURS = KeyRef(address=DERIVER.address(DEPOSITS, 0), ordinal=0)
THEIRS = DERIVER.address(DEPOSITS, 77)
USDC = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v"
REFERENCE = str(Hash(bytes([7] * 32)))
WIDE = "\U0001f9ff" * MEMO_CHARS_MAX

COIN = Body(
    payer=HOT_KEY.address,
    sender=HOT_KEY.address,
    recipient=THEIRS,
    units=1_000_000,
    limit=1_000,
    price=5,
    mark=3,
    reference=REFERENCE,
)
TOKEN = replace(COIN, mint=USDC, decimals=6)
BODIES = {
    "coin": COIN,
    "token": TOKEN,
    "memo": replace(TOKEN, memo="1234"),
    "wide": replace(TOKEN, memo=WIDE),
    "sweep": replace(TOKEN, sender=OURS.address, recipient=HOT_KEY.address, closes=True),
    "coin sweep": replace(COIN, sender=OURS.address, recipient=HOT_KEY.address),
    "dust": replace(TOKEN, units=2**64 - 1, limit=1_400_000, price=2**63, mark=transactions.MARKS - 1),
}


def attempt_of(body: Body) -> tuple[str, bytes]:
    raw = transactions.message(body)
    keys = {HOT_KEY.address: HOT_KEY, OURS.address: OURS}
    made = transactions.signed(raw, [KEYRING.sign(keys[signer], raw) for signer in body.signers])
    return made.txid, made.raw


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_message_is_read_back_as_its_contents(body: Body) -> None:
    assert transactions.read_message(transactions.message(body)) == body


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_bytes_and_id_are_those_of_the_library(body: Body) -> None:
    txid, raw = attempt_of(body)
    parsed = VersionedTransaction.from_bytes(raw)

    assert txid == str(parsed.signatures[0]) == transactions.txid_of(raw)
    assert parsed.verify_with_results() == [True] * len(body.signers)
    assert [str(key) for key in parsed.message.account_keys[: len(body.signers)]] == list(body.signers)
    assert attempt_of(body) == (txid, raw), "the same draft has the same bytes"
    assert len(raw) <= transactions.SIZE_MAX
    signed = transactions.read(raw)
    assert signed is not None
    assert (signed.txid, signed.signers, signed.reference, signed.body) == (txid, body.signers, REFERENCE, body)


def test_a_memo_of_120_wide_letters_fits_and_is_read_back() -> None:
    sweep = replace(TOKEN, sender=OURS.address, memo=WIDE)

    assert len(WIDE.encode()) == 480
    assert transactions.read_message(transactions.message(sweep)) == sweep
    with pytest.raises(ValueError, match="too long"):
        transactions.message(replace(sweep, memo=WIDE * 2))


def test_messages_of_the_same_payment_differ_by_their_mark() -> None:
    assert transactions.message(COIN) != transactions.message(replace(COIN, mark=4))


def test_an_associated_account_depends_on_owner_mint_and_program() -> None:
    owner, mint = Pubkey.from_string(THEIRS), Pubkey.from_string(USDC)

    assert programs.associated(THEIRS, USDC) == str(get_associated_token_address(owner, mint))
    other = programs.associated(THEIRS, USDC, programs.TOKEN_2022)
    assert other == str(get_associated_token_address(owner, mint, Pubkey.from_string(programs.TOKEN_2022)))
    assert other != programs.associated(THEIRS, USDC)
    assert not programs.is_on_curve(programs.associated(THEIRS, USDC))
    assert programs.is_on_curve(THEIRS)


def _instructions(*more: Instruction, body: Body = TOKEN) -> list[Instruction]:
    return [
        programs.limit_units(body.limit),
        programs.price_unit(body.price),
        programs.limit_loaded(transactions.LOADED_MIN + body.mark),
        programs.create_associated(body.payer, body.recipient, body.mint),
        programs.move_token(body.sender, body.recipient, body.mint, units=body.units, decimals=body.decimals),
        *more,
    ]


def _compiled(instructions: list[Instruction]) -> bytes:
    payer = Pubkey.from_string(HOT_KEY.address)
    return bytes(Message.new_with_blockhash(instructions, payer, Hash.from_string(REFERENCE)))


@pytest.mark.parametrize(
    "instructions",
    [
        _instructions(programs.move_coin(HOT_KEY.address, THEIRS, 1)),
        _instructions(programs.move_token(HOT_KEY.address, THEIRS, USDC, units=1, decimals=6)),
        _instructions(programs.write_memo("a"), programs.write_memo("b")),
        _instructions(programs.write_memo("")),
        _instructions()[::-1],
        _instructions()[1:],
        _instructions(programs.close_account(HOT_KEY.address, USDC, THEIRS)),
        _instructions(Instruction(Pubkey.from_string(programs.MEMO), b"\xff", [])),
        _instructions(Instruction(Pubkey.from_string(programs.SYSTEM), b"", [])),
        _instructions(Instruction(Pubkey.from_string(programs.SYSTEM), b"\2\0\0\0", [])),
        _instructions(
            Instruction(
                Pubkey.from_string(programs.TOKEN),
                b"\6\2\1" + bytes(32),
                [AccountMeta(Pubkey.from_string(HOT_KEY.address), is_signer=True, is_writable=True)],
            )
        ),
        [],
    ],
)
def test_anything_else_is_no_transfer(instructions: list[Instruction]) -> None:
    raw = _compiled(instructions)

    assert transactions.read_message(raw) is None
    whole = transactions.signed(raw, [KEYRING.sign(HOT_KEY, raw)]).raw
    signed = transactions.read(whole)
    assert signed is not None
    assert (signed.signers, signed.body) == ((HOT_KEY.address,), None)


def test_a_message_of_another_version_is_no_transfer() -> None:
    payer = Pubkey.from_string(HOT_KEY.address)
    newer = MessageV0.try_compile(payer, _instructions(), [], Hash.from_string(REFERENCE))
    body = bytes([0x80]) + bytes(newer)

    whole = VersionedTransaction.populate(newer, [Signature(KEYRING.sign(HOT_KEY, body))])
    signed = transactions.read(bytes(whole))

    assert signed is not None
    assert (signed.signers, signed.body) == ((HOT_KEY.address,), None)


def test_a_missing_or_foreign_signature_proves_no_signer() -> None:
    raw = transactions.message(BODIES["sweep"])
    own = KEYRING.sign(HOT_KEY, raw)

    assert transactions.read(transactions.signed(raw, [own, own]).raw) is None
    assert transactions.read(transactions.unsigned(raw)) is None


@pytest.mark.parametrize("cut", [slice(0, 0), slice(0, 1), slice(0, 70), slice(0, -1), slice(1, None)])
def test_bytes_that_are_no_transaction_are_an_error(cut: slice) -> None:
    _, raw = attempt_of(TOKEN)
    with pytest.raises(ProviderError, match="bytes are"):
        transactions.read(raw[cut])


def test_trailing_bytes_are_refused() -> None:
    _, raw = attempt_of(TOKEN)
    with pytest.raises(ProviderError, match="bytes are"):
        transactions.txid_of(raw + b"\0")


def test_the_chain_takes_the_fee_that_was_reckoned() -> None:
    chain = LiteSVM()
    chain.airdrop(Pubkey.from_string(HOT_KEY.address), 10**9)
    body = replace(COIN, price=123_457, limit=1_234, reference=str(chain.latest_blockhash()))

    result = chain.send_transaction(VersionedTransaction.from_bytes(attempt_of(body)[1]))

    assert not isinstance(result, FailedTransactionMetadata)
    assert result.fee() == body.fee_units == 5_000 + 153
    assert chain.get_balance(Pubkey.from_string(THEIRS)) == body.units
