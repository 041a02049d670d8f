"""The EVM scan on a real chain: payments to us, and transfers that only look like them."""

import pytest

from chains.base import NATIVE, Cost
from chains.evm.spends.tx import send_transfer
from chains.net.json_rpc import RpcError
from core.catalogue.families import evm_parameters
from devstack.evm.tokens import install_code, install_token
from tests.chains.conftest import CATALOGUE, FORGER, FORWARDER, OURS, THEIRS, Chain, evm_reader
from tests.peers.anvil import BUYER, BUYER_KEY, HandMined, calldata
from tests.peers.ours import EVERYBODY, Finds, scan_of

ETHER = 10**18


def test_a_native_transfer_is_found(chain: Chain) -> None:
    txid = chain.node.send(OURS, value=3 * ETHER)

    [deposit] = chain.scan(chain.node.mine()).transfers

    assert deposit.txid == txid
    assert (deposit.ordinal, deposit.currency, deposit.units) == (NATIVE, "ETH", 3 * ETHER)
    assert (deposit.sender, deposit.recipient) == (BUYER, OURS)


def test_a_token_transfer_is_found(chain: Chain) -> None:
    txid = chain.pay("USDT", 5_000_000)

    [deposit] = chain.scan(chain.node.mine()).transfers

    assert deposit.txid == txid
    assert (deposit.ordinal, deposit.currency, deposit.units) == ("0", "USDT", 5_000_000)
    assert (deposit.sender, deposit.recipient) == (BUYER, OURS)


def test_every_offered_token_of_the_network_is_found(chain: Chain) -> None:
    for currency in ("USDT", "USDC", "DAI", "POL"):
        chain.pay(currency, 7)

    assert sorted(chain.transfers()) == [("0", "DAI", 7), ("0", "POL", 7), ("0", "USDC", 7), ("0", "USDT", 7)]


def test_the_header_is_the_chains(chain: Chain) -> None:
    chain.node.ask("evm_setNextBlockTimestamp", 2_000_000_000)
    height = chain.node.mine()
    raw = chain.node.ask("eth_getBlockByNumber", hex(height), False)

    block = chain.reader.block(height)

    assert block is not None
    assert (block.height, block.hash, block.parent_hash) == (height, raw["hash"], raw["parentHash"])
    assert block.time.isoformat() == "2033-05-18T03:33:20+00:00"
    assert chain.scan(height).block == block
    assert chain.reader.head() == height


def test_a_future_block_is_none_yet(chain: Chain) -> None:
    above = chain.node.height() + 1

    assert chain.reader.block(above) is None
    assert scan_of(chain.reader, above, EVERYBODY) is None


def test_the_matcher_is_asked_once_with_every_recipient(chain: Chain) -> None:
    chain.node.send(OURS, value=1)
    chain.node.send(THEIRS, value=1)
    chain.pay("USDT", 1, to=FORGER)
    asked: list[set[str]] = []

    scan_of(chain.reader, chain.node.mine(), Finds(lambda seen: asked.append(set(seen)) or ()))  # type: ignore[func-returns-value]

    assert asked == [{OURS, THEIRS, FORGER}]


def test_an_empty_block_needs_no_query(chain: Chain) -> None:
    def refuse(_: object) -> set[str]:
        raise AssertionError

    scan = scan_of(chain.reader, chain.node.mine(), Finds(refuse))

    assert scan is not None
    assert scan.transfers == ()


def test_others_transfers_are_not_ours(chain: Chain) -> None:
    chain.node.send(THEIRS, value=ETHER)
    chain.pay("USDT", 5_000_000, to=THEIRS)

    assert chain.transfers() == []


def test_two_transfers_in_one_transaction_are_two(chain: Chain) -> None:
    chain.pay("USDT", 10_000_000, to=FORWARDER)
    chain.node.send(
        FORWARDER,
        data=calldata("pay_twice(address,address,uint256,uint256)", chain.contract("USDT"), OURS, 3, 3),
    )

    assert chain.transfers() == [("0", "USDT", 3), ("1", "USDT", 3)]


def test_an_ordinal_counts_logs_within_the_transaction_not_the_block(chain: Chain) -> None:
    chain.pay("USDT", 1, to=THEIRS)
    chain.pay("USDC", 2, to=THEIRS)
    last = chain.pay("DAI", 4)

    assert chain.transfers() == [("0", "DAI", 4)]
    [log] = chain.node.receipt(last)["logs"]
    assert int(log["logIndex"], 16) == 2


