"""The rig of the TON family: a simulated chain in this process, behind providers that lie over real HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import count
from typing import Any, ClassVar

from actors.signer import held_keys
from chains.spending import KeyRef
from chains.ton import boc, dictionaries, messages, requests
from chains.ton.cells import Cell
from chains.ton.slices import Builder, Slice
from chains.ton.transfers import CoinTransfer, JettonTransfer
from chains.ton.wallet import CODE, StateInit, wallet_id, wallet_state
from core.catalogue.families import traits_of
from devstack.ton import jettons
from devstack.ton.blocks import Ran
from devstack.ton.buyer import GAS_UNITS, LIFE_S, new_address, seqno_in
from devstack.ton.jettons import arrival, transferred
from tests.chains.contract.rig import Fake, Payment, Rig
from tests.chains.ton.world import Wallet, issuer, with_state
from tests.peers.json_rpc_node import Raw
from tests.peers.lying_rpc import DOWN, HTML
from tests.peers.ton.chain import BUYER, TON, Ton
from tests.peers.ton.lying import LyingTon, replaced

FAILURES: Mapping[str, Raw] = {"silent": DOWN, "429": Raw(status=429), "garbage": HTML}
HOT_TON = 1_000 * TON
# Of what the chain takes for gas.
ABSURD = 10**6
GAS_PRICES = 21
BROKEN = 4
FORGER = "0:" + "ee" * 32
NOTICE = 0x7362D09C
# The stamp of a wallet to which another contract was added that may send for it.
OTHER = Builder().uint(0b10, 2).uint(256, 9).raw(b"\x11" * 32).bit(1).end()


class Arrival(Payment):
    """A payment whose transaction, and so its id, the chain makes when it arrives."""

    @property
    def txid(self) -> str:  # type: ignore[override]
        """Return the id of the transaction that took the message."""
        find: Callable[[Cell], str] = tuple.__getitem__(self, 0)  # type: ignore[assignment]
        return find(self.again)


class TonRig(Rig):
    """TON, where an invoice is paid in USDT."""

    code = "ton"
    currency = "USDT"
    claim = "counter"
    at_once = 8
    lacks: ClassVar = {
        "pay_ripening": "validators' earnings come to no account of the basechain by itself",
        "leave_hole": "every height of the masterchain has a block",
        "stall": "what ends is signed again, at no higher offer",
        "offer": "no node shows what waits here",
        "pretend": "no node shows what waits here",
    }

    def __init__(self, database: str, stack: ExitStack) -> None:
        super().__init__(database)
        self._stack = stack
        self.ton = Ton()
        self.peers: list[LyingTon] = []
        self._numbers = count(1)
        self._seen: dict[bytes, str] = {}
        self._forgotten: Sequence[Cell] = ()
        self._locked: list[str] = []

    def urls(self, providers: int) -> list[str]:
        self.peers = [
            self._stack.enter_context(LyingTon(self.ton.chain, key=f"provider-{number}")) for number in range(providers)
        ]
        return [peer.url for peer in self.peers]

    def mine(self, blocks: int = 1) -> None:
        self.ton.mine(blocks)

    def pay(self, to: str, units: int) -> Payment:
        return self._brought(transferred(BUYER.address, to, units, query_id=next(self._numbers)))

    def _brought(self, message: Cell) -> Payment:
        """Let the next block have a message between contracts."""
        self.ton.act("message", boc=boc.write_base64(message))
        return Arrival(self._arrived, message)  # type: ignore[arg-type]

    def _arrived(self, message: Cell) -> str:
        for ran in self.ton.chain.ran[messages.read(message).recipient]:
            if ran.transaction.incoming.cell == message:
                self._seen[message.hash] = ran.transaction.hash.hex()
        return self._seen.get(message.hash, "")

    def reorg(self, depth: int, *again: tuple[Payment, int]) -> None:
        # The chain forgets the ids of what it replaces.
        for ran in [each for listed in self.ton.chain.ran.values() for each in listed]:
            self._seen[ran.transaction.incoming.cell.hash] = ran.transaction.hash.hex()
        pairs = [(payment.again, offset) for payment, offset in again]
        self.ton.chain.reorg(depth, pairs, between=self.ton.between)

    def tip(self) -> int:
        return self.ton.chain.head.id.seqno

    def pass_chain_time(self, seconds: int) -> None:
        self.ton.chain.advance(seconds)

    def enrich(self) -> None:
        self.ton.give(self.hot, HOT_TON)
        self.pay(self.hot, 1_000 * self.price)

    def gather(self) -> None:
        self.keep_and_follow()

    def outlive(self) -> None:
        self.forget_waiting()
        self.pass_time(LIFE_S + 1)
        self.mine()

    def outlast(self) -> None:
        # Blocks are dated by whole seconds.
        self.pass_time(traits_of(self.network).window_s + 1)
        self.advance()

    def refuse(self, address: str) -> None:
        self.ton.give_tokens(address, 0)
        self.mine()
        self.ton.lock(address, BROKEN)
        self.mine()

    def units_at(self, address: str) -> int:
        return self.ton.token_balance(address)

    def recipient(self) -> str:
        return new_address()

    def include(self, raw: bytes) -> None:
        self.forget_waiting()
        self.ton.send(boc.read(raw))
        self.mine()

    def forget_waiting(self) -> None:
        self._forgotten = self.ton.chain.forget_waiting()

    def usurp(self, thief: str, units: int) -> bool:
        self.forget_waiting()
        self._send_as_hot(
            JettonTransfer(
                jetton_wallet=jettons.wallet(self.hot), gas_units=GAS_UNITS, query_id=0, units=units, recipient=thief,
                excess_to=self.hot, forward_units=1,
            ).message()
        )  # fmt: skip
        return True

    def sweep(self, key: KeyRef) -> None:
        """Bring coin from a deposit address to the hot wallet, with no row of it."""
        self.ton.give(key.address, 5 * TON)
        self.mine()
        self._send_as(key, CoinTransfer(recipient=self.hot, units=4 * TON, bounce=False).message())

    def _send_as_hot(self, *sent: Cell) -> None:
        self._send_as(KeyRef(address=self.hot, ordinal=None), *sent)

    def _send_as(self, key: KeyRef, *sent: Cell) -> None:
        data = self.ton.ask("getAddressInformation", address=key.address)["data"]
        keys = held_keys.keys().deriver(self.network).keyring()
        until = self.ton.chain.now() + LIFE_S
        made = requests.request(wallet_id(is_test=True), seqno=seqno_in(data), valid_until=until, messages=sent).cell()
        signature = keys.sign(key, made.hash)
        state = None if data else wallet_state(keys.public(key), is_test=True)
        self.ton.send(messages.external(key.address, requests.signed(made, signature), state))
        self.mine()

    def _hot_state(self) -> StateInit:
        public = held_keys.keys().deriver(self.network).keyring().public(KeyRef(address=self.hot, ordinal=None))
        return wallet_state(public, is_test=True)

    def demand(self, *, is_absurd: bool) -> None:
        chain = self.ton.chain
        entries = dictionaries.read(chain.config, 32, entries_max=256)
        prices = next(entry.value.ref() for entry in entries if entry.key == GAS_PRICES)
        parts = Slice(prices)
        # The price of the first units of gas, and of each further one.
        head = Builder().uint(parts.uint(8 + 64), 8 + 64).uint(_times(parts.uint(64), is_absurd=is_absurd), 64)
        head.uint(parts.uint(8), 8).uint(_times(parts.uint(64), is_absurd=is_absurd), 64).cells(parts.rest())
        chain.config = replaced(chain.config, prices, head.end())

    def say_dead(self, number: int) -> None:
        def later(truth: Any, _params: object) -> object:
            return truth | {"gen_utime": truth["gen_utime"] + 10 * LIFE_S}

        self.peers[number].lies["getBlockHeader"] = later

    def write_off(self, units: int) -> None:
        self.book_loss(units)

    def freeze(self, address: str) -> None:
        self.ton.give_tokens(address, 0)
        self.mine()
        self.ton.lock(address)
        self.mine()
        # A node that took them before still has them.
        for message in self._forgotten:
            self.ton.send(message)
        self._forgotten = []
        self._locked.append(address)
        self.mine()

    def melt(self, *, is_paused: bool = False) -> None:
        """Free the frozen. Its issuer cannot pause this token, but leave our wallet locked."""
        for address in self._locked if not is_paused else ():
            self.ton.lock(address, 0)
        self.mine()

    def refuse_transfers(self, number: int) -> None:
        """Show every jetton wallet locked."""

        def locked(truth: Any, _params: object) -> object:
            if not truth["code"] or boc.read_base64(truth["code"]) != jettons.PINNED:
                return truth
            parts = Slice(boc.read_base64(truth["data"]))
            parts.uint(4)
            return truth | {"data": boc.write_base64(Builder().uint(3, 4).cells(parts.rest()).end())}

        self.peers[number].lies["getAddressInformation"] = locked

    def share(self, address: str, *, is_shared: bool = True) -> None:
        data = self.ton.ask("getAddressInformation", address=address)["data"]
        parts = Slice(boc.read_base64(data) if data else self._hot_state().data)
        kept = Builder().uint(parts.uint(1 + 32 + 32), 1 + 32 + 32).raw(parts.raw(32))
        self.ton.chain.put(address, StateInit(code=CODE, data=kept.optional(OTHER if is_shared else None).end()))

    def lose_answers(self) -> None:
        for peer in self.peers:
            peer.lies |= dict.fromkeys(("sendBoc", "sendBocReturnHash"), lambda _truth, _params: DOWN)

    def fakes(self) -> Mapping[str, Fake]:
        ton, price = self.ton, self.price
        other, admin = new_address(), Wallet("admin")
        ton.give(admin.address, 100 * TON)
        ton.mine()
        namesake = issuer(admin, "USDT")

        def called_usdt(to: str) -> None:
            ton.send(admin.order_at(ton.chain.now(), namesake.mint(to, price)))

        def twice(to: str) -> None:
            ton.send(ton.signed(BUYER.jettons(to, 3), BUYER.jettons(to, 3)))

        def gone(to: str) -> None:
            self.pay(to, price)
            self.mine()
            self.poll(2)
            self.reorg(1)

        def locked(to: str) -> None:
            """Send to a wallet that refuses what comes: it goes back."""
            self.refuse(to)
            self.pay(to, price)

        return {
            "a forged notice": Fake(self._notice),
            "from a forged wallet": Fake(self._forged_to_theirs),
            "from a forged wallet to a new one": Fake(self._forged),
            "of another issuer": Fake(self._of_another_issuer),
            "a namesake": Fake(called_usdt),
            "nothing at all": Fake(lambda to: self.pay(to, 0)),
            "another coin": Fake(self._coin),
            "coin that comes back": Fake(lambda to: self._coin(to, bounce=True)),
            "gone again": Fake(gone),
            "locked": Fake(locked),
            "without a notice": Fake(lambda to: ton.send(ton.token(to, 7, forward_units=0)), units=7),
            "with a notice": Fake(
                lambda to: ton.send(ton.token(to, 5, forward_units=TON // 100, memo="paid")), units=5
            ),
            "two in one request": Fake(
                lambda to: ton.send(ton.signed(BUYER.jettons(to, 3), BUYER.jettons(to, 3))), units=6
            ),
            "issued to them": Fake(lambda to: self._brought(transferred("", to, 4)), units=4),
            "theirs and another's": Fake(
                lambda to: ton.send(ton.signed(BUYER.jettons(other, price), BUYER.jettons(to, 9))), units=9
            ),
        }

    def _coin(self, to: str, body: Cell | None = None, *, sender: str = BUYER.address, bounce: bool = False) -> None:
        self.ton.deliver(sender, messages.internal(to, TON, bounce=bounce, body=body))

    def _notice(self, to: str) -> None:
        body = Builder().uint(NOTICE, 32).uint(7, 64).coins(self.price).address(BUYER.address).bit(0).end()
        self._coin(to, body, sender=FORGER)

    def _forged(self, to: str) -> None:
        """Bring jettons from nowhere to their real wallet, by its own code, which refuses them."""
        body = arrival(BUYER.address, self.price)
        message = messages.internal(jettons.wallet(to), TON, bounce=True, body=body)
        self.ton.deliver(FORGER, with_state(message, jettons.wallet_state(to)))

    def _forged_to_theirs(self, to: str) -> None:
        """Do the same where that wallet is there already."""
        self.pay(to, 0)
        self.ton.mine()
        self._forged(to)

    def _of_another_issuer(self, to: str) -> None:
        """Bring jettons to a wallet of the real code that obeys a forger."""
        state = jettons.wallet_state(to, master=FORGER)
        message = messages.internal(state.address, TON, bounce=True, body=arrival("", self.price))
        self.ton.deliver(FORGER, with_state(message, state))

    def lies(self) -> Mapping[str, Callable[[int, str], object]]:
        def fail(name: str) -> Callable[[int, str], object]:
            return lambda number, _to: setattr(self.peers[number], "failure", FAILURES[name])

        def elsewhere(truth: Any, _params: object) -> object:
            return truth | {"init": truth["init"] | {"root_hash": "A" * 43 + "="}}

        return {name: fail(name) for name in FAILURES} | {
            "hidden": lambda number, to: self.peers[number].hide(to, jettons.wallet(to)),
            "cut": lambda number, _to: self.peers[number].cut(),
            "invented": self._invent,
            "altered": lambda number, _to: self.peers[number].alter_amounts(2),
            "stuck": lambda number, _to: self.peers[number].lag(1),
            "wrong chain": lambda number, _to: self.peers[number].lies.update(getMasterchainInfo=elsewhere),
        }

    def _invent(self, number: int, to: str) -> None:
        """Show a transaction that would have happened, had the message been sent."""
        ton = self.ton
        ton.act("message", boc=boc.write_base64(transferred(BUYER.address, to, self.price)))
        ton.mine()
        (made,) = ton.chain.ran[jettons.wallet(to)]
        ton.chain.reorg(1, between=ton.between)
        (top,) = ton.chain.head.shards
        self.peers[number].invent((top.shard, top.seqno), Ran(made.transaction, made.cell))

    def be_honest(self) -> None:
        for peer in self.peers:
            peer.be_honest()


def _times(price: int, *, is_absurd: bool) -> int:
    return price * ABSURD if is_absurd else price // ABSURD
