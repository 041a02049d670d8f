"""Sweeps deposits to the hot wallet if that pays, and moves its excess to the cold address. Notified by the scheduler.

Runs in the signer process, which has the keys. The family's treasurer names the next step to move a coin; this module
decides how much an address holds and whether a sweep pays. actors.signer.broadcast follows the spends, like all others.
"""

from __future__ import annotations

from typing import Final, assert_never

import structlog

from actors.context import Context
from actors.network_ticks import network_tick
from actors.queue.broker import ring
from actors.signer import funding, refusals, rollback, sign
from actors.signer.refusals import OwnRefusalError
from actors.treasury.join import join
from chains import registry
from chains.base import DisagreementError, ForeignKeyError, Place
from chains.family import Reader
from chains.keystore import KeystoreError
from chains.registry import fee_cap_units
from chains.spending import (
    CoinsTooSmallError,
    Draft,
    FeeTooHighError,
    Fund,
    InsufficientCoinError,
    Intent,
    KeyRef,
    LoneRefusalError,
    Lying,
    Output,
    SpendRefusedError,
    Step,
    Sweep,
    Wait,
)
from core.catalogue.catalogue import Network, Pair
from core.catalogue.families import traits_of
from core.money import rescale_down
from core.rates.worth import excess_units
from models.deposits import cursors, probes
from models.deposits.cursors import Cursor
from models.payouts import freezes
from models.spends import reads as spend_reads
from models.spends import signing_stops
from models.treasury import addresses, sweeps
from models.treasury import plan as treasury_plan
from models.treasury.sweeps import Unswept

log = structlog.get_logger()

# The number of addresses judged, and of spends started, in one step.
JUDGED_PER_STEP: Final = 200
STARTED_PER_STEP: Final = 20
# The number of addresses checked for leftover gas in a step that started no sweep.
COLLECTED_PER_STEP: Final = 20
# Divisors of the excess, tried in turn: one transaction moves no more than the sum of its largest coins.
COOLED_PARTS: Final = (1, 2, 4, 8)
# The last reason for which a sweep was refused, by network, address and coin, so that this process reports it once: an
# issuer may freeze many addresses for ever. The oldest are forgotten first.
REPORTED_MAX: Final = 10_000
_reported: Final[dict[tuple[str, str, str], str]] = {}


@network_tick("treasury", queue="signer")
def keep_treasury(ctx: Context, network: Network, chain: Reader) -> None:
    """Sweep deposits that are worth it, and move the hot wallet's excess to the cold address."""
    rollback.look()
    is_stopped = signing_stops.watch(network.code) is not None or bool(signing_stops.obstacle(network.code))
    keeper = None if is_stopped else _open_treasury(ctx, network, chain)
    if keeper is None:
        return
    try:
        keeper.run()
    except ForeignKeyError as error:
        sign.freeze_for(network.code, error)
    except FeeTooHighError as error:
        log.info("treasury.gas_too_high", network=network.code, reason=str(error))
    finally:
        if keeper.started:
            ring("broadcast", network.code)


def _open_treasury(ctx: Context, network: Network, chain: Reader) -> _Keeper | None:
    """Record the hot and the cold address; None without a scan cursor or with another keystore's wallet."""
    try:
        hot = sign.hot_wallet(network)
    except KeystoreError as error:
        log.critical("treasury.keystore_failed", network=network.code, problem=str(error))
        return None
    cold = ctx.settings.cold_addresses.get(network.code)
    if not addresses.set_cold(network.code, cold):
        log.critical("treasury.cold_is_hot", network=network.code)
        cold = None
    cursor = cursors.read(network.code)
    return None if cursor is None else _Keeper(ctx, network, chain, cursor, hot, cold)


