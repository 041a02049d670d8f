"""`sluice treasury`: shows the gateway's own wallets and the sweeps that are due, and books a surplus."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

from actors import context
from actors.context import Context
from actors.queue.link import LinkDownError
from actors.treasury.join import COINS_FEW
from cli.output import CommandError, JsonFlag, confirm, show
from cli.session import bell, database
from cli.shell.operators import ByOption, operator
from cli.treasury.comparison import compared_now
from cli.treasury.liquidity import liquidity
from cli.treasury.moves import move, returned
from cli.treasury.unowned import keep, unowned
from cli.treasury.words import YesFlag, amount_of
from core.catalogue.catalogue import Catalogue, Network
from core.catalogue.families import traits_of
from core.rates.pricing import CENTS
from models.payouts import freezes
from models.spends import coins
from models.spends.coins import Heap
from models.treasury import addresses, reconciliation, sweeps
from models.treasury import plan as treasury_plan
from models.treasury import unowned as treasury_unowned
from models.treasury.plan import Planned
from models.treasury.rows import Reconciliation

app = typer.Typer(no_args_is_help=True, help="The gateway's own wallets: balances, sweeps, surplus.")

app.command()(liquidity)
app.command()(move)
app.command()(returned)
app.command()(unowned)
app.command()(keep)

SHOWN_MAX: Final = 1_000
NetworkOption = Annotated[str | None, typer.Option("--network", help="This network alone.")]


@app.command()
def status(network: NetworkOption = None, *, as_json: JsonFlag = False) -> None:
    """Show addresses, the last comparison with the chain, and the balances of deposit addresses."""
    with database() as settings:
        ctx = context.configure(settings)
        statuses = [_status(ctx, code) for code in _networks(ctx, network)]
    lines = [line for each in statuses for line in _status_lines(each)]
    show({"networks": statuses}, lines, as_json=as_json)


@app.command()
def plan(network: NetworkOption = None, *, as_json: JsonFlag = False) -> None:
    """Show each coin at each deposit address, the cost of a sweep, and whether it is worth it now."""
    with database() as settings:
        ctx = context.configure(settings)
        _show_plan(_plan(ctx, network), joins=_joins(ctx, network), as_json=as_json)


@app.command()
def sweep(
    network: NetworkOption = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be swept, and do nothing.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Have the signer make the sweeps that are worth it now; it also does so by itself every few seconds."""
    with database() as settings:
        ctx = context.configure(settings)
        planned = [each for each in _plan(ctx, network) if each["verdict"] == "sweep"]
        if not dry_run:
            try:
                with bell(settings) as ring:
                    for code in _networks(ctx, network):
                        ring("keep_treasury", code)
            except LinkDownError as error:
                raise CommandError(f"Redis cannot be reached: {error}") from None
    _show_plan(planned, as_json=as_json, rung=not dry_run)


