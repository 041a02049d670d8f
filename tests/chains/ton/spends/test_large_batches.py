"""A batch of many payouts leaves and ends at the speed of an ordinary provider, whatever one of its recipients is."""

from __future__ import annotations

import base64
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import pytest

from chains.base import ProviderError
from chains.net.budget import budget
from chains.spending import Output, SpendRefusedError
from chains.ton import boc, nodes
from chains.ton.jettons import JETTONS
from chains.ton.nodes import Toncenter
from chains.ton.spends import trial
from core.settings.settings import Settings
from devstack.ton.blocks import WHOLE, halves
from tests.chains.ton.spends.world import FRESH, USDT, World, new_chain, payment, payments, world
from tests.peers.ton.chain import TON, Ton

SHARDS: Final = 16
OUTPUTS: Final = tuple(Output(recipient=f"0:{place * 5:02x}{place + 1:062x}", units=1_000) for place in range(50))
# Both are this part of the real ones, so that the test is quick: 100 ms a question, and half a step of the signer.
SCALE: Final = 1 / 4
QUESTION_S: Final = 0.1 * SCALE


@pytest.fixture(scope="module")
def sharded() -> Ton:
    """A chain with as many shards as a busy one has."""
    ton, shards = new_chain(), [WHOLE]
    while len(shards) < SHARDS:
        for each in shards:
            ton.chain.split(each)
        shards = [half for each in shards for half in halves(each)]
        ton.mine(1)
    ton.mine(3)
    return ton


@pytest.fixture
def slow(sharded: Ton, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Every question takes as long as at an ordinary provider, and a step no longer than it may."""
    real = Toncenter.ask
    seconds, requests = (Settings.model_fields[name].default / 2 for name in ("rpc_step_s", "rpc_step_requests"))

    def ask(node: Toncenter, *args: Any, **asked: Any) -> Any:
        time.sleep(QUESTION_S)
        return real(node, *args, **asked)

    monkeypatch.setattr(Toncenter, "ask", ask)
    with world(sharded) as one, budget(seconds=seconds * SCALE, requests=requests):
        yield one


def test_a_full_batch_of_tokens_is_drafted_within_a_step(slow: World) -> None:
    assert len(slow.drafted(payments(*OUTPUTS, pair=USDT)).intent.outputs) == 50


def test_each_account_is_asked_for_once(ton: World, monkeypatch: pytest.MonkeyPatch) -> None:
    real, asked = nodes.account, Counter[str]()

    def account(node: Toncenter, address: str, **more: Any) -> Any:
        asked[address] += 1
        return real(node, address, **more)

    monkeypatch.setattr(nodes, "account", account)
    ton.drafted(payments(*OUTPUTS[:3], *OUTPUTS[:2], pair=USDT))
    # The wallet's and the recipients', and the token's wallet of each.
    assert (len(asked), asked.total()) == (8, 8)


def with_code(node: Any, code: str) -> None:
    def answered(truth: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
        return truth | {"state": "active", "code": code} if asked["address"] == FRESH else truth

    node.lies["getAddressInformation"] = answered


@pytest.mark.parametrize("code", [base64.b64encode(bytes(boc.BYTES_MAX + 3)).decode(), "no cells", "AAAA"])
def test_a_recipients_code_that_cannot_be_read_is_another_code(ton: World, code: str) -> None:
    with_code(ton.nodes[0], code)
    assert len(ton.drafted(payments(*OUTPUTS[:2], *payment(TON, to=FRESH).outputs)).intent.outputs) == 3


def test_a_long_code_is_not_read_at_all(ton: World, monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[str]()
    real = boc.read_base64
    monkeypatch.setattr(boc, "read_base64", lambda text: read.append(text) or real(text))
    with_code(ton.nodes[0], "A" * 10_000)
    ton.drafted(payment(TON, to=FRESH))
    assert "A" * 10_000 not in read


def test_the_code_of_a_tokens_wallet_is_known_in_its_longest_form(ton: World) -> None:
    [jetton] = JETTONS.values()
    assert len(boc.write(jetton.wallet_code)) * 2 * 4 / 3 < trial.CODE_FORMS * len(boc.write(jetton.wallet_code))
    with_code(ton.nodes[0], base64.b64encode(boc.write(jetton.wallet_code)).decode())
    with pytest.raises((SpendRefusedError, ProviderError), match="jetton"):
        ton.drafted(payment(TON, to=FRESH))
