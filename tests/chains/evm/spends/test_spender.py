"""Pricing, signing and sending our own transactions, on a real chain and by every provider's word."""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from chains.base import DisagreementError, ProviderError
from chains.evm.keys import EvmDeriver
from chains.evm.nodes import evm_providers
from chains.evm.spends import balances
from chains.evm.spends.gas import AbsurdFeeError
from chains.evm.spends.spender import EvmSpender
from chains.evm.spends.terms import gas_offer
from chains.spending import (
    Case,
    Coins,
    Counter,
    Draft,
    InsufficientCoinError,
    Offer,
    Sending,
    SpendRefusedError,
    UnderfundedError,
)
from core.addresses.evm import keccak256
from core.catalogue.families import evm_parameters
from devstack.evm.anvil import Anvil
from devstack.evm.tokens import install_code
from tests.chains.conftest import CATALOGUE, FORWARDER, OURS, THEIRS
from tests.chains.evm.spends.world import CAP, ETHER, GWEI, HOT, HOT_KEY, REVERT_CODE, World, world
from tests.peers.anvil import HandMined
from tests.peers.contract_wallet import install_wallet
from tests.peers.json_rpc_node import Raw, Refusal
from tests.peers.lying_rpc import DOWN
from tests.peers.raw_keyring import RawKeyring

REVERT = Refusal(REVERT_CODE, "execution reverted")
# Runs until its gas is used up: JUMPDEST PUSH1 0 JUMP.
ENDLESS = "0x5b600056"
# Does 60,000 gas of work: twenty-five times a cold SLOAD.
GREEDY = "0x" + "".join(f"60{slot:02x}5450" for slot in range(50))


@pytest.mark.parametrize("currency", ["USDT", "ETH", None], ids=["token", "coin", "coin, not offered"])
def test_a_spend_is_priced_signed_taken_and_has_its_effect(alone: World, currency: str | None) -> None:
    intent = alone.intent(1_000_000, currency=currency)
    attempt = alone.sign(intent)

    assert alone.spender.send(attempt.raw) is Sending.TAKEN
    alone.node.mine()

    fate = alone.fate(intent, attempt)
    pair = intent.pair
    block = alone.node.ask("eth_getBlockByNumber", hex(fate.height), False)
    assert fate.is_success
    assert alone.balance_at(OURS, pair, fate.block_hash) == 1_000_000
    assert alone.balance_at(OURS, pair, block["parentHash"]) == 0


def test_a_token_that_answers_nothing_is_paid(alone: World) -> None:
    alone.token(code="token_no_return")

    assert alone.quote(alone.intent(5)).terms["gas_limit"] > 21_000


def test_the_same_arguments_give_the_same_bytes_and_their_id(alone: World) -> None:
    intent = alone.intent(5)
    fee = alone.quote(intent)
    first, again = (alone.sign(intent, offer=fee, slot=7) for _ in range(2))

    assert first == again
    assert first.txid == "0x" + keccak256(first.raw).hex()


def test_signing_for_another_sender_is_refused(alone: World) -> None:
    fee = gas_offer(gas_limit=21_000, price_units=2, tip_units=1)
    draft = Draft(intent=alone.intent(5), claim=Counter(at_least=0), offer=fee)

    with pytest.raises(ValueError, match="no such key"):
        alone.spender.sign(draft, counter=0, keys=EvmDeriver(bytes(64)).keyring())


def test_no_nonce_is_made_up_for_what_has_none(alone: World) -> None:
    intent = alone.intent(5)
    draft = Draft(intent=intent, claim=Counter(at_least=0), offer=alone.quote(intent))

    with pytest.raises(ValueError, match="nonce"):
        alone.spender.sign(draft, counter=None, keys=RawKeyring(HOT_KEY))
    with pytest.raises(ValueError, match="nonce"):
        alone.spender.fate(Case(intent=intent, claim=Coins(coins=()), txids=(), depth=1))


