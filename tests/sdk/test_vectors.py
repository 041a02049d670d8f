"""Both libraries sign, and check webhooks, exactly alike."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable

import pytest

import sluice_client
from tests.sdk.shops import FailedError, NodeShop, Shop

# The worked example of the documentation.
EXAMPLE = ("sk_test_123", "1700000000", "POST", "/v1/payment", '{"amount":"10.00","currency":"USD","order_id":"é-1"}')
EXAMPLE_SIGNATURE = "ce8907b36760403d97493aa0124a9ab26481922be344b9d434075671d16a1fbc"
NOW = 1_764_000_000
BODY = '{"type":"payment","order_id":"é-1"}'.encode()
OLD, NEW = "whsec_old", "whsec_new"


def sent(secret: str = NEW, *, body: bytes = BODY, at: int = NOW) -> dict[str, str]:
    signature = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return {"X-Webhook-Timestamp": str(at), "X-Webhook-Signature": signature, "X-Webhook-Id": "1"}


def test_the_worked_example_is_signed_alike(open_shop: Callable[..., Shop]) -> None:
    shop = open_shop("https://pay.shop.example")
    secret, timestamp, method, path, body = EXAMPLE

    if isinstance(shop, NodeShop):
        assert shop.ask("sign", *EXAMPLE, is_call=False) == EXAMPLE_SIGNATURE
    else:
        assert sluice_client.sign(secret, timestamp, method, path, body.encode()) == EXAMPLE_SIGNATURE


@pytest.mark.parametrize("secrets", [NEW, [OLD, NEW], [NEW], [NEW, ""]])
@pytest.mark.parametrize("shift", [0, 299, -299])
def test_a_true_webhook_is_read(open_shop: Callable[..., Shop], secrets: object, shift: int) -> None:
    shop = open_shop("https://pay.shop.example")

    assert shop.verify(BODY, sent(), secrets, now=NOW + shift) == {"type": "payment", "order_id": "é-1"}
    lowered = {name.lower(): value for name, value in sent().items()}
    assert shop.verify(BODY, lowered, secrets, now=NOW) == {"type": "payment", "order_id": "é-1"}


@pytest.mark.parametrize(
    ("body", "headers", "secrets"),
    [
        pytest.param(BODY.replace(b"payment", b"paymemt"), sent(), NEW, id="a changed byte"),
        pytest.param(BODY, sent(OLD), NEW, id="the old secret alone"),
        pytest.param(BODY, sent(at=NOW - 301), NEW, id="replayed later"),
        pytest.param(BODY, sent(at=NOW + 301), NEW, id="from the future"),
        pytest.param(BODY, sent() | {"X-Webhook-Timestamp": str(NOW + 1)}, NEW, id="another timestamp"),
        pytest.param(BODY, sent() | {"X-Webhook-Timestamp": "+1764000000"}, NEW, id="a sign in the timestamp"),
        pytest.param(BODY, {}, NEW, id="no headers"),
        pytest.param(BODY, sent() | {"X-Webhook-Signature": ""}, NEW, id="no signature"),
        pytest.param(BODY, sent() | {"X-Webhook-Signature": "é" * 64}, NEW, id="a signature of other letters"),
        pytest.param(BODY, sent(), [], id="no secret"),
        pytest.param(BODY, sent(""), "", id="signed by the secret that is not set"),
        pytest.param(BODY, sent(""), [NEW, ""], id="signed by the old secret that is not set"),
    ],
)
def test_a_forged_webhook_is_refused(
    open_shop: Callable[..., Shop], body: bytes, headers: dict[str, str], secrets: object
) -> None:
    with pytest.raises(FailedError) as refused:
        open_shop("https://pay.shop.example").verify(body, headers, secrets, now=NOW)

    assert refused.value.kind == "InvalidWebhookError"