def test_coin_and_token_in_one_block_are_both_found(chain: Chain) -> None:
    chain.node.send(OURS, value=ETHER)
    chain.pay("USDT", 9)

    assert chain.transfers() == [(NATIVE, "ETH", ETHER), ("0", "USDT", 9)]


# Transfers that only look like payments -----------------------------------------------------------------------


def test_a_failed_transaction_with_value_pays_nothing(chain: Chain) -> None:
    # Our address carries code here, so that a plain transfer to it can fail.
    install_code(chain.node.rpc, OURS, "forger")
    txid = chain.node.send(OURS, value=ETHER)

    assert chain.transfers() == []
    assert chain.node.receipt(txid)["status"] == "0x0"


def test_a_reverted_token_transfer_pays_nothing(chain: Chain) -> None:
    chain.pay("USDT", 10_000_000, to=FORWARDER)
    call = calldata("pay_and_revert(address,address,uint256)", chain.contract("USDT"), OURS, 5_000_000)
    txid = chain.node.send(FORWARDER, data=call)

    assert chain.transfers() == []
    assert chain.node.receipt(txid)["status"] == "0x0"


def test_a_token_that_returns_false_pays_nothing(chain: Chain) -> None:
    install_token(chain.node.rpc, chain.pair("USDT"), balances={BUYER: 10**12}, code="token_false")
    txid = chain.pay("USDT", 5_000_000)

    assert chain.transfers() == []
    assert chain.node.receipt(txid)["status"] == "0x1"


def test_a_look_alike_token_pays_nothing(chain: Chain) -> None:
    txid = chain.node.send(FORGER, data=calldata("erc20(address,uint256)", OURS, 10**12))

    assert chain.transfers() == []
    assert len(chain.node.receipt(txid)["logs"]) == 1


@pytest.mark.parametrize("shape", ["erc721", "erc721_with_data", "unindexed", "long_data", "odd_receiver"])
def test_other_logs_of_the_same_topic_pay_nothing(chain: Chain, shape: str) -> None:
    # Even where a pinned contract writes them.
    install_code(chain.node.rpc, chain.contract("USDT"), "forger")
    txid = chain.node.send(chain.contract("USDT"), data=calldata(f"{shape}(address,uint256)", OURS, 10**12))

    assert chain.transfers() == []
    assert len(chain.node.receipt(txid)["logs"]) == 1


def test_zero_value_transfers_pay_nothing(chain: Chain) -> None:
    chain.pay("USDT", 0)
    chain.node.send(OURS, value=0)

    assert chain.transfers() == []


def test_creating_a_contract_pays_nothing(chain: Chain) -> None:
    chain.node.send(None, value=ETHER, data="0x00")

    assert chain.transfers() == []


def test_coin_passed_on_by_a_contract_is_invisible(chain: Chain) -> None:
    # Known and documented: it is in neither transactions nor logs, only in the balance.
    chain.node.send(FORWARDER, value=ETHER, data=calldata("forward(address)", OURS))

    assert chain.transfers() == []
    assert int(chain.node.ask("eth_getBalance", OURS, "latest"), 16) == ETHER


def test_coin_passed_on_and_reverted_pays_nothing(chain: Chain) -> None:
    chain.node.send(FORWARDER, value=ETHER, data=calldata("forward_and_revert(address)", OURS))

    assert chain.transfers() == []


# Odd but honest tokens ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "ordinal", "units"),
    # Of a token that keeps a fee the collector's share is the transaction's first log.
    [("token_no_return", "0", 5_000_000), ("token_fee", "1", 4_950_000)],
)
def test_an_odd_token_credits_the_sum_that_arrived(chain: Chain, code: str, ordinal: str, units: int) -> None:
    install_token(chain.node.rpc, chain.pair("USDT"), balances={BUYER: 10**12}, code=code)
    chain.pay("USDT", 5_000_000)

    assert chain.transfers() == [(ordinal, "USDT", units)]


def test_a_token_sent_through_a_contract_pays(chain: Chain) -> None:
    chain.pay("USDC", 100, to=FORWARDER)
    chain.node.mine()
    chain.node.send(
        FORWARDER, data=calldata("pay_twice(address,address,uint256,uint256)", chain.contract("USDC"), OURS, 60, 40)
    )

    scan = chain.scan(chain.node.mine())

    assert [(deposit.units, deposit.sender) for deposit in scan.transfers] == [(60, FORWARDER), (40, FORWARDER)]


# Networks ----------------------------------------------------------------------------------------------------