@pytest.mark.parametrize("outputs", [0, 2])
def test_a_transaction_makes_one_transfer(alone: World, outputs: int) -> None:
    intent = alone.intent(5)

    with pytest.raises(ValueError, match="one transfer"):
        alone.quote(replace(intent, outputs=intent.outputs * outputs))


@pytest.mark.parametrize("currency", ["USDT", "ETH"])
def test_promised_coin_has_to_be_there_in_addition(alone: World, currency: str) -> None:
    intent = alone.intent(5, currency=currency)
    newest = balances.newest(alone.spender.providers, HOT)
    fee = alone.quote(intent).ceiling_units
    spare = newest - fee - 5 * (currency == "ETH")

    assert alone.quote(intent, ETH=spare).ceiling_units == fee
    with pytest.raises(InsufficientCoinError):
        alone.quote(intent, ETH=spare + 1)


def test_promised_tokens_have_to_be_there_besides(alone: World) -> None:
    alone.token(units=77)

    assert alone.quote(alone.intent(5), USDT=72)
    with pytest.raises(InsufficientCoinError, match="units of USDT"):
        alone.quote(alone.intent(5), USDT=73)


def test_a_higher_offer_that_the_sender_cannot_pay_names_what_is_missing(alone: World) -> None:
    intent = alone.intent(5, currency="ETH")
    before = alone.quote(intent)
    dearer = alone.dearer(intent, before)
    alone.node.ask("anvil_setBalance", HOT, hex(dearer.ceiling_units + 4))

    with pytest.raises(UnderfundedError) as raised:
        alone.dearer(intent, before)
    assert (raised.value.offer, raised.value.missing_units) == (dearer, 1)


def test_signing_leaves_the_interpreters_recursion_limit(alone: World) -> None:
    limit = sys.getrecursionlimit()
    alone.sign(alone.intent(5))

    assert sys.getrecursionlimit() == limit


def test_importing_the_signing_library_leaves_the_recursion_limit() -> None:
    import subprocess  # noqa: PLC0415 - for a process that has not imported it yet

    code = "import sys; before = sys.getrecursionlimit(); from chains.evm.spends.library import account; account(); "
    code += "print(sys.getrecursionlimit() == before)"

    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "True\n"


def test_a_slot_counts_only_included_transactions(alone: World) -> None:
    alone.spender.send(alone.sign(alone.intent(1)).raw)

    assert alone.spender.next_counter(HOT, ours=0) == 0


@pytest.mark.parametrize("lie", ["0x0", hex(10**30), "0x", "nonsense", Raw(drop=True)])
def test_a_balance_is_the_median_of_all_answers(trio: World, lie: object) -> None:
    """One of three neither makes an address look empty, which would be funded again and again, nor rich."""
    true = int(trio.node.ask("eth_getBalance", HOT, "latest"), 16)
    trio.providers[1].lies["eth_getBalance"] = lie

    assert balances.newest(trio.reader._providers, HOT) == true


# Refused quotes -------------------------------------------------------------------------------------------


def test_a_token_that_answers_false_is_a_refusal(alone: World) -> None:
    alone.token(code="token_false")

    with pytest.raises(SpendRefusedError, match="does not make the transfer"):
        alone.quote(alone.intent(5))


def test_a_revert_is_a_refusal(alone: World) -> None:
    # Nothing here takes calls, and FORWARDER reverts on bare coin.
    with pytest.raises(SpendRefusedError):
        alone.quote(alone.intent(5, currency="ETH", to=_coin_refusing(alone)))


def test_one_provider_that_says_revert_fails_nothing(trio: World) -> None:
    trio.providers[0].lies["eth_estimateGas"] = REVERT
    trio.providers[1].failure = DOWN

    assert trio.quote(trio.intent(5)).terms["gas_limit"] > 21_000


def test_a_payout_that_every_reachable_provider_refuses_is_refused(trio: World) -> None:
    trio.providers[0].failure = DOWN
    for peer in trio.providers[1:]:
        peer.lies["eth_estimateGas"] = REVERT

    with pytest.raises(SpendRefusedError):
        trio.quote(trio.intent(5))


