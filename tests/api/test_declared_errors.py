"""The errors that endpoints and actors declare are those that their code raises.

That each declared one can be reached is in tests.api.test_every_code.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import Any, Final

import pytest

from actors.queue import call_specs
from actors.queue.call_specs import CallSpec
from actors.queue.registry import QUEUES, REGISTRY, Registration, modules_for
from api.endpoints import Endpoint
from api.routes import ENDPOINTS
from core import errors
from core.errors import DomainError
from core.http.requests import Request, reading_errors
from tests.raised import Errors, Raised

SPECS: Final = {spec.name: spec for spec in vars(call_specs).values() if isinstance(spec, CallSpec)}
REQUESTS: Final = sorted({e.request for e in ENDPOINTS if e.request is not None}, key=lambda request: request.__name__)

# Errors that any call can meet; the endpoint has them from its own row.
OF_ANY_CALL: Final = frozenset(
    {errors.GatewayBusy, errors.IdempotencyInProgress, errors.IdempotencyKeyReused, errors.IdempotencyUnavailable}
)
# Of a coin that is not offered to buyers.
_LEFT_OUT: Final[Mapping[type[DomainError], str]] = {
    errors.PaymentBadAmount: "a coin that cannot carry the price is left out",
    errors.PaymentBelowMinimum: "a coin that cannot carry the price is left out",
    errors.PaymentUnsupportedNetwork: "each accepted coin has a pair",
}
# Errors that the code seems to raise and an actor, or an endpoint's reader, never does, with the reason.
NEVER: Final[Mapping[str, Mapping[type[DomainError], str]]] = {
    "select_method": {errors.PaymentUnsupportedNetwork: "the coin is one of the accepted, which all have a pair"},
    "create_payment_link": {errors.PaymentUnsupportedNetwork: "a pin, and each accepted coin, has a pair"},
    "check_out_link": {
        errors.InvoiceNoPayAsset: "translated for buyers",
        errors.PaymentBelowMinimum: "translated for buyers",
        errors.PaymentNetworkRequired: "translated for buyers",
        errors.PaymentUnknownToCurrency: "translated for buyers",
        errors.PaymentUnsupportedNetwork: "translated for buyers",
        errors.PaymentBadAccuracy: "a checkout names no accuracy",
        errors.PaymentToCurrencyRequired: "a network without a coin is refused before",
        errors.PaymentUnknownCurrency: "the currency is the link's",
    },
    "create_payout_links": {
        errors.PayoutFeeUnavailable: "an item's",
        errors.PayoutlinkBadAmount: "an item's",
        errors.PayoutlinkUnknownCurrency: "an item's",
        errors.PayoutlinkUnsupportedNetwork: "an item's",
    },
    "getPublicPayment": _LEFT_OUT,
    "getLink": _LEFT_OUT,
}
# Errors that an actor raises where this cannot be read, with the place.
UNREAD: Final[Mapping[str, Mapping[type[DomainError], str]]] = {
    "create_invoice": {errors.InvoiceAddressFailed: "models.addresses.pool, by a method of several classes"},
    "create_wallet": {errors.InvoiceAddressFailed: "models.addresses.pool, by a method of several classes"},
}


@pytest.fixture(scope="module")
def raised() -> Raised:
    return Raised()


@pytest.fixture(scope="module")
def registry() -> Mapping[str, Registration]:
    for module in modules_for(QUEUES):
        importlib.import_module(module)
    return REGISTRY


def function_of(registration: Registration) -> Any:
    """Return a call actor's function, without the decoding of its body."""
    bind: Any = registration.bind
    return inspect.unwrap(bind.args[0])


def codes(some: Errors) -> list[str]:
    return sorted(error.code for error in some)


def test_each_spec_has_its_actor_and_its_endpoint(registry: Mapping[str, Registration]) -> None:
    assert {name: registry[name].queue for name in SPECS} == {name: spec.queue for name, spec in SPECS.items()}
    assert [
        e.actor.spec for e in ENDPOINTS if e.actor is not None and SPECS[e.actor.spec.name] is not e.actor.spec
    ] == []
    assert {e.actor.spec.name for e in ENDPOINTS if e.actor is not None} == set(SPECS)


@pytest.mark.parametrize("name", SPECS)
def test_an_actor_raises_the_errors_of_its_spec_and_no_others(
    raised: Raised, registry: Mapping[str, Registration], name: str
) -> None:
    read = raised.by(function_of(registry[name])) - OF_ANY_CALL

    assert NEVER.get(name, {}).keys() <= read
    assert codes(read - NEVER.get(name, {}).keys()) == codes(SPECS[name].raises - UNREAD.get(name, {}).keys())


@pytest.mark.parametrize("request_type", REQUESTS, ids=lambda request_type: request_type.__name__)
def test_the_rules_of_a_request_raise_errors_that_it_names(raised: Raised, request_type: type[Request]) -> None:
    assert codes(raised.by(request_type.check) - set(reading_errors(request_type))) == []


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_an_endpoint_lists_the_errors_of_its_reader_and_message_and_no_others(
    raised: Raised, endpoint: Endpoint
) -> None:
    actor = endpoint.actor
    functions = [endpoint.reader] if actor is None else [actor.message, actor.complete]
    read = frozenset().union(*(raised.by(each) for each in functions if inspect.isfunction(each))) - OF_ANY_CALL

    never = NEVER.get(endpoint.name, {}).keys()
    assert never <= read
    assert codes(read - never - set(endpoint.all_errors())) == []
    assert codes(set(endpoint.errors) - read) == []
