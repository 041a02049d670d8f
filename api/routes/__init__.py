"""Every endpoint there is, one resource a file. Served by api.app, described by api.openapi."""

from typing import Final

from api.endpoints import Endpoint
from api.routes import (
    allowlist,
    balance,
    currencies,
    pay,
    payment_history,
    payment_terms,
    payments,
    rates,
    system,
    wallets,
    webhooks,
)

ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    *payments.ENDPOINTS,
    *payment_history.ENDPOINTS,
    *payment_terms.ENDPOINTS,
    *pay.ENDPOINTS,
    *currencies.ENDPOINTS,
    *rates.ENDPOINTS,
    *balance.ENDPOINTS,
    *wallets.ENDPOINTS,
    *webhooks.ENDPOINTS,
    *allowlist.ENDPOINTS,
    *system.ENDPOINTS,
)
