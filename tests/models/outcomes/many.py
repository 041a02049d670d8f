"""Signs one spend that pays three payouts of two merchants, on a chain whose effects a test sets."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from core.ids import uuid7
from core.payouts.states import PayoutStatus
from models.db.base import transaction
from models.ledger.ledger import AVAILABLE, DEBT, Account, balance
from models.outcomes import payout_hooks
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow
from models.spends import limit_counters, tracking
from models.spends import rows as spends
from models.spends.outputs import Effect, Moved, OutputRow
from models.spends.rows import AttemptRow, Inclusion, Movement, SpendRow
from tests.models.builders import CATALOGUE, USDT, Chain
from tests.models.payouts.held import HOT_WALLET, funded, payout, reread

PAIR: Final = CATALOGUE.pairs["USDT", "ethereum"]
TOKENS: Final = PAIR.from_ledger(10 * USDT, CATALOGUE.scale("USDT"))
# The chain's fee for all three, in wei: not divisible by three.
FEE_UNITS: Final = 200_000


class Many:
    """Three payouts of 10 USDT each, the first two of one merchant, and the spend signed for them."""

    def __init__(self, chain: Chain, *, is_signed: bool = True, shops: tuple[UUID, UUID] | None = None) -> None:
        self.chain = chain
        self.shops = shops or (funded(chain=chain), funded(chain=chain))
        self.orders = [
            payout(shop, status="approved", is_approval_required=False) for shop in (self.shops[0], *self.shops)
        ]
        if is_signed:
            self.spend_id = self.sign()

    def sign(self, *orders: PayoutRow) -> UUID:
        """Sign for some payouts, or all, as the signer does."""
        spend_id = uuid7()
        paid = orders or tuple(self.orders)
        with transaction():
            outputs = []
            for place, order in enumerate(paid):
                locked = payouts.lock(order.id)
                assert locked is not None
                assert payout_hooks.begin(CATALOGUE, locked)
                outputs.append(
                    OutputRow(
                        spend_id=spend_id, place=place, payout_id=order.id, recipient=order.address, token_units=TOKENS
                    )
                )
                limit_counters.add(
                    spend_id, place=place, merchant_id=order.merchant_id, network="ethereum", usd_cents=1000
                )
            new = SpendRow(
                id=spend_id, network="ethereum", purpose="payout", sender=HOT_WALLET, currency="USDT",
                contract=PAIR.contract, decimals=PAIR.decimals, token_units=TOKENS * len(paid),
                slot=spends.take_slot("ethereum", HOT_WALLET, at_least=0),
            )  # fmt: skip
            attempt = AttemptRow(
                spend_id=spend_id,
                network="ethereum",
                txid=f"0x{spend_id.hex}",
                raw=b"signed",
                ceiling_units=FEE_UNITS,
                terms={"gas_limit": FEE_UNITS // 2, "price_units": 2, "tip_units": 1, "data_units": 0},
                # Expired: every scanned block is behind it.
                expires_height=0,
            )
            spends.insert(new, outputs, attempt)
        with transaction():
            tracking.note_sent(CATALOGUE, spend_id)
        return spend_id

    def include(self, *effects: Effect, fee_units: int = FEE_UNITS) -> None:
        """Include the spend in the newest block, with an effect for each output; "other" delivers one unit less."""
        moved = {
            "exact": Moved("exact"),
            "none": Moved("none", problem="refused"),
            "other": Moved("other", TOKENS, TOKENS - 1),
        }
        height, block_hash = self.chain.height, self.chain._hash()
        left = sum(TOKENS for each in effects if each != "none")
        inclusion = Inclusion(
            "0x1",
            height,
            block_hash,
            tuple(moved[each] for each in effects),
            fee_units,
            (Movement(HOT_WALLET, "USDT", -left), Movement(HOT_WALLET, "ETH", -fee_units), Movement("0xr", "USDT", 9)),
        )
        with transaction():
            tracking.note_mined(CATALOGUE, self.spend_id, inclusion)

    def take_out(self) -> None:
        with transaction():
            tracking.note_taken_out(CATALOGUE, self.spend_id)

    def reopen(self) -> None:
        with transaction():
            tracking.reopen(self.spend_id)

    def ripen(self) -> None:
        """End every output whose depth allows it, as the signer does step by step."""
        while True:
            with transaction():
                if tracking.ripen(CATALOGUE, self.spend_id) is None:
                    return

    def bury(self, cause: tracking.Cause = "expired") -> SpendRow | None:
        with transaction():
            return tracking.bury(CATALOGUE, self.spend_id, attempts=1, cause=cause)

    def states(self) -> tuple[str, ...]:
        """Return the states of the spend and of each of its outputs."""
        return (self.spend.state, *(output.state for output in self.spend.outputs))

    def statuses(self) -> list[PayoutStatus]:
        return [reread(order).status for order in self.orders]

    def owned(self) -> list[int]:
        """Return each merchant's available balance less its debt."""
        return [balance(Account(shop, AVAILABLE, "USDT")) - balance(Account(shop, DEBT, "USDT")) for shop in self.shops]

    @property
    def spend(self) -> SpendRow:
        stored = spends.find(self.spend_id)
        assert stored is not None
        return stored
