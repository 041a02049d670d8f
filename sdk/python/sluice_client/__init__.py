"""A client of the Sluice payment gateway: payments, payouts, webhooks. It needs the standard library alone."""

from sluice_client.aio import AsyncSluice as AsyncSluice
from sluice_client.errors import ApiError as ApiError
from sluice_client.errors import InvalidWebhookError as InvalidWebhookError
from sluice_client.errors import RateLimitedError as RateLimitedError
from sluice_client.errors import SluiceError as SluiceError
from sluice_client.operations import Sluice as Sluice
from sluice_client.signing import sign as sign
from sluice_client.signing import verify_webhook as verify_webhook