def test_one_refusal_while_the_others_are_silent_fails_no_payout(trio: World) -> None:
    for peer in trio.providers[1:]:
        peer.failure = DOWN
    trio.providers[0].lies["eth_estimateGas"] = REVERT

    with pytest.raises(ProviderError, match="one provider alone refuses"):
        trio.quote(trio.intent(5))


def test_without_any_provider_nothing_is_known(trio: World) -> None:
    intent = trio.intent(5)
    for peer in trio.providers:
        peer.failure = DOWN

    with pytest.raises(ProviderError) as refused:
        trio.quote(intent)
    assert not isinstance(refused.value, InsufficientCoinError)


def test_a_shortage_of_tokens_is_no_refusal(alone: World) -> None:
    alone.token(units=4)

    with pytest.raises(InsufficientCoinError, match="USDT"):
        alone.quote(alone.intent(5))
    with pytest.raises(InsufficientCoinError, match="USDT"):
        alone.spender.refuses(alone.intent(5))
    # Whether it can pay for the gas is another question.
    alone.node.ask("anvil_setBalance", HOT, "0x0")
    assert not alone.spender.refuses(alone.intent(4))


@pytest.mark.parametrize("currency", ["USDT", "ETH"])
@pytest.mark.parametrize("units", [0, 10**13], ids=["nothing", "too little"])
def test_a_shortage_of_coin_is_no_refusal(alone: World, currency: str, units: int) -> None:
    alone.node.ask("anvil_setBalance", HOT, hex(units))

    with pytest.raises(InsufficientCoinError):
        alone.quote(alone.intent(5, currency=currency))


def test_coin_has_to_pay_for_its_fee_as_well(alone: World) -> None:
    fee = alone.quote(alone.intent(ETHER, currency="ETH"))
    alone.node.ask("anvil_setBalance", HOT, hex(ETHER + fee.ceiling_units))
    alone.quote(alone.intent(ETHER, currency="ETH"))

    with pytest.raises(InsufficientCoinError):
        alone.quote(alone.intent(ETHER + 1, currency="ETH"))


def test_tokens_need_coin_for_their_fee_and_no_more(alone: World) -> None:
    fee = alone.quote(alone.intent(5))
    alone.node.ask("anvil_setBalance", HOT, hex(fee.ceiling_units))
    assert alone.quote(alone.intent(5)) == fee

    alone.node.ask("anvil_setBalance", HOT, hex(fee.ceiling_units - 1))
    with pytest.raises(InsufficientCoinError):
        alone.quote(alone.intent(5))


def test_one_provider_that_denies_our_balance_stops_nothing(trio: World) -> None:
    trio.providers[0].lies["eth_getBalance"] = "0x0"

    trio.quote(trio.intent(5))


def test_one_provider_that_invents_our_balance_sends_nothing(trio: World) -> None:
    trio.token(units=4)
    trio.providers[0].lies |= {"eth_call": f"0x{10**12:064x}", "eth_estimateGas": "0xc350"}

    with pytest.raises(InsufficientCoinError):
        trio.quote(trio.intent(5))


# Gas --------------------------------------------------------------------------------------------------------


def test_gas_has_a_margin(alone: World) -> None:
    assert alone.quote(alone.intent(5, currency="ETH")).terms["gas_limit"] == 21_000 * 12 // 10


def test_one_provider_with_too_little_gas_fails_nothing(trio: World) -> None:
    honest = trio.quote(trio.intent(5))
    trio.providers[0].lies["eth_estimateGas"] = "0x5208"

    assert trio.quote(trio.intent(5)).terms["gas_limit"] == honest.terms["gas_limit"]


@pytest.mark.parametrize("answer", [hex(150_000), hex(69_000), hex(22_000), "0x", "nonsense", Raw(drop=True)])
def test_one_provider_alone_does_not_set_the_gas(trio: World, answer: object) -> None:
    """At 300 gwei five times the gas is 0.1 ETH that an address would be sent for nothing."""
    trio.token()
    honest = trio.quote(trio.intent(1)).terms["gas_limit"]
    trio.providers[0].lies["eth_estimateGas"] = answer

    assert trio.quote(trio.intent(1)).terms["gas_limit"] == honest


