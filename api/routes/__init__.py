"""All endpoints, one resource a file. Served by api.app, described by api.openapi."""

from typing import Final

from api.endpoints import Endpoint
from api.routes import allowlist, balance, batches, currencies, rates, splits, system, transfers, wallets, webhooks
from api.routes.invoices import calls, history, pay, terms, timeline
from api.routes.payment_links import buyers
from api.routes.payment_links import calls as payment_link_calls
from api.routes.payout_links import calls as payout_link_calls
from api.routes.payout_links import claims
from api.routes.payouts import auto_withdraw
from api.routes.payouts import calls as payout_calls
from api.routes.payouts import decisions as payout_decisions
from api.routes.payouts import history as payout_history
from api.routes.refunds import calls as refund_calls

ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    *calls.ENDPOINTS,
    *history.ENDPOINTS,
    *terms.ENDPOINTS,
    *timeline.ENDPOINTS,
    *pay.ENDPOINTS,
    *payment_link_calls.ENDPOINTS,
    *buyers.ENDPOINTS,
    *currencies.ENDPOINTS,
    *rates.ENDPOINTS,
    *refund_calls.ENDPOINTS,
    *balance.ENDPOINTS,
    *transfers.ENDPOINTS,
    *payout_calls.ENDPOINTS,
    *payout_history.ENDPOINTS,
    *payout_decisions.ENDPOINTS,
    *auto_withdraw.ENDPOINTS,
    *payout_link_calls.ENDPOINTS,
    *claims.ENDPOINTS,
    *wallets.ENDPOINTS,
    *batches.ENDPOINTS,
    *webhooks.ENDPOINTS,
    *allowlist.ENDPOINTS,
    *splits.ENDPOINTS,
    *system.ENDPOINTS,
)
