"""Declares the rig of a family: a chain that a test controls, providers that may lie, and the gateway's steps.

Every family implements all of it. Further methods for single duties are in OPTIONAL: a rig has them, or names a reason
why not.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from itertools import count
from typing import Any, ClassVar, Final, NamedTuple
from uuid import UUID, uuid4

from psycopg2 import sql

from actors import context
from actors.rates import network_fees
from actors.recovery import resume, seek, unread
from actors.scan import follow, rescan, sightings, witnesses
from actors.signer import broadcast, held_keys
from actors.signer import sign as signer_sign
from actors.treasury import reconcile, sweep
from chains import registry
from chains.family import Reader
from core.addresses.addresses import display, parse
from core.catalogue.catalogue import Catalogue, Network
from core.catalogue.families import traits_of
from core.ids import uuid7
from core.logs import checkpoints
from core.settings.settings import load_settings
from models.db import base
from models.db.base import column, execute, rows, transaction
from models.deposits import cursors
from models.deposits import rows as deposits
from models.invoices import rows as invoices
from models.invoices.rows import InvoiceRow
from models.ledger.ledger import holdings
from models.payouts import rows as payouts
from models.payouts.rows import PayoutRow
from models.recovery import writeoffs
from models.spends import freshness
from tests.actors.recovery.world import with_admin
from tests.chains.toy.plug import forget
from tests.models.builders import assert_sound, merchant, reach_head
from tests.models.invoices.builders import create, new_invoice
from tests.models.payouts.builders import fund

# After so long in no block more is offered.
PATIENCE_S: Final = 70
MNEMONIC: Final = " ".join(["abandon"] * 11 + ["about"])
# The price of an invoice, in whole coins, each worth a dollar.
PRICE: Final = 10

OPTIONAL: Final = (
    "pay_ripening", "leave_hole", "stall", "outlive", "gather", "refuse", "write_off", "say_dead", "offer",
    "pretend", "freeze", "share",
)  # fmt: skip
"""What a duty may need that not every family has."""


class Killed(BaseException):
    """The end of the signer at a step."""


def dies_at(label: str, act: Callable[[], object]) -> bool:
    """Let the signer do something until he dies at a label; return whether he did."""

    def hear(reached: str) -> None:
        if reached == label:
            raise Killed

    checkpoints.listen(hear)
    try:
        act()
    except Killed:
        return True
    finally:
        checkpoints.listen(None)
    return False


class Payment(NamedTuple):
    """A payment from outside, and what it takes to include it again after a reorg."""

    txid: str
    again: Any


class Fake(NamedTuple):
    """A transfer that looks like a payment to an address; units: the sum to be credited for it."""

    send: Callable[[str], object]
    units: int = 0


class Rig(ABC):
    """One network of a family, with its chain, its providers and its gateway. Units are the pair's."""

    code: ClassVar[str]
    currency: ClassVar[str]
    # Where two rigs are of one network.
    name: ClassVar[str] = ""
    # This number of payments at once is more than one step reads.
    flood: ClassVar[int] = 2_000
    # The most blocks that one look at the chain returns far below its head.
    at_once: ClassVar[int] = 1
    # The kind of its spends' claim: an account's slot, coins, or a window of time.
    claim: ClassVar[str]
    # Why it cannot do what OPTIONAL names, in one line each.
    lacks: ClassVar[Mapping[str, str]]

    def __init__(self, database: str) -> None:
        self._database = database
        self._ordinals = count(1_000_000)
        self.env: dict[str, str] = {}
        self.shop: UUID

    @classmethod
    def label(cls) -> str:
        """Return what it is called among the others."""
        return cls.name or cls.code

    # The chain, by the family ------------------------------------------------------------------------------

    @abstractmethod
    def mine(self, blocks: int = 1) -> None:
        """Make blocks, the first of which holds what waits."""

    @abstractmethod
    def pay(self, to: str, units: int) -> Payment:
        """Send coins from outside to an address in its stored form, to be mined."""

    @abstractmethod
    def reorg(self, depth: int, *again: tuple[Payment, int]) -> None:
        """Replace the last blocks. Each payment in `again` is included at its offset in the new ones."""

    @abstractmethod
    def tip(self) -> int:
        """Return the height of the chain's last block."""

    @abstractmethod
    def pass_chain_time(self, seconds: int) -> None:
        """Let the chain's clock follow the gateway's."""

    @abstractmethod
    def fakes(self) -> Mapping[str, Fake]:
        """Return the family's own fake and lost deposits, by name."""

    @abstractmethod
    def lies(self) -> Mapping[str, Callable[[int, str], object]]:
        """Return how a provider, by its number, lies or fails from now on about payments to an address; by name."""

    @abstractmethod
    def be_honest(self) -> None:
        """End the lies of every provider."""

    @abstractmethod
    def urls(self, providers: int) -> list[str]:
        """Put this many providers between the chain and the gateway, and return their URLs."""

    @abstractmethod
    def enrich(self) -> None:
        """Give the hot wallet coins enough for whatever it has to pay, fees included; to be mined."""

    @abstractmethod
    def units_at(self, address: str) -> int:
        """Return what the chain says that an address holds of the coin."""

    @abstractmethod
    def recipient(self) -> str:
        """Return a new address that does not belong to the gateway."""

    @abstractmethod
    def lose_answers(self) -> None:
        """Let every provider take what it is sent, and be cut off before it says so."""

    @abstractmethod
    def include(self, raw: bytes) -> None:
        """Make a block that holds signed bytes, in place of whatever waits with their claim."""

    @abstractmethod
    def forget_waiting(self) -> None:
        """Let every node forget what waits for a block."""

    @abstractmethod
    def usurp(self, thief: str, units: int) -> bool:
        """Let a thief with the hot wallet's key make a payment, with the claim of the waiting spend if possible.

        A block of its own includes it. Returns True if the waiting spend can never be included again.
        """

    @abstractmethod
    def demand(self, *, is_absurd: bool) -> None:
        """Let the chain ask far more for a transaction than anybody offers, or what is usual."""

    # The chain, where the family has it --------------------------------------------------------------------

    def pay_ripening(self, to: str, units: int) -> int:
        """Send coins that count only after more confirmations than others, to be mined; return how many."""
        raise NotImplementedError

    def leave_hole(self) -> None:
        """Let the chain skip the next height."""
        raise NotImplementedError

    def stall(self) -> None:
        """Let time pass without a block, until more has to be offered for what waits."""
        raise NotImplementedError

    def outlive(self) -> None:
        """Keep a sent transaction out of blocks until the chain would no longer include it."""
        raise NotImplementedError

    def refuse(self, address: str) -> None:
        """Let an output to an address have no effect, though others of its transaction have."""
        raise NotImplementedError

    def gather(self) -> None:
        """Let what lies at deposit addresses come to the hot wallet."""
        raise NotImplementedError

    def write_off(self, units: int) -> None:
        """Let an operator write off the sum that a thief took with our key."""
        raise NotImplementedError

    def say_dead(self, number: int) -> None:
        """Let a provider, by its number, say from now on that nothing of what waits can ever be included."""
        raise NotImplementedError

    def offer(self, to: str, units: int, *, is_soon: bool = True, instead_of: Payment | None = None) -> Payment:
        """Send a payment that everybody sees and that no block has before take_in().

        is_soon: whether it offers enough for one of the next blocks. instead_of: another of which it takes the place.
        """
        raise NotImplementedError

    def take_in(self, payment: Payment) -> None:
        """Let the next block have what offer() has sent."""
        raise NotImplementedError

    def offer_again(self, payment: Payment) -> None:
        """Send what offer() has sent once more, after everybody forgot it."""
        raise NotImplementedError

    def take_out(self, payment: Payment) -> None:
        """Replace the last block, which has what offer() has sent, by one without: it waits again."""
        raise NotImplementedError

    def hide_waiting(self, number: int) -> None:
        """Let a provider, by its number, show nothing of what waits for a block."""
        raise NotImplementedError

    def pretend(self, number: int, to: str, units: int) -> None:
        """Let a provider, by its number, show a waiting payment that does not exist."""
        raise NotImplementedError

    def freeze(self, address: str) -> None:
        """Let the issuer of what invoices are paid in freeze an address: nothing comes there or leaves from there."""
        raise NotImplementedError

    def melt(self, *, is_paused: bool = False) -> None:
        """Let the issuer free whom it has frozen, and pause its token or not."""
        raise NotImplementedError

    def refuse_transfers(self, number: int) -> None:
        """Let a provider, by its number, say from now on that no transfer of what invoices are paid in would work."""
        raise NotImplementedError

    def share(self, address: str, *, is_shared: bool = True) -> None:
        """Let other keys sign for our address, as a thief of its key could arrange; or end that."""
        raise NotImplementedError

    # The gateway -------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def served_by(self, providers: int, **env: str) -> Iterator[Rig]:
        """Begin with this many providers; fail if an invariant is broken at the end."""
        self.env = {
            "ENVIRONMENT": "development",
            "DATABASE_URL": self._database,
            "REDIS_URL": "redis://127.0.0.1:1/0",
            "WALLET_MNEMONIC": MNEMONIC,
            f"{self.code.upper()}_RPC_URLS": ",".join(self.urls(providers)),
        } | env
        self.restart()
        assert traits_of(self.network).claim == self.claim
        for currency in context.context().catalogue.assets:
            execute(
                "INSERT INTO rates (currency, usd, source, quoted_at) VALUES (%s, 1, 'test', app_now())"
                " ON CONFLICT DO NOTHING",
                (currency,),
            )
        self.shop = merchant()
        self.mine()
        self.poll()
        yield self
        assert_sound()

    def copy(self) -> str:
        """Copy the database as it is: the backup. Returns its address."""
        name = self._database.rsplit("/", 1)[1]
        copied = f"{name}_backup"
        base.close()
        made = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(copied), sql.Identifier(name))
        with_admin(self._database, made)
        base.connect(self._database)
        return self._database.rsplit("/", 1)[0] + "/" + copied

    def go_back_to(self, database: str) -> None:
        """Go on with an older copy, which is known to be one."""
        self._database = self.env["DATABASE_URL"] = database
        base.connect(database)
        execute("UPDATE database_marks SET timeline = '00000000'")
        self.restart()

    def go_back_unnoticed(self, database: str) -> None:
        """Go on with an older copy of the same machine, Redis and all: that time has passed shows in no row."""
        self._database = self.env["DATABASE_URL"] = database
        base.connect(database)
        # Its server is started later than the copy was made, and the tests' own was before.
        execute(
            "UPDATE chain_cursors SET looked_at = looked_at - interval '1 day',"
            " head_reached_at = head_reached_at - interval '1 day'"
        )
        self.restart()

    def restart(self) -> None:
        """Begin like a new process, which has asked no provider yet."""
        forget()
        unread._rests_until.clear()
        freshness.begin()
        context.configure(load_settings(self.env))
        held_keys.keys.cache_clear()

    @property
    def network(self) -> Network:
        return context.context().catalogue.networks[self.code]

    @property
    def catalogue(self) -> Catalogue:
        return context.context().catalogue

    @property
    def reader(self) -> Reader:
        return registry.reader(self.network, context.context().settings)

    @property
    def price(self) -> int:
        """Return the price of an invoice, in the pair's units."""
        return PRICE * 10 ** int(context.context().catalogue.pairs[self.currency, self.code].decimals)

    def invoice(self) -> InvoiceRow:
        """Return an invoice whose address is the wallet's."""
        ordinal, scale = next(self._ordinals), context.context().catalogue.scale(self.currency)
        (address,) = held_keys.keys().deposit_addresses(self.network, (ordinal,))
        execute(
            "INSERT INTO pool_addresses (family, ordinal, address) VALUES (%s, %s, %s)",
            (self.network.family, ordinal, address),
        )
        new = new_invoice(
            self.shop,
            address_ordinal=ordinal,
            address=display(self.network, address),
            network=self.code,
            pay_currency=self.currency,
            payer_units=PRICE * 10**scale,
            fee_fixed_units=3 * 10 ** (scale - 1),
            required_confirmations=self.network.confirmations,
        )
        assert create(new, family=self.network.family)[0] == "created"
        return invoices.reread(new.id)

    def poll(self, steps: int = 1) -> None:
        for _ in range(steps):
            follow.poll_network(self.code)
            seek.seek_departures(self.code)

    def catch_up(self) -> None:
        """Scan up to the chain's last block."""
        for _ in range(40):
            self.poll()
            if self.scanned() == self.tip():
                break
        assert self.scanned() == self.tip()
        self.poll()

    def advance(self, blocks: int = 1) -> None:
        """Mine this many blocks, and scan them."""
        self.mine(blocks)
        self.catch_up()

    def outlast(self) -> None:
        """Let time pass, with scans, until no block can include a transaction that was signed before a stop."""
        self.pass_time(traits_of(self.network).window_s)
        self.advance()

    def bury(self) -> None:
        """Mine what was sent, and scan as much as it takes to be credited."""
        self.advance(self.network.confirmations)

    def reread(self) -> None:
        """Read all blocks a second time that may be."""
        self.advance(rescan.behind_blocks(self.network) + 1)
        execute("UPDATE chain_cursors SET reread_height = NULL")
        rescan.rescan_recent(self.code)
        self.poll()

    def pass_time(self, seconds: int) -> None:
        """Move all clocks."""
        execute("UPDATE app_clock SET ahead = ahead + make_interval(secs => %s)", (seconds,))
        self.pass_chain_time(seconds)
        reach_head()
        execute("UPDATE rates SET quoted_at = app_now()")
        context.context().market.forget()

    @property
    def hot(self) -> str:
        return signer_sign.hot_wallet(self.network).address

    def order(self, address: str, **fields: object) -> PayoutRow:
        """Write an approved payout of as much as an invoice asks for, or with other fields."""
        whole = 10 ** self._scale()
        fund(self.shop, 20 * PRICE * whole, currency=self.currency)
        units = PRICE * whole
        new = PayoutRow(
            id=uuid7(), merchant_id=self.shop, order_id=str(uuid4()), kind="payout", currency=self.currency,
            network=self.code, address=address, amount_units=units, fee_units=whole, to_units=units,
            is_fee_on_top=True, status="approved", created_by="test",
        ).but(**fields)  # fmt: skip
        with transaction():
            return payouts.insert(context.context().catalogue, new)

    def sign(self) -> None:
        """Let the signer take a step, with all that it watches due."""
        execute("UPDATE spends SET check_at = app_now() WHERE check_at > app_now()")
        # None waits for others that might leave with it.
        wait = timedelta(seconds=traits_of(self.network).gather_s)
        execute(
            "UPDATE payouts SET due_at = due_at - %(wait)s, updated_at = updated_at - %(wait)s"
            " WHERE status = 'approved' AND due_at <= app_now()",
            {"wait": wait},
        )
        resume.resume_signing(self.code)
        broadcast.broadcast(self.code)

    def follow(self, times: int = 3) -> None:
        """Let what was sent be confirmed, and seen to be."""
        for _ in range(times):
            self.advance(self.network.confirmations)
            self.sign()

    def keep_and_follow(self) -> None:
        """Let the treasury take a few steps, at costs of today, and see what became of them."""
        for _ in range(3):
            network_fees.refresh_network_fees(self.code)
            context.context().market.forget()
            sweep.keep_treasury(self.code)
            self.follow(2)

    def book_loss(self, units: int) -> None:
        """Do write_off() for a family whose stolen sum is known as our own transaction."""
        catalogue = context.context().catalogue
        lost = catalogue.pairs[self.currency, self.code].to_ledger(units, self._scale())
        writeoffs.write_off(catalogue, self.code, self.currency, lost, reason="a thief's", by="operator")

    def findings(self) -> list[tuple[Any, ...]]:
        """Compare chain and books, at blocks of their own; return what does not agree at last."""
        for _ in range(4):
            self.advance()
            reconcile.reconcile(self.code)
        return rows("SELECT currency, place, misses FROM reconciliations WHERE NOT is_sound")

    def compared(self) -> int:
        """Return how many coins at how many places have been compared."""
        return len(rows("SELECT 1 FROM reconciliations"))

    def look(self) -> None:
        """Look once at what waits for a block."""
        sightings.seek_sightings(self.code)

    def witness(self) -> None:
        """Let what awaits a second opinion be due, and ask for it."""
        self.pass_time(400)
        witnesses.seek_second_opinions(self.code)

    # Results -----------------------------------------------------------------------------------------------

    def scanned(self) -> int:
        cursor = cursors.read(self.code)
        assert cursor is not None
        return cursor.height

    def credited(self, of: InvoiceRow) -> int:
        """Return how much of an invoice's deposits counts now, in the pair's units."""
        pair, scale = context.context().catalogue.pairs[self.currency, self.code], self._scale()
        owned = [
            deposits_there
            for deposits_there in deposits.of_owner(of.id)
            if deposits_there.status in {"confirmed", "credited"}
        ]
        return sum(
            pair.from_ledger(deposits_there.amount_units, scale)
            for deposits_there in owned
            if deposits_there.currency == self.currency
        )

    def holding(self) -> int:
        """Return how much of the coin the shop was ever given and still has, net, in the ledger's units."""
        balances = holdings(self.shop).get(self.currency, {})
        return balances.get("available", 0) + balances.get("maturing", 0) - balances.get("debt", 0)

    def _scale(self) -> int:
        return context.context().catalogue.scale(self.currency)

    def status(self, of: InvoiceRow) -> str:
        return invoices.reread(of.id).status

    def deposits(self) -> list[tuple[Any, ...]]:
        """Return each deposit ever seen: its transaction, its status, and which of its lives it is in."""
        return rows("SELECT txid, status, round FROM deposits ORDER BY detected_at, id")


def status(order: PayoutRow) -> str:
    """Return the status of a payout."""
    (value,) = column("SELECT status FROM payouts WHERE id = %s", (order.id,))
    return str(value)


def stored(of: InvoiceRow) -> str:
    """Return an invoice's address as the chain names it."""
    return parse(context.context().catalogue.networks[of.network], of.address)