@pytest.mark.parametrize(
    ("currency", "units", "limit"), [("USDT", 22_000, None), ("USDT", 69_000, 70_000), ("ETH", 29_000, 30_000)]
)
def test_of_two_providers_gas_the_higher_counts_as_far_as_the_fee_allows(
    ethereum: HandMined, currency: str, units: int, limit: int | None
) -> None:
    with world(ethereum, providers=2) as duo:
        duo.token()
        honest = duo.quote(duo.intent(5, currency=currency)).terms["gas_limit"]
        for liar in duo.providers:
            liar.lies["eth_estimateGas"] = hex(units)
            assert duo.quote(duo.intent(5, currency=currency)).terms["gas_limit"] == (limit or honest)
            liar.lies.clear()


def test_a_contract_wallet_is_paid_although_one_of_two_calls_it_a_plain_address(ethereum: HandMined) -> None:
    with world(ethereum, providers=2) as duo:
        install_wallet(duo.node, THEIRS)
        duo.providers[0].lies["eth_estimateGas"] = hex(21_000)
        intent = duo.intent(5, currency="ETH", to=THEIRS)
        attempt = duo.sign(intent)
        duo.include(attempt)
        assert duo.fate(intent, attempt).is_success


@pytest.mark.parametrize("base_gwei", [0, 1, 40], ids=["no base fee", "cheap", "dear"])
def test_one_provider_alone_does_not_set_the_price(trio: World, base_gwei: int) -> None:
    """Whichever provider it is, and in whatever order they answer."""
    intent = trio.intent(5)

    def offers() -> list[Offer]:
        fee = trio.quote(intent)
        return [
            fee, trio.treasurer.frugal(intent, cap_units=CAP, held_units=ETHER),
            trio.dearer(intent, gas_offer(gas_limit=1, price_units=1, tip_units=1)),
        ]  # fmt: skip

    honest = offers()
    for liar in trio.providers:
        liar.lies["eth_feeHistory"] = {"baseFeePerGas": [hex(base_gwei * GWEI)], "reward": [[hex(7 * GWEI)]]}
        liar.lies["eth_gasPrice"] = hex(90 * GWEI)
        assert offers() == honest
        liar.lies.clear()


def test_absurd_gas_for_a_token_is_not_believed(trio: World) -> None:
    honest = trio.quote(trio.intent(5))
    trio.providers[0].lies["eth_estimateGas"] = hex(2 * 70_000 + 1)

    assert trio.quote(trio.intent(5)).terms["gas_limit"] == honest.terms["gas_limit"]


def test_absurd_gas_for_a_token_stops_a_lone_provider(alone: World) -> None:
    alone.providers[0].lies["eth_estimateGas"] = hex(2 * 70_000 + 1)

    with pytest.raises(ProviderError, match="gas for one transfer"):
        alone.quote(alone.intent(5))


@pytest.mark.parametrize("code", [ENDLESS, GREEDY], ids=["endless", "greedy"])
def test_a_recipients_contract_does_not_make_us_pay_for_its_work(alone: World, code: str) -> None:
    alone.node.ask("anvil_setCode", THEIRS, code)

    with pytest.raises(SpendRefusedError):
        alone.quote(alone.intent(5, currency="ETH", to=THEIRS))


def test_a_recipients_contract_may_do_a_little_work(alone: World) -> None:
    alone.node.ask("anvil_setCode", THEIRS, GREEDY[: 2 + 4 * 8])
    intent = alone.intent(5, currency="ETH", to=THEIRS)
    attempt = alone.sign(intent)
    alone.include(attempt)

    assert alone.fate(intent, attempt).is_success


# Sending ----------------------------------------------------------------------------------------------------


def test_sending_again_is_taken(alone: World) -> None:
    attempt = alone.sign(alone.intent(5))

    assert [alone.spender.send(attempt.raw) for _ in range(2)] == [Sending.TAKEN] * 2


