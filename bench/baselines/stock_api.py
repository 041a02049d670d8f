"""Baseline *stock*, the HTTP side: checks the signature, sends the message, waits for its result. Frozen.

`gunicorn -c bench/baselines/gunicorn.conf.py bench.baselines.stock_api:app`
"""

from __future__ import annotations

import hashlib
from uuid import uuid4

import falcon

from bench.baselines import order
from bench.baselines.stock_actors import ApiKey, create_invoice

WAIT_MS = 10_000


class Payments:
    """POST /v1/payment."""

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        body = req.bounded_stream.read()
        env = req.env
        key = ApiKey.get_or_none(public_id=env["HTTP_X_PUBLIC_ID"], revoked_at=None)
        if key is None or not order.is_signed(
            key.secret_box, env["HTTP_X_TIMESTAMP"], req.path, body, env["HTTP_X_SIGNATURE"]
        ):
            raise falcon.HTTPUnauthorized
        message = create_invoice.send(
            str(uuid4()),
            str(key.merchant_id),
            env["HTTP_IDEMPOTENCY_KEY"],
            body.decode(),
            hashlib.sha256(body).hexdigest(),
        )
        # Compact, as falcon's own writer is not.
        answer = order.msgspec.json.encode(message.get_result(block=True, timeout=WAIT_MS))
        resp.content_type = "application/json"
        resp.data = b'{"state":0,"result":' + answer + b"}"


app = falcon.App()
app.add_route("/v1/payment", Payments())
