"""Every refusal of the gateway as a type: `from core.errors import PaymentBelowMinimum`."""

# ruff: noqa: F403 - each module holds nothing but errors, and all of them are meant to be had from here.

from core.errors.base import ERRORS as ERRORS
from core.errors.base import DomainError as DomainError
from core.errors.base import TooManyRequestsError as TooManyRequestsError
from core.errors.pay import *
from core.errors.payment import *
from core.errors.payout import *
from core.errors.payout_link import *
from core.errors.refund import *
from core.errors.request import *
from core.errors.settings import *
from core.errors.wallet import *
