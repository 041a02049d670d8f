"""All endpoints, one resource a file. Served by api.app, described by api.openapi."""

from typing import Final

from api.endpoints import Endpoint
from api.routes import allowlist, balance, batches, currencies, rates, splits, system, transfers, wallets, webhooks
from api.routes.invoices import calls as payments
from api.routes.invoices import history as payment_history
from api.routes.invoices import pay
from api.routes.invoices import terms as payment_terms
from api.routes.invoices import timeline as payment_timeline
from api.routes.payment_links import buyers
from api.routes.payment_links import calls as payment_links
from api.routes.payout_links import calls as payout_links
from api.routes.payout_links import claims
from api.routes.payouts import auto_withdraw
from api.routes.payouts import calls as payouts
from api.routes.payouts import decisions as payout_decisions
from api.routes.payouts import history as payout_history
from api.routes.refunds import calls as refunds

ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    *payments.ENDPOINTS,
    *payment_history.ENDPOINTS,
    *payment_terms.ENDPOINTS,
    *payment_timeline.ENDPOINTS,
    *pay.ENDPOINTS,
    *payment_links.ENDPOINTS,
    *buyers.ENDPOINTS,
    *currencies.ENDPOINTS,
    *rates.ENDPOINTS,
    *refunds.ENDPOINTS,
    *balance.ENDPOINTS,
    *transfers.ENDPOINTS,
    *payouts.ENDPOINTS,
    *payout_history.ENDPOINTS,
    *payout_decisions.ENDPOINTS,
    *auto_withdraw.ENDPOINTS,
    *payout_links.ENDPOINTS,
    *claims.ENDPOINTS,
    *wallets.ENDPOINTS,
    *batches.ENDPOINTS,
    *webhooks.ENDPOINTS,
    *allowlist.ENDPOINTS,
    *splits.ENDPOINTS,
    *system.ENDPOINTS,
)
