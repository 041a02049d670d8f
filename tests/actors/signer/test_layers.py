"""Each of several layers alone keeps a stopped network from signing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Final

import pytest

from actors.signer import readiness, sign
from models.db.base import execute, transaction
from models.spends import signing_stops
from tests.actors.signer.world import SpendWorld

PATIENCE_S: Final = 61


def _step(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(readiness, "may_sign", lambda _network: True)


def _freeze(_patch: pytest.MonkeyPatch) -> None:
    execute("DELETE FROM payout_freezes")


def _signature(patch: pytest.MonkeyPatch) -> None:
    # The check before a signature, and no other caller's.
    patch.setattr(sign, "signing_stops", SimpleNamespace(**vars(signing_stops) | {"obstacle": lambda _network: ""}))


# How a test disables each layer.
AWAY: Final[Mapping[str, Callable[[pytest.MonkeyPatch], None]]] = {
    "step": _step,
    "freeze": _freeze,
    "signature": _signature,
}


def _stop(world: SpendWorld) -> None:
    with transaction():
        assert signing_stops.stop(world.network.code, reason="a test")
    # The scan is behind, so that nothing ends the stop.
    assert signing_stops.read(world.network.code) is not None


@pytest.mark.parametrize("alone", AWAY)
def test_one_layer_alone_keeps_a_stopped_network_from_signing(
    world: SpendWorld, monkeypatch: pytest.MonkeyPatch, alone: str
) -> None:
    order = world.order()
    _stop(world)
    with monkeypatch.context() as patch:
        for name, put_away in AWAY.items():
            if name != alone:
                put_away(patch)
        world.step(2)
    assert (world.count("spends"), world.payout(order).status) == (0, "approved")

    signing_stops.note_caught_up(world.network.code)
    world.due_now()
    world.step()
    world.confirm_sent()
    assert (world.paid(order), world.payout(order).status) == (1, "confirmed")


def test_without_any_layer_it_would_sign(world: SpendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the other tests depend on their layers."""
    world.order()
    _stop(world)
    for put_away in AWAY.values():
        put_away(monkeypatch)
    world.step()
    assert world.count("spends") == 1


@pytest.mark.parametrize("alone", ["freeze", "signature"])
def test_one_layer_alone_keeps_a_stopped_network_from_higher_offers(
    world: SpendWorld, monkeypatch: pytest.MonkeyPatch, alone: str
) -> None:
    """A step follows signed spends whether stopped or not: the other layers have to stop it."""
    world.order()
    world.step()
    _stop(world)
    world.chain.price = 50
    world.pass_time(PATIENCE_S)
    with monkeypatch.context() as patch:
        AWAY["freeze" if alone == "signature" else "signature"](patch)
        world.step(2)
    assert world.count("spend_attempts") == 1

    execute("DELETE FROM signing_stops")
    execute("DELETE FROM payout_freezes")
    world.step()
    assert world.count("spend_attempts") == 2