@app.command()
def adopt(
    network: str,
    currency: str,
    *,
    yes: YesFlag = False,
    by: ByOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Book a surplus of a coin in the hot wallet as the operator's own. Lifts no freeze.

    First find its source: `sluice rescan` finds a deposit that the scan overlooked.
    """
    with database() as settings:
        ctx = context.configure(settings)
        hot, books = compared_now(ctx, network, currency)
        surplus = hot.chain_units - hot.expected_units
        if surplus <= 0:
            raise CommandError(f"the hot wallet of {network} holds no {currency} beyond the books")
        amount = amount_of(ctx.catalogue, currency, surplus)
        if not yes:
            confirm(f"Book {amount} {currency} on {network} as the gateway's own?")
        if not reconciliation.adopt_surplus(network, currency, surplus, books, by=operator(by)):
            raise CommandError("the chain or the books have moved on; try again")
    document = {"network": network, "currency": currency, "amount": amount, "height": books.cursor.height}
    show(document, [f"{amount} {currency} on {network} is booked once it is deep enough"], as_json=as_json)


def _networks(ctx: Context, network: str | None) -> list[str]:
    if network is not None and network not in ctx.available:
        raise CommandError(f"{network} has no providers here")
    return [code for code in ctx.catalogue.networks if code in ctx.available and network in {None, code}]


def _status(ctx: Context, code: str) -> dict[str, Any]:
    network = ctx.catalogue.networks[code]
    lying: dict[str, int] = {}
    traits = traits_of(network)
    for each in sweeps.unswept(code, family=network.family, limit=SHOWN_MAX) if traits.has_sweeps else ():
        lying[each.currency] = lying.get(each.currency, 0) + each.units
    return {
        "network": code,
        "hot_address": addresses.address(code, "hot"),
        "cold_address": addresses.address(code, "cold"),
        "frozen": [f.reason for f in freezes.listing() if f.scope == "network" and f.name == code],
        "compared": [comparison(ctx.catalogue, kept) for kept in reconciliation.listing(code)],
        "unswept": {currency: amount_of(ctx.catalogue, currency, units) for currency, units in sorted(lying.items())},
        "coins": [_heap(ctx, network, each) for each in coins.heaps(code)] if traits.spends_coins else [],
        "unowned": {
            currency: amount_of(ctx.catalogue, currency, units)
            for currency, units in sorted(treasury_unowned.units(code).items())
        },
        "open_payouts": {
            currency: amount_of(ctx.catalogue, currency, units)
            for currency, units in sweeps.open_payout_units(code).items()
        },
    }


def _heap(ctx: Context, network: Network, heap: Heap) -> dict[str, Any]:
    pair, scale = ctx.catalogue.pair(heap.currency, network.code), ctx.catalogue.scale(heap.currency)
    units = heap.units if pair is None else pair.to_ledger(heap.units, scale)
    amount = amount_of(ctx.catalogue, heap.currency, units)
    return {"currency": heap.currency, "held": heap.is_held, "coins": heap.coins, "amount": amount}


def comparison(catalogue: Catalogue, kept: Reconciliation) -> dict[str, Any]:
    """Return a comparison in the form in which commands show it."""
    return {
        "network": kept.network,
        "currency": kept.currency,
        "place": kept.place,
        "height": kept.height,
        "chain": amount_of(catalogue, kept.currency, kept.chain_units),
        "expected": amount_of(catalogue, kept.currency, kept.expected_units),
        "ok": kept.is_sound,
        "misses": kept.misses,
        "detail": kept.detail,
        "age_s": kept.age_s,
    }


def _status_lines(document: dict[str, Any]) -> list[str]:
    lines = [
        f"{document['network']}: hot {document['hot_address'] or 'none yet'}, cold {document['cold_address'] or 'none'}"
    ]
    lines += [f"  FROZEN {reason}" for reason in document["frozen"]]
    lines += [comparison_line(compared) for compared in document["compared"]]
    lines += [f"  {amount} {currency} at deposit addresses" for currency, amount in document["unswept"].items()]
    lines += [
        f"  {each['coins']} coins worth {each['amount']} {each['currency']}"
        f" {'that transactions in no block hold' if each['held'] else 'that none holds'}"
        for each in document["coins"]
    ]
    lines += [
        f"  {amount} {currency} at addresses of nobody: sluice treasury unowned"
        for currency, amount in document["unowned"].items()
    ]
    lines += [f"  {amount} {currency} in open payouts" for currency, amount in document["open_payouts"].items()]
    return lines


def comparison_line(compared: dict[str, Any]) -> str:
    """Return a comparison as a line of text."""
    verdict = "ok" if compared["ok"] else f"DIFFERS from {compared['expected']} ({compared['misses']} times)"
    return (
        f"  {compared['network']} {compared['place']}: {compared['chain']} {compared['currency']}"
        f" at block {compared['height']}, {compared['age_s']} s ago: {verdict}"
    )


def _plan(ctx: Context, network: str | None) -> list[dict[str, Any]]:
    market, policy = ctx.market.read(), treasury_plan.policy_of(ctx.settings)
    return [
        _planned(ctx, code, each)
        for code in _networks(ctx, network)
        for each in treasury_plan.whole(ctx.catalogue, market, policy, ctx.catalogue.networks[code], limit=SHOWN_MAX)
    ]


def _planned(ctx: Context, network: str, each: Planned) -> dict[str, Any]:
    balance = each.unswept
    return {
        "network": network,
        "address": balance.address,
        "currency": balance.currency,
        "amount": amount_of(ctx.catalogue, balance.currency, balance.units),
        "usd": None if each.usd_cents is None else f"{each.usd_cents // CENTS}.{each.usd_cents % CENTS:02}",
        "cost": None if each.cost_units is None else amount_of(ctx.catalogue, balance.currency, each.cost_units),
        "verdict": each.verdict,
    }


def _joins(ctx: Context, network: str | None) -> list[dict[str, Any]]:
    """Return how many coins are free on each network with coins, and whether the signer would join some."""
    known = [ctx.catalogue.networks[code] for code in _networks(ctx, network)]
    return [
        {"network": each.code, **_heap(ctx, each, heap), "verdict": "join" if heap.coins > COINS_FEW else "few"}
        for each in known
        if traits_of(each).spends_coins
        for heap in coins.heaps(each.code)
        if not heap.is_held
    ]


def _join_line(document: dict[str, Any]) -> str:
    what = f"{document['network']}: {document['coins']} free coins worth {document['amount']} {document['currency']}"
    if document["verdict"] == "few":
        return f"{what} are spent where they lie; more than {COINS_FEW} would be joined"
    return f"{what}: joined at the hot wallet once that is cheap and no payout is due"


def _show_plan(
    planned: list[dict[str, Any]], *, as_json: bool, rung: bool = False, joins: Sequence[dict[str, Any]] = ()
) -> None:
    lines = [
        f"{p['network']} {p['address']}: {p['amount']} {p['currency']} ({p['usd'] or '?'} USD),"
        f" a sweep costs {p['cost'] or '?'}: {p['verdict']}"
        for p in planned
    ]
    lines += map(_join_line, joins)
    document: dict[str, Any] = {"planned": planned, "joins": list(joins), "rung": rung}
    show(document, [*lines, *(["the signer was notified"] if rung else [])] or ["nothing to sweep"], as_json=as_json)