def test_every_provider_gets_the_bytes(trio: World) -> None:
    trio.spender.send(trio.sign(trio.intent(5)).raw)

    assert [peer.asked.count("eth_sendRawTransaction") for peer in trio.providers] == [1, 1, 1]


def test_a_used_slot_is_reported(alone: World) -> None:
    alone.include(alone.sign(alone.intent(5)))

    assert alone.spender.send(alone.sign(alone.intent(6), slot=0).raw) is Sending.CLAIM_USED


def test_an_offer_below_the_base_fee_is_reported(alone: World) -> None:
    attempt = alone.sign(alone.intent(5), offer=gas_offer(gas_limit=100_000, price_units=2, tip_units=1))

    assert alone.spender.send(attempt.raw) is Sending.UNDERPRICED


def test_an_unfunded_sender_is_reported(alone: World) -> None:
    attempt = alone.sign(alone.intent(5, currency="ETH"))
    alone.node.ask("anvil_setBalance", HOT, "0x0")

    assert alone.spender.send(attempt.raw) is Sending.UNFUNDED


@pytest.mark.parametrize(
    ("text", "sending"),
    [
        ("already known", Sending.TAKEN),
        ("Known transaction", Sending.TAKEN),
        ("ALREADY_EXISTS: already known", Sending.TAKEN),
        ("transaction already imported", Sending.TAKEN),
        ("nonce too low: next nonce 5, tx nonce 4", Sending.CLAIM_USED),
        ("OldNonce", Sending.CLAIM_USED),
        ("replacement transaction underpriced", Sending.UNDERPRICED),
        ("transaction underpriced: gas tip cap 1, minimum needed 25", Sending.UNDERPRICED),
        ("max fee per gas less than block base fee: address 0x1", Sending.UNDERPRICED),
        ("insufficient funds for gas * price + value", Sending.UNFUNDED),
        ("Upfront cost exceeds account balance", Sending.UNFUNDED),
    ],
)
def test_nodes_answers_are_understood(alone: World, text: str, sending: Sending) -> None:
    alone.providers[0].lies["eth_sendRawTransaction"] = Refusal(-32000, text)

    assert alone.spender.send(b"\x02") is sending


@pytest.mark.parametrize("answer", [Refusal(-32000, "txpool is full"), "0x" + "de" * 32, DOWN])
def test_whatever_else_they_answer_is_not_known(alone: World, answer: object) -> None:
    alone.providers[0].lies["eth_sendRawTransaction"] = answer

    with pytest.raises(ProviderError):
        alone.spender.send(b"\x02")


def test_taken_by_one_is_taken(trio: World) -> None:
    attempt = trio.sign(trio.intent(5))
    trio.providers[0].lies["eth_sendRawTransaction"] = Refusal(-32000, "nonce too low")
    trio.providers[1].lies["eth_sendRawTransaction"] = "0x" + "de" * 32

    assert trio.spender.send(attempt.raw) is Sending.TAKEN


# Balances ---------------------------------------------------------------------------------------------------


def test_a_node_that_is_not_asked_by_hash_is_asked_by_height(alone: World) -> None:
    header = alone.node.ask("eth_getBlockByNumber", "latest", False)
    alone.node.mine()

    def by_height(truth: object, params: list[object]) -> object:
        return Refusal(-32602, "invalid argument 1") if isinstance(params[1], dict) else truth

    alone.providers[0].lies["eth_call"] = by_height
    pair = CATALOGUE.pairs["USDT", "ethereum"]

    assert alone.balance_at(HOT, pair, header["hash"]) == 10**12


def test_a_replaced_block_has_no_balance(alone: World) -> None:
    header = alone.node.ask("eth_getBlockByNumber", hex(alone.node.mine()), False)
    alone.providers[0].lies["eth_getBlockByHash"] = header
    alone.node.ask("anvil_reorg", 1, [])

    with pytest.raises(ProviderError, match="was replaced"):
        alone.balance_at(HOT, CATALOGUE.pairs["USDT", "ethereum"], header["hash"])


