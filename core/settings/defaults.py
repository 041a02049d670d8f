"""Declares the defaults of variables by environment. Defaults of both are with their fields in settings."""

from collections.abc import Mapping
from typing import Final

from core.catalogue.fields import Environment
from core.settings.rules import DEVELOPMENT_SECRET_KEYS

DEFAULTS: Final[Mapping[Environment, Mapping[str, str]]] = {
    "development": {
        "SECRET_KEYS": DEVELOPMENT_SECRET_KEYS,
        "RATES_SOURCE": "static",
        "LOG_FORMAT": "console",
        "TICK_INTERVAL_MS": "250",
        "POOL_LOW": "500",
        "POOL_HIGH": "2000",
        "SIGNER_PAYOUT_MAX_USD": "1000000000",
        "SIGNER_HOURLY_USD": "1000000000",
        "SIGNER_DAILY_USD": "1000000000",
        "SIGNER_MERCHANT_PERCENT": "100",
        # Every deposit is swept at once, whatever that costs.
        "SWEEP_MIN_USD": "0",
        "SWEEP_FEE_MAX_PERCENT": "10000",
        # A whole shop's traffic comes from one machine and one key there.
        "RATE_LIMIT_KEY_MINUTE": "10000000",
        "RATE_LIMIT_KEY_SECOND": "1000000",
        "RATE_LIMIT_PUBLIC_MINUTE": "10000000",
        "RATE_LIMIT_ANONYMOUS_MINUTE": "10000000",
        "RATE_LIMIT_BUYER_MINUTE": "10000000",
        "RATE_LIMIT_LINK_HOUR": "10000000",
        "RATE_LIMIT_CLAIM_MINUTE": "10000000",
    },
    "production": {
        "RATES_SOURCE": "live",
        "LOG_FORMAT": "json",
        "TICK_INTERVAL_MS": "1000",
        "POOL_LOW": "5000",
        "POOL_HIGH": "20000",
        "SIGNER_PAYOUT_MAX_USD": "25000",
        "SIGNER_HOURLY_USD": "100000",
        "SIGNER_DAILY_USD": "500000",
        "SIGNER_MERCHANT_PERCENT": "50",
        "SWEEP_MIN_USD": "20",
        "SWEEP_FEE_MAX_PERCENT": "5",
    },
}
