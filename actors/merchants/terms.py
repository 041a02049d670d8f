"""Sets how a merchant is paid: accepted methods, discounts, tolerance. The API calls it through the queue and waits.

A request without changes only reads. Invoices created after the answer, by any process, have the new terms.
"""

from __future__ import annotations

from uuid import UUID

from actors.context import context
from actors.queue.call_specs import SET_ACCEPTED, SET_ACCURACY, SET_DISCOUNT
from actors.queue.caller import CallInfo, CallReply, call_actor, recorded
from core.merchants import terms_rules
from core.merchants.terms_schemas import SetAccepted, SetAccuracy, SetDiscount
from core.rates.pricing import Terms
from models.merchants import term_changes
from models.merchants.terms import load_terms


@call_actor(SET_ACCEPTED, body=SetAccepted)
def set_accepted(info: CallInfo, wanted: SetAccepted) -> CallReply:
    """Replace the accepted methods and return them; without a list, only return them."""
    merchant_id = info.merchant()
    with recorded(info) as record:
        if wanted.accepted is not None:
            methods = terms_rules.accepted_methods(context().catalogue, wanted.accepted)
            term_changes.replace_accepted(merchant_id, methods)
        return record.store(terms_rules.show_accepted(_terms(merchant_id).accepted))


@call_actor(SET_DISCOUNT, body=SetDiscount)
def set_discount(info: CallInfo, wanted: SetDiscount) -> CallReply:
    """Set a coin's discount and return all discounts; without a percentage, return the named ones."""
    merchant_id = info.merchant()
    catalogue = context().catalogue
    with recorded(info) as record:
        among = terms_rules.named_methods(catalogue, currency=wanted.currency, network=wanted.network)
        if wanted.discount_percent is not None:
            ppm = terms_rules.discount_ppm(wanted.discount_percent)
            term_changes.set_discount(merchant_id, among, ppm)
            among = frozenset(catalogue.pairs)
        return record.store(terms_rules.show_discounts(_terms(merchant_id).discounts_ppm, among))


def _terms(merchant_id: UUID) -> Terms:
    return load_terms(merchant_id, context().settings.standard_terms)


@call_actor(SET_ACCURACY, body=SetAccuracy)
def set_accuracy(info: CallInfo, wanted: SetAccuracy) -> CallReply:
    """Change the tolerance and return it; if nothing is given, only return it."""
    merchant_id, standard = info.merchant(), context().settings.standard_terms
    with recorded(info) as record:
        if wanted.enabled is None and wanted.accuracy_percent is None:
            accuracy = term_changes.read_accuracy(merchant_id, standard)
        else:
            percent = wanted.accuracy_percent
            ppm = None if percent is None else terms_rules.accuracy_ppm(percent)
            accuracy = term_changes.set_accuracy(merchant_id, standard, enabled=wanted.enabled, ppm=ppm)
        shown = terms_rules.show_accuracy(enabled=accuracy.enabled, ppm=accuracy.ppm)
        return record.store(shown)