@pytest.mark.parametrize(("currency", "method"), [("USDT", "eth_call"), (None, "eth_getBalance")])
def test_a_balance_from_one_of_two_is_unknown(trio: World, currency: str | None, method: str) -> None:
    header = trio.node.ask("eth_getBlockByNumber", "latest", False)
    pair = None if currency is None else CATALOGUE.pairs[currency, "ethereum"]
    true = trio.balance_at(HOT, pair, header["hash"])
    liar, silent, _ = trio.providers
    liar.lies[method] = "0x" + f"{true - 1:064x}"
    assert trio.balance_at(HOT, pair, header["hash"]) == true, "two of three tell it"

    silent.lies[method] = Refusal(-32000, "header not found")
    with pytest.raises(ProviderError, match="different balances"):
        trio.balance_at(HOT, pair, header["hash"])

    # Not knowing is no other opinion.
    liar.lies.clear()
    assert trio.balance_at(HOT, pair, header["hash"]) == true
    assert trio.balance_at(HOT, pair, header["hash"], witnesses=2) == true
    trio.providers[2].lies[method] = Refusal(-32000, "header not found")
    assert trio.balance_at(HOT, pair, header["hash"]) == true
    with pytest.raises(DisagreementError, match="alone"):
        trio.balance_at(HOT, pair, header["hash"], witnesses=2)


def test_a_network_that_is_no_evm_network_has_no_such_spender() -> None:
    tron = CATALOGUE.networks["tron"]

    with pytest.raises(ValueError, match="no EVM network"):
        EvmSpender(tron, evm_providers(tron, ["http://127.0.0.1:1"], timeout_s=1))


@pytest.mark.parametrize("network", ["bsc", "arbitrum", "base"])
def test_every_kind_of_network_takes_our_bytes(anvil: Callable[..., Anvil], network: str) -> None:
    with world(HandMined(anvil(network, block_time_s=None).url), network=network) as scene:
        scene.token()
        for currency in ("USDT", None):
            intent = scene.intent(77, currency=currency)
            attempt = scene.sign(intent)
            assert scene.spender.send(attempt.raw) is Sending.TAKEN
            scene.node.mine()
            assert scene.fate(intent, attempt, slot=scene.spender.next_counter(HOT, ours=0) - 1).is_success


def _coin_refusing(scene: World) -> str:
    """A contract that takes no bare coin."""
    # PUSH1 0 PUSH1 0 REVERT
    scene.node.ask("anvil_setCode", FORWARDER, "0x60006000fd")
    return FORWARDER


