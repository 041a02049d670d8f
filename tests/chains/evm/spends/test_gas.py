"""The gas price of a spend: within the cap, by more than one provider, higher for a replacement."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from chains.base import ProviderError
from chains.evm.nodes import evm_providers
from chains.evm.spends.gas import (
    AbsurdFeeError,
    Bid,
    data_fee,
    dearer_bid,
    frugal_bid,
    todays_bid,
    todays_price,
)
from chains.net.providers import RpcProviders
from chains.spending import FeeTooHighError, InsufficientCoinError
from core.addresses.evm import keccak256
from core.catalogue.catalogue import Network, load_catalogue
from core.catalogue.families import evm_parameters
from devstack.evm.anvil import Anvil
from tests.chains.evm.spends.world import CAP, ETHER, GWEI, HOT, rolled_up, world
from tests.peers.anvil import HandMined
from tests.peers.json_rpc_node import JsonRpcNode, Raw, Refusal

NETWORKS = load_catalogue("production").networks
ETHEREUM, BSC, BASE = (NETWORKS[code] for code in ("ethereum", "bsc", "base"))


@contextmanager
def nodes(network: Network, *prices: tuple[int, int]) -> Iterator[tuple[RpcProviders, list[JsonRpcNode]]]:
    """One node for each base fee and tip, in gwei."""
    running = [
        JsonRpcNode(
            {
                "eth_chainId": hex(int(network.chain_identity)),
                "eth_feeHistory": {"baseFeePerGas": [hex(base * GWEI)], "reward": [[hex(tip * GWEI)]]},
                "eth_gasPrice": hex(10 * (base + tip) * GWEI),
            },
            key=str(number),
        )
        for number, (base, tip) in enumerate(prices)
    ]
    for node in running:
        node.__enter__()
    try:
        yield evm_providers(network, [node.url for node in running], timeout_s=5), running
    finally:
        for node in running:
            node.__exit__()


def test_the_offer_covers_two_base_fees_and_the_tip() -> None:
    with nodes(ETHEREUM, (10, 2)) as (providers, _):
        assert todays_bid(providers, ETHEREUM, cap_wei=CAP) == Bid(price_wei=22 * GWEI, tip_wei=2 * GWEI)


def test_the_cap_is_offered_where_it_leaves_enough_for_the_next_blocks() -> None:
    with nodes(ETHEREUM, (10, 2)) as (providers, _):
        assert todays_bid(providers, ETHEREUM, cap_wei=15 * GWEI) == Bid(price_wei=15 * GWEI, tip_wei=2 * GWEI)


def test_above_the_cap_nothing_is_offered() -> None:
    with nodes(ETHEREUM, (10, 2)) as (providers, _), pytest.raises(FeeTooHighError, match="the cap is"):
        todays_bid(providers, ETHEREUM, cap_wei=14 * GWEI)


@pytest.mark.parametrize("liar", [(90, 9), (1, 1)], ids=["dear", "cheap"])
def test_one_of_three_does_not_set_our_price(liar: tuple[int, int]) -> None:
    with nodes(ETHEREUM, liar, (10, 2), (10, 2)) as (providers, _):
        assert todays_bid(providers, ETHEREUM, cap_wei=CAP).price_wei == 22 * GWEI


def test_one_of_two_does_not_raise_our_price() -> None:
    with nodes(ETHEREUM, (10, 2), (400, 2)) as (providers, _):
        assert todays_bid(providers, ETHEREUM, cap_wei=CAP).price_wei == 22 * GWEI


def test_one_of_two_does_not_raise_our_tip() -> None:
    for tips in ((2, 40), (40, 2)):
        with nodes(ETHEREUM, *((10, tip) for tip in tips)) as (providers, _):
            assert todays_bid(providers, ETHEREUM, cap_wei=CAP) == Bid(price_wei=22 * GWEI, tip_wei=2 * GWEI)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_of_three_without_a_base_fee_does_not_lower_our_price(place: int) -> None:
    """The larger group of providers counts, even if it is dearer: no block would include the cheaper offer."""
    collected = [(10, 2), (10, 2)]
    collected.insert(place, (0, 1))
    with nodes(ETHEREUM, *collected) as (providers, _):
        assert todays_bid(providers, ETHEREUM, cap_wei=CAP) == Bid(price_wei=22 * GWEI, tip_wei=2 * GWEI)


def test_one_of_three_decides_neither_price_nor_tip() -> None:
    """A liar whose price is the middle one, and all of it a tip, would have us pay all of it."""
    with nodes(ETHEREUM, (10, 1), (1, 20), (11, 1)) as (providers, _):
        assert todays_bid(providers, ETHEREUM, cap_wei=CAP) == Bid(price_wei=21 * GWEI, tip_wei=GWEI)


@pytest.mark.parametrize("liars", [1, 2])
def test_a_lie_about_the_kind_of_price_raises_nothing(liars: int) -> None:
    """Without a base fee the whole price is tip: 60 gwei here, where 22 are the most and 12 are paid."""
    with nodes(ETHEREUM, (10, 2), (2, 4), (10, 2)) as (providers, running):
        running[1].answers["eth_feeHistory"] = Refusal(-32601, "no such method")
        if liars == 2:
            # Of three one is silent: one against one.
            running[2].answers["eth_feeHistory"] = Raw(drop=True)
        offer = todays_bid(providers, ETHEREUM, cap_wei=CAP)
        assert offer == Bid(price_wei=22 * GWEI, tip_wei=2 * GWEI)


def test_a_provider_that_answers_alone_raises_a_price_to_twice_the_agreed_one() -> None:
    with nodes(ETHEREUM, (10, 2), (10, 2)) as (providers, running):
        assert todays_price(providers, ETHEREUM).max_wei == 22 * GWEI
        running[1].answers["eth_feeHistory"] = Raw(drop=True)
        running[0].answers["eth_feeHistory"] = Refusal(-32601, "no such method")
        running[0].answers["eth_gasPrice"] = hex(100 * GWEI)
        assert todays_price(providers, ETHEREUM).max_wei == 44 * GWEI


def test_the_estimate_for_a_transfer_is_the_median_too() -> None:
    with nodes(ETHEREUM, (10, 2), (900, 9), (10, 2)) as (providers, _):
        assert todays_price(providers, ETHEREUM).expected_wei == 14_500_000_000


@pytest.mark.parametrize("lie", [{"baseFeePerGas": []}, {"baseFeePerGas": ["x"]}, None, "0x1", Raw(drop=True)])
def test_nonsense_about_prices_is_a_voice_less(lie: object) -> None:
    with nodes(ETHEREUM, (10, 2), (10, 2), (10, 2)) as (providers, running):
        running[0].answers["eth_feeHistory"] = lie
        assert todays_bid(providers, ETHEREUM, cap_wei=CAP).price_wei == 22 * GWEI


def test_an_absurd_price_is_one_above_the_cap() -> None:
    with nodes(ETHEREUM, (10_000, 2)) as (providers, _), pytest.raises(FeeTooHighError):
        todays_bid(providers, ETHEREUM, cap_wei=10**30)


def test_where_blocks_have_no_base_fee_the_whole_price_is_tip() -> None:
    with nodes(BSC, (1, 1)) as (providers, [node]):
        assert todays_bid(providers, BSC, cap_wei=CAP) == Bid(price_wei=22 * GWEI, tip_wei=22 * GWEI)
        assert "eth_feeHistory" not in node.asked


@pytest.mark.parametrize(
    "history", [{"baseFeePerGas": ["0x0"], "reward": [["0x1"]]}, Refusal(-32601, "the method does not exist")]
)
def test_a_node_without_base_fee_is_offered_a_legacy_price(history: object) -> None:
    with nodes(ETHEREUM, (1, 1)) as (providers, [node]):
        node.answers["eth_feeHistory"] = history
        offer = todays_bid(providers, ETHEREUM, cap_wei=CAP)

    assert offer.price_wei == offer.tip_wei == 22 * GWEI


def test_a_node_that_fails_to_return_its_base_fee_may_have_one() -> None:
    with nodes(ETHEREUM, (1, 1)) as (providers, [node]):
        node.answers["eth_feeHistory"] = Refusal(-32000, "internal error")
        with pytest.raises(ProviderError):
            todays_bid(providers, ETHEREUM, cap_wei=CAP)


# Waiting for a lower price --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("affordable", "offer"),
    [
        (100 * GWEI, (14_500_000_000, 2 * GWEI)),
        # As much as is there, as long as it gets in with the next block; the tip gives way.
        (14 * GWEI, (14 * GWEI, 2 * GWEI)),
        (13 * GWEI, (13 * GWEI, 1_750_000_000)),
        (12_250_000_000, (12_250_000_000, 1 * GWEI)),
        (12_249_999_999, (14_500_000_000, 2 * GWEI)),
    ],
)
def test_a_spend_that_can_wait_offers_a_quarter_above_the_base_fee(affordable: int, offer: tuple[int, int]) -> None:
    with nodes(ETHEREUM, (10, 2)) as (providers, _):
        bid = frugal_bid(providers, ETHEREUM, cap_wei=CAP, affordable_wei=affordable)
    assert (bid.price_wei, bid.tip_wei) == offer


@pytest.mark.parametrize(
    ("affordable", "price"), [(100 * GWEI, 22 * GWEI), (20 * GWEI, 20 * GWEI), (20 * GWEI - 1, 22 * GWEI)]
)
def test_without_a_base_fee_a_spend_that_can_wait_offers_the_asked_price(affordable: int, price: int) -> None:
    with nodes(BSC, (1, 1)) as (providers, _):
        bid = frugal_bid(providers, BSC, cap_wei=CAP, affordable_wei=affordable)
    assert bid == Bid(price_wei=price, tip_wei=price)


def test_a_spend_that_can_wait_waits_above_the_cap() -> None:
    with nodes(ETHEREUM, (10, 2)) as (providers, _), pytest.raises(FeeTooHighError, match="the cap is"):
        frugal_bid(providers, ETHEREUM, cap_wei=14 * GWEI, affordable_wei=CAP)


# Replacements -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "today", "offer"),
    [
        ((80, 8), (10, 1), (90, 9)),
        ((81, 9), (10, 1), (92, 11)),  # rounded up
        ((80, 8), (200, 1), (200, 9)),
        ((80, 8), (10, 20), (90, 20)),
        ((0, 0), (10, 1), (10, 1)),
    ],
)
def test_a_replacement_raises_both_figures_and_follows_the_day(
    before: tuple[int, int], today: tuple[int, int], offer: tuple[int, int]
) -> None:
    bid = dearer_bid(_bid(today), before=_bid(before), cap_wei=1_000)

    assert (bid.price_wei, bid.tip_wei) == offer


def test_a_replacement_above_the_cap_is_not_made() -> None:
    with pytest.raises(FeeTooHighError):
        dearer_bid(_bid((10, 1)), before=_bid((80, 8)), cap_wei=89)


def test_a_replacement_of_a_legacy_offer_is_one(anvil: Callable[..., Anvil]) -> None:
    with world(HandMined(anvil("bsc", block_time_s=None).url), network="bsc") as scene:
        intent = scene.intent(5, currency="BNB")
        fee = scene.quote(intent)
        dearer = scene.dearer(intent, fee)
        attempts = [scene.sign(intent, offer=offer, slot=0) for offer in (fee, dearer)]
        for attempt in attempts:
            scene.spender.send(attempt.raw)
        scene.node.mine()

        # The first byte of a legacy transaction is a list's.
        assert all(attempt.raw[0] >= 0xC0 for attempt in attempts)
        assert scene.fate(intent, *attempts).txid == attempts[1].txid
        assert dearer.terms["gas_limit"] == fee.terms["gas_limit"]


# Data fees of rollups -------------------------------------------------------------------------------------


def oracle(data_wei: int) -> Callable[[object, list[dict[str, str]]], object]:
    def answer(truth: object, params: list[dict[str, str]]) -> object:
        selector = keccak256(b"getL1FeeUpperBound(uint256)")[:4].hex()
        contract = evm_parameters(BASE).data_fee_oracle
        is_asked = params[0]["to"] == contract and params[0]["data"].startswith(f"0x{selector}")
        return f"0x{data_wei:064x}" if is_asked else truth

    return answer


def test_a_rollups_data_is_paid_for_too(anvil: Callable[..., Anvil]) -> None:
    node = HandMined(anvil("base", block_time_s=None).url)
    with world(node, network="base", catalogue=rolled_up()) as scene:
        scene.providers[0].lies["eth_call"] = oracle(1_000 * GWEI)
        intent = scene.intent(ETHER, currency=None)
        fee = scene.quote(intent)

        assert fee.terms["data_units"] == 2_000 * GWEI
        assert fee.ceiling_units == fee.terms["gas_limit"] * fee.terms["price_units"] + fee.terms["data_units"]
        assert scene.dearer(intent, fee).terms["data_units"] == fee.terms["data_units"]

        # Without the data it would be enough.
        node.ask("anvil_setBalance", HOT, hex(ETHER + fee.ceiling_units - 1))
        with pytest.raises(InsufficientCoinError):
            scene.quote(intent)


def test_a_longer_transaction_costs_more_data() -> None:
    with nodes(BASE, (1, 1)) as (providers, [node]):
        node.answers["eth_call"] = lambda call, _at: f"0x{int(call['data'][10:], 16):064x}"

        assert data_fee(providers, BASE, calldata_bytes=68, limit_wei=10_000) == 2 * (128 + 68)


def test_absurd_costs_of_data_are_refused() -> None:
    with nodes(BASE, (1, 1)) as (providers, [node]):
        node.answers["eth_call"] = f"0x{10**20:064x}"
        with pytest.raises(AbsurdFeeError, match="posting"):
            data_fee(providers, BASE, calldata_bytes=0, limit_wei=10**15)


def test_an_oracle_that_answers_nothing_is_not_free_of_charge() -> None:
    with nodes(BASE, (1, 1)) as (providers, [node]):
        node.answers["eth_call"] = "0x"
        with pytest.raises(ProviderError):
            data_fee(providers, BASE, calldata_bytes=0, limit_wei=10**15)


def _bid(figures: tuple[int, int]) -> Bid:
    return Bid(price_wei=figures[0], tip_wei=figures[1])
