"""Every endpoint there is, one resource a file. Served by api.app, described by api.openapi."""

from typing import Final

from api.endpoints import Endpoint
from api.routes import balance, currencies, pay, payments, system, webhooks

ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    *payments.ENDPOINTS,
    *pay.ENDPOINTS,
    *currencies.ENDPOINTS,
    *balance.ENDPOINTS,
    *webhooks.ENDPOINTS,
    *system.ENDPOINTS,
)