def test_a_price_is_within_the_cap(alone: World) -> None:
    fee = alone.quote(alone.intent(5), cap=3 * GWEI // 2)

    assert fee.terms["price_units"] <= 3 * GWEI // 2


# A trial as it will be signed --------------------------------------------------------------------------------


def calls_from_now(scene: World, method: str) -> list[dict[str, str]]:
    """Return the calls that a provider is asked to try from now on."""
    calls: list[dict[str, str]] = []

    def hear(truth: object, params: Any) -> object:
        calls.append(params[0])
        return truth

    scene.providers[0].lies[method] = hear
    return calls


@pytest.mark.parametrize("currency", ["USDT", "ETH"])
def test_the_trial_offers_the_price_that_is_signed(alone: World, currency: str) -> None:
    estimated, called = calls_from_now(alone, "eth_estimateGas"), calls_from_now(alone, "eth_call")
    fee = alone.quote(alone.intent(5, currency=currency))
    priced = {"maxFeePerGas": hex(fee.terms["price_units"]), "maxPriorityFeePerGas": hex(fee.terms["tip_units"])}
    calls = [*estimated, *(call for call in called if "from" in call)]
    assert len(calls) == (2 if currency == "USDT" else 1)
    for call in calls:
        assert call["from"].lower() == HOT
        assert call.items() >= priced.items()


def test_where_all_is_tip_the_trial_offers_a_legacy_price(anvil: Callable[..., Anvil]) -> None:
    with world(HandMined(anvil("bsc", block_time_s=None).url), network="bsc") as scene:
        scene.token()
        estimated = calls_from_now(scene, "eth_estimateGas")
        fee = scene.quote(scene.intent(5))
        [call] = estimated
        assert call["gasPrice"] == hex(fee.terms["price_units"])


def test_a_contract_that_takes_coin_only_in_a_call_that_costs_nothing_is_refused(alone: World) -> None:
    install_code(alone.node.rpc, THEIRS, "burner")
    with pytest.raises(SpendRefusedError):
        alone.quote(alone.intent(5, currency="ETH", to=THEIRS))


def test_a_failure_that_may_lack_gas_is_no_refusal(alone: World) -> None:
    """A wallet that could not pay for all the gas that may be signed has not seen the transfer refused."""
    install_code(alone.node.rpc, THEIRS, "burner")
    price = alone.quote(alone.intent(5, currency="ETH")).terms["price_units"]
    alone.node.ask("anvil_setBalance", HOT, hex(5 + 30_000 * price))
    with pytest.raises(SpendRefusedError):
        alone.quote(alone.intent(5, currency="ETH", to=THEIRS))
    alone.node.ask("anvil_setBalance", HOT, hex(5 + 30_000 * price - 1))
    with pytest.raises(InsufficientCoinError):
        alone.quote(alone.intent(5, currency="ETH", to=THEIRS))


# A payout's limit against what its fee was charged for -------------------------------------------------------


@pytest.mark.parametrize(
    ("gas", "limit"), [(21_000, 25_200), (25_001, 30_000), (28_000, 30_000), (30_000, 30_000), (30_001, None)]
)
def test_who_receives_coin_is_given_no_more_gas_than_was_charged_for(alone: World, gas: int, limit: int | None) -> None:
    alone.providers[0].lies["eth_estimateGas"] = hex(gas)
    intent = alone.intent(5, currency="ETH", to=THEIRS)
    if limit is not None:
        assert alone.quote(intent).terms["gas_limit"] == limit
        return
    with pytest.raises(SpendRefusedError, match="the recipient's contract takes 30001 gas"):
        alone.quote(intent)


@pytest.mark.parametrize(
    ("gas", "limit"),
    [(50_000, 60_000), (65_000, 70_000), (70_000, 70_000), (70_001, 84_001), (140_000, 140_000), (140_001, None)],
)
def test_a_token_takes_more_than_was_charged_for_only_where_its_code_does(
    alone: World, gas: int, limit: int | None
) -> None:
    alone.providers[0].lies["eth_estimateGas"] = hex(gas)
    if limit is None:
        with pytest.raises(AbsurdFeeError, match="140001 gas"):
            alone.quote(alone.intent(5))
        return
    with capture_logs() as logs:
        assert alone.quote(alone.intent(5)).terms["gas_limit"] == limit
    pairs = [(entry["gas_limit"], entry["charged_gas"]) for entry in logs if entry["event"] == "gas.above_charge"]
    assert pairs == ([(limit, 70_000)] if limit > 70_000 else [])


def test_a_contract_wallet_is_paid(alone: World) -> None:
    install_wallet(alone.node, THEIRS)
    intent = alone.intent(5, currency="ETH", to=THEIRS)
    attempt = alone.sign(intent)
    alone.include(attempt)
    assert alone.fate(intent, attempt).is_success
    assert 27_000 < int(alone.node.receipt(attempt.txid)["gasUsed"], 16) < 28_000


@pytest.mark.parametrize("network", ["ethereum", "arbitrum"])
def test_transfers_that_are_nobodys_payout_keep_their_margin(anvil: Callable[..., Anvil], network: str) -> None:
    """The cold address may be a contract wallet too; on arbitrum the gas of every transfer differs by the hour."""
    with world(HandMined(anvil(network, block_time_s=None).url), network=network) as scene:
        figure = evm_parameters(CATALOGUE.networks[network]).coin_gas
        for gas, limit in ((figure, figure * 12 // 10), (figure * 3 // 2, figure * 9 // 5), (2 * figure, 2 * figure)):
            scene.providers[0].lies["eth_estimateGas"] = hex(gas)
            assert scene.quote(scene.intent(5, currency=None)).terms["gas_limit"] == limit