class _Keeper:
    """One step of one network."""

    def __init__(
        self, ctx: Context, network: Network, chain: Reader, cursor: Cursor, hot: KeyRef, cold: str | None
    ) -> None:
        self._ctx, self._network, self._chain, self._cursor = ctx, network, chain, cursor
        self._hot, self._cold = hot, cold
        self._traits = traits_of(network)
        self._is_hot_dry = False
        # Addresses that need gas and are funded together.
        self._funds: list[Fund] = []
        self._frozen = freezes.frozen_coins(network.code)
        self._cap_units = fee_cap_units(network, ctx.settings)
        self.started = 0

    def run(self) -> None:
        """Sweep or join the next deposits, then move the hot wallet's excess.

        While the network is frozen nothing is brought to the hot wallet: its key may be stolen.
        """
        if not freezes.is_network_frozen(self._network.code):
            if self._traits.has_sweeps:
                self._gather()
            else:
                # Payouts spend coins directly at their deposit addresses.
                self.started += join(self._ctx, self._network, self._hot)
        if self._cold is not None:
            self._cool(self._cold)

    def _gather(self) -> None:
        page = sweeps.walk(self._network.code, "sweep", family=self._network.family, limit=JUDGED_PER_STEP)
        policy = treasury_plan.policy_of(self._ctx.settings)
        market = self._ctx.market.read()
        busy = sweeps.busy_addresses(self._network.code)
        for planned in treasury_plan.judged(self._ctx.catalogue, market, policy, self._network, page):
            if self.started + len(self._funds) >= STARTED_PER_STEP:
                break
            if planned.unswept.currency in self._frozen:
                continue
            if planned.verdict == "sweep" and planned.unswept.address not in busy:
                busy.add(planned.unswept.address)
                self._sweep(planned.unswept)
        if not self.started and not self._funds:
            self._collect()
        self._fund_all()

    # Sweeps ------------------------------------------------------------------------------------------------

    def _sweep(self, unswept: Unswept) -> int:
        """Take a step towards sweeping an address; a failure of one does not affect the others.

        Returns the step's cost in base units of the gas coin; 0 if unknown.
        """
        wallet = sign.deposit_wallet(self._network, unswept.ordinal)
        if wallet.address != unswept.address:
            log.error("sweep.address_not_ours", network=self._network.code, address=unswept.address)
            return 0
        lying = self._lying(unswept, wallet)
        if lying.pair is None and self._is_in_motion(unswept.address):
            return 0
        try:
            treasurer = registry.treasurer(self._network, self._ctx.settings)
            return self._take_step(unswept, treasurer.step(lying, self._hot, cap_units=self._cap_units))
        except (SpendRefusedError, LoneRefusalError, InsufficientCoinError, DisagreementError) as error:
            self._report(unswept, str(error))
            self._trace(lying.pair, error)
        return 0

    def _is_in_motion(self, address: str) -> bool:
        """Return whether the chain may show more or less of an address's gas coin than our rows do."""
        code = self._network.code
        if self._traits.has_late_effects and addresses.moves_after(code, address, self._cursor.height):
            return True
        return addresses.is_in_motion(code, [address])

    def _report(self, unswept: Unswept, reason: str) -> None:
        """Log the reason for which a sweep was refused, unless it was logged for this coin at this address last."""
        network, address, currency = key = (self._network.code, unswept.address, unswept.currency)
        if _reported.pop(key, None) != reason:
            log.warning("sweep.refused", network=network, address=address, currency=currency, reason=reason)
        _reported[key] = reason
        if len(_reported) > REPORTED_MAX:
            del _reported[next(iter(_reported))]

    def _trace(self, pair: Pair | None, error: Exception) -> None:
        """Freeze a token that refuses the hot wallet, and leave it out of the rest of this step."""
        if pair is not None and isinstance(refusals.traced(self._ctx, self._network, pair, error), OwnRefusalError):
            self._frozen.add(pair.currency)

    def _take_step(self, unswept: Unswept, step: Step) -> int:
        match step:
            case Sweep():
                self._start_sweep(unswept, step.draft)
                return step.draft.offer.ceiling_units
            case Fund():
                self._fund(unswept, step)
            case Wait(reason="short"):
                log.error("sweep.balance_short", network=self._network.code, address=unswept.address)
            case Wait():
                pass
            case _:
                assert_never(step)
        return step.cost_units

    def _lying(self, unswept: Unswept, wallet: KeyRef) -> Lying:
        pair = self._ctx.catalogue.pair(unswept.currency, self._network.code)
        token = None if pair is None or pair.contract is None else pair
        return Lying(
            key=wallet,
            pair=token,
            units=self._explained_units(unswept) if token is None else self._token_units(unswept.units, token),
            # True if only leftover gas is moved, without a deposit.
            is_rest=not unswept.units,
            height=self._cursor.height,
            block_hash=self._cursor.hash,
            scanned=sign.scanned_at(self._cursor),
            hot_promised_units=self._promised_units(),
            expired=self._expired(unswept.address, token),
        )

    def _expired(self, address: str, token: Pair | None) -> int:
        """Return the number of an address's last sweeps of a coin that expired, one after the other."""
        if not self._traits.has_windows:
            return 0
        return spend_reads.dead_sweeps(self._network.code, address, None if token is None else token.contract)

    def _promised_units(self) -> int:
        """Return the gas coin that the hot wallet's spends will take, where it pays for sweeps."""
        if not self._traits.has_cosigned_sweeps:
            return 0
        promised = spend_reads.promised(self._network.code, self._hot.address, None)
        return promised.native_units + promised.gas_units

    def _explained_units(self, unswept: Unswept) -> int:
        """Return the gas coin that an address holds by our rows, in base units."""
        code, height = self._network.code, self._cursor.height
        moved = addresses.moved_native_units(code, unswept.address, unswept.currency, height=height)
        pair = self._ctx.catalogue.pair(unswept.currency, code)
        if pair is None:
            return moved
        come = probes.deposited_units(code, unswept.address, unswept.currency, height=height, only_confirmed=True)
        return moved + self._token_units(come, pair)

    def _token_units(self, units: int, pair: Pair) -> int:
        return pair.from_ledger(units, self._ctx.catalogue.scale(pair.currency))

    def _start_sweep(self, unswept: Unswept, draft: Draft) -> None:
        code = self._network.code
        spend_id = sign.start(
            self._ctx,
            self._network,
            purpose="sweep",
            intent=draft.intent,
            draft=draft,
            within=lambda spend_id: sweeps.take(code, unswept, spend_id),
        )
        if spend_id is not None:
            self.started += 1
            log.info(
                "sweep.started", network=code, address=unswept.address, currency=unswept.currency, spend=str(spend_id)
            )

    def _fund(self, unswept: Unswept, step: Fund) -> None:
        """Send a deposit address the gas that its sweep lacks, if that is worth it and the hot wallet has enough.

        Where a spend has several outputs, it is sent together with others at the end of the step.
        """
        market, policy = self._ctx.market.read(), treasury_plan.policy_of(self._ctx.settings)
        if self._is_hot_dry or not treasury_plan.is_worth(
            self._ctx.catalogue, market, policy, self._network, unswept, gas_units=step.cost_units
        ):
            return
        self._funds.append(step)
        if self._traits.outputs_max == 1:
            self._fund_all()

    def _fund_all(self) -> None:
        steps, self._funds = self._funds, []
        if not steps:
            return
        try:
            self.started += funding.fund(self._ctx, self._network, *steps)
        except InsufficientCoinError as error:
            self._is_hot_dry = True
            log.warning("sweep.hot_wallet_short", network=self._network.code, reason=str(error))
        except SpendRefusedError as error:
            if self._traits.outputs_max == 1:
                # Of the address whose step this is.
                raise
            log.warning("sweep.funding_refused", network=self._network.code, reason=str(error))

    def _collect(self) -> None:
        """Sweep leftover gas coin from addresses that no longer need it, once it is worth its fee."""
        code, known = self._network.code, 0
        for each in sweeps.walk_gas(
            code, self._network.gas_currency, family=self._network.family, limit=COLLECTED_PER_STEP
        ):
            # Skips amounts of at most twice the last known fee.
            if self._explained_units(each) > 2 * known:
                known = self._sweep(each) or known

    # The cold address --------------------------------------------------------------------------------------

    def _cool(self, cold: str) -> None:
        """Move the hot wallet's excess over its limit and over open payouts to the cold address."""
        code, catalogue, market = self._network.code, self._ctx.catalogue, self._ctx.market.read()
        # On networks of coins, signed payouts hold their coins, which are not among the free ones.
        needed = sweeps.open_payout_units(code, is_signed_too=not self._traits.spends_coins)
        on_its_way = sweeps.cooling(code) | self._frozen
        for pair in catalogue.pairs_on(code):
            if pair.currency in on_its_way:
                continue
            scale = catalogue.scale(pair.currency)
            try:
                hot_units = self._hot_units(pair)
            except DisagreementError as error:
                log.warning("treasury.cooling_refused", network=code, currency=pair.currency, reason=str(error))
                continue
            excess = excess_units(
                held_units=pair.to_ledger(hot_units, scale),
                limit_usd=self._ctx.settings.hot_limit_usd,
                needed_units=needed.get(pair.currency, 0),
                rate=market.rates.get(pair.currency),
                scale=scale,
            )
            units = min(hot_units, rescale_down(excess, scale, pair.decimals))
            if units > 0:
                self._start_cooling(cold, pair, units)

    def _hot_units(self, pair: Pair) -> int:
        """Return the hot wallet's balance in token units, at the scan's cursor if the chain can report that.

        On networks of coins, the sum of the coins that may be spent.
        """
        if self._traits.spends_coins:
            return sum(coin.units for coin in sign.free_coins(self._network, pair.currency))
        place = Place(address=self._hot.address, pair=pair)
        snapshot = self._chain.snapshot([place], height=self._cursor.height, block_hash=self._cursor.hash)
        return snapshot.units[0]

    def _start_cooling(self, cold: str, pair: Pair, units: int) -> None:
        """Send the excess to the cold address; on networks of coins, a part if one transaction cannot move it all."""
        code, moved = self._network.code, None if pair.contract is None else pair
        for part in COOLED_PARTS if self._traits.spends_coins else COOLED_PARTS[:1]:
            intent = Intent(wallet=self._hot, pair=moved, outputs=(Output(recipient=cold, units=units // part),))
            try:
                sign.start(self._ctx, self._network, purpose="cold", intent=intent)
            except sign.WalletBusyError:
                return
            except (CoinsTooSmallError, InsufficientCoinError, LoneRefusalError, SpendRefusedError) as error:
                log.warning("treasury.cooling_refused", network=code, currency=pair.currency, reason=str(error))
                self._trace(moved, error)
                continue
            self.started += 1
            log.info("treasury.cooling_started", network=code, currency=pair.currency, units=units // part)
            return
