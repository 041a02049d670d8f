"""Every endpoint there is, one resource a file. Served by api.app, described by api.openapi."""

from typing import Final

from api.endpoints import Endpoint
from api.routes import (
    allowlist,
    balance,
    batches,
    claims,
    currencies,
    pay,
    payment_history,
    payment_terms,
    payments,
    payout_decisions,
    payout_history,
    payout_links,
    payouts,
    rates,
    refunds,
    system,
    transfers,
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
    *refunds.ENDPOINTS,
    *balance.ENDPOINTS,
    *transfers.ENDPOINTS,
    *payouts.ENDPOINTS,
    *payout_history.ENDPOINTS,
    *payout_decisions.ENDPOINTS,
    *payout_links.ENDPOINTS,
    *claims.ENDPOINTS,
    *wallets.ENDPOINTS,
    *batches.ENDPOINTS,
    *webhooks.ENDPOINTS,
    *allowlist.ENDPOINTS,
    *system.ENDPOINTS,
)