def test_the_right_token_on_the_wrong_chain_pays_nothing(chain: Chain, arbitrum: HandMined) -> None:
    # Ethereum's USDT contract, on a chain where USDT has another address.
    install_token(arbitrum.rpc, chain.pair("USDT"), balances={BUYER: 10**12})
    txid = arbitrum.send(chain.contract("USDT"), data=calldata("transfer(address,uint256)", OURS, 5_000_000))

    scan = scan_of(evm_reader(arbitrum.url, network="arbitrum"), arbitrum.mine(), EVERYBODY)

    assert scan is not None
    assert scan.transfers == ()
    assert len(arbitrum.receipt(txid)["logs"]) == 1


def test_coin_is_ignored_where_it_is_not_offered(arbitrum: HandMined) -> None:
    arbitrum.send(OURS, value=ETHER)

    scan = scan_of(evm_reader(arbitrum.url, network="arbitrum"), arbitrum.mine(), EVERYBODY)

    assert scan is not None
    assert scan.transfers == ()


def test_the_final_height_is_the_chains_own(chain: Chain) -> None:
    for _ in range(10):
        chain.node.mine()

    final = chain.reader.final_height()

    assert final is not None
    assert 0 < final < chain.node.height()


# Reorganisations ---------------------------------------------------------------------------------------------


def test_a_reorg_shows_in_the_parent_hash(chain: Chain) -> None:
    for _ in range(3):
        chain.node.mine()
    height = chain.node.height()
    before = chain.scan(height)

    chain.node.ask("anvil_reorg", 2, [])
    chain.node.mine()

    after = chain.scan(height)
    following = chain.scan(height + 1)
    assert after.block.hash != before.block.hash
    assert following.block.parent_hash != before.block.hash
    assert following.block.parent_hash == after.block.hash


def test_a_transaction_included_again_elsewhere_keeps_its_ordinal(chain: Chain) -> None:
    # Given a payment whose log is the third of its block
    chain.node.mine()
    snapshot = chain.node.ask("evm_snapshot")
    chain.pay("USDC", 1, to=THEIRS)
    chain.pay("USDC", 1, to=THEIRS)
    txid = send_transfer(chain.node.rpc, BUYER_KEY, to=OURS, units=5, contract=chain.contract("USDT"))
    first = chain.scan(chain.node.mine())
    first_index = chain.node.receipt(txid)["logs"][0]["logIndex"]

    # When the chain goes back and includes it first
    signed = chain.node.ask("eth_getRawTransactionByHash", txid)
    chain.node.ask("evm_revert", snapshot)
    chain.node.ask(
        "anvil_setNonce", BUYER, hex(int(chain.node.ask("eth_getTransactionCount", BUYER, "latest"), 16) + 2)
    )
    assert chain.node.ask("eth_sendRawTransaction", signed) == txid
    second = chain.scan(chain.node.mine())

    # Then the block's index of its log has changed, and our key has not
    assert (first_index, chain.node.receipt(txid)["logs"][0]["logIndex"]) == ("0x2", "0x0")
    assert first.block.hash != second.block.hash
    assert [(deposit.txid, deposit.ordinal) for deposit in first.transfers] == [(txid, "0")]
    assert [(deposit.txid, deposit.ordinal) for deposit in second.transfers] == [(txid, "0")]


def test_a_node_without_finality_reports_it(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = RpcError("eth_getBlockByNumber", -32602, "unknown block tag")
    monkeypatch.setattr(chain.reader._providers, "everyone", lambda *_asked, **_how: [refusal])

    assert chain.reader.final_height() is None


def test_the_fee_of_a_transfer_is_gas_times_price(chain: Chain) -> None:
    fee = chain.reader.costs(cap_units=100 * 10**9)["USDT"].payout_units

    transfer_gas = evm_parameters(CATALOGUE.networks["ethereum"]).transfer_gas["USDT"]
    assert fee % transfer_gas == 0
    assert 10**8 < fee // transfer_gas < 100 * 10**9
    assert chain.reader.costs(cap_units=7)["USDT"].payout_units == 7 * transfer_gas, "more is never offered"


@pytest.mark.parametrize(("currency", "payout_gas", "sweep_gas"), [("ETH", 30_000, 21_000), ("USDT", 70_000, 91_000)])
def test_a_tokens_sweep_pays_for_its_gas_transfer_too(
    chain: Chain, currency: str, payout_gas: int, sweep_gas: int
) -> None:
    cost = chain.reader.costs(cap_units=1)[currency]

    assert cost == Cost(payout_units=payout_gas, sweep_units=sweep_gas)
