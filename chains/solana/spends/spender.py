"""Prices, signs, sends and follows our own transactions on Solana. Built by chains.registry for the signer.

Questions that decide about money go to every provider, and a single one is not believed if others answer.
A transaction lives for 150 blocks. The signer sends the same bytes until they are in a block or have expired for good,
then it signs others for more; it raises no living offer, since no two attempts of one spend may live at once.
"""

from chains.family import Keyring
from chains.net.at_once import majority
from chains.net.json_rpc import JsonRpc
from chains.net.providers import Providers
from chains.one_transfer import is_living
from chains.solana import transactions
from chains.solana.spends import drafts, trial
from chains.solana.spends import fate as spend_fate
from chains.solana.spends.sending import give
from chains.solana.spends.trial import Verdict
from chains.solana.transactions import Body
from chains.spending import Attempt, Case, Draft, Fate, InsufficientCoinError, Intent, Purse, Sending
from core.catalogue.catalogue import Network


class SolanaSpender:
    """Spends on one Solana cluster, as chains.family.Spender and TokenSpender. Units of the gas coin are lamports."""

    def __init__(self, network: Network, providers: Providers[JsonRpc]) -> None:
        self._gas_currency, self._providers = network.gas_currency, providers

    def draft(self, intent: Intent, purse: Purse, *, cap_units: int) -> Draft:
        """Return a draft that the wallet itself pays for; see chains.family.

        Nodes report the balance after the newest block, so it has to cover the spends that are in no block too.
        """
        agreed = drafts.verdict(self._providers, intent)
        made = drafts.make(intent, agreed, cap_units=cap_units, scanned=purse.scanned, expired=purse.expired)
        self._check_purse(intent, purse, agreed, made.offer.ceiling_units)
        return made

    def refuses(self, intent: Intent) -> bool:
        """Return True if the chain would refuse a token's transfer; see chains.family."""
        return drafts.refuses(self._providers, intent)

    def dearer(self, before: Draft, purse: Purse, *, cap_units: int) -> Draft | None:
        """Return None: another offer is another transaction, and the chain could include both."""
        del before, purse, cap_units
        return None

    def sign(self, draft: Draft, *, counter: int | None, keys: Keyring) -> Attempt:
        """Sign a draft, deterministically and without the network.

        Raises ValueError for a counter, a foreign key, or a message that does not do what the draft says.
        """
        if counter is not None:
            raise ValueError("a Solana transaction has no number")
        body = _checked(draft)
        by_address = {key.address: key for key in (draft.intent.payer, draft.intent.wallet) if key is not None}
        return transactions.signed(draft.plan, [keys.sign(by_address[each], draft.plan) for each in body.signers])

    def send(self, raw: bytes) -> Sending:
        """Send bytes to every provider. They count as taken if one takes them."""
        txid = transactions.txid_of(raw)
        sendings = self._providers.answers(lambda node: give(node, raw, txid))
        return next(sending for sending in Sending if sending in sendings)

    def fate(self, case: Case) -> Fate:
        """Return the fate of a spend, by all its attempts; see chains.family."""
        fates = self._providers.answers(
            lambda node: spend_fate.testimony(node, case, self._gas_currency), decides=majority(is_living)
        )
        return spend_fate.judge(fates, self._providers.count)

    def _check_purse(self, intent: Intent, purse: Purse, agreed: Verdict, ceiling_units: int) -> None:
        """Raise InsufficientCoinError if the wallet cannot pay in addition to what it has promised.

        An account that is not emptied has to keep the rent of an account without data.
        """
        currency = self._gas_currency if intent.pair is None else intent.pair.currency
        promised, wallet = dict(purse.promised), intent.wallet.address
        needed = promised.get(self._gas_currency, 0) + ceiling_units + agreed.rents.plain
        needed += intent.units if currency == self._gas_currency else 0
        if agreed.payer_units < needed:
            raise InsufficientCoinError(
                f"{wallet} holds {agreed.payer_units} lamports and needs {needed} with all that waits"
            )
        needed_units = intent.units + promised.get(currency, 0)
        if currency != self._gas_currency and agreed.units < needed_units:
            raise InsufficientCoinError(f"{wallet} holds {agreed.units} units of {currency} and needs {needed_units}")


def _checked(draft: Draft) -> Body:
    """Return the contents of a draft's message. Raises ValueError if they are not those of its intent."""
    body = transactions.read_message(draft.plan)
    if body is None or body.reference != getattr(draft.claim, "reference", ""):
        raise ValueError("the message of a draft is not one of a transfer")
    figures = {"limit": body.limit, "price": body.price, "mark": body.mark, "reference": body.reference}
    if body != trial.contents(draft.intent, closes=body.closes, **figures):
        raise ValueError("the message of a draft is not the one of its intent")
    return body
