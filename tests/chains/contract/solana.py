"""The rig of the Solana family: a simulated chain in this process, behind providers that lie over real HTTP."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import count
from typing import Any, ClassVar

from solders.compute_budget import set_compute_unit_limit
from solders.hash import Hash
from solders.instruction import Instruction
from solders.message import to_bytes_versioned
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.system_program import TransferParams, transfer
from solders.transaction import VersionedTransaction

from actors.signer import held_keys
from chains.spending import KeyRef
from core.catalogue.families import traits_of
from devstack.solana.blocks import Included
from devstack.solana.buyer import Buyer, compiled, new_address
from devstack.solana.programs import TOKEN, associated, give_away, holding_bytes, move_tokens
from devstack.solana.simulator import LIFE_BLOCKS
from devstack.solana.transactions import Signed, read_transaction
from tests.chains.contract.rig import Fake, Payment, Rig
from tests.peers.json_rpc_node import Raw
from tests.peers.lying_rpc import DOWN, HTML
from tests.peers.solana.chain import BUYER, DECIMALS, NAMESAKE, SOL, TAXED, USDT, Solana, holding
from tests.peers.solana.forwarder import forwarded
from tests.peers.solana.lying import LyingSolana

FAILURES: Mapping[str, Raw] = {"silent": DOWN, "429": Raw(status=429), "garbage": HTML}
HOT_SOL = 1_000 * SOL
# Of a compute unit, in millionths of a lamport.
ABSURD_PRICE = 10**15
FROZEN = {"InstructionError": [4, {"Custom": 17}]}
# A payment refers to an earlier block, so that it can be included again after a reorg.
EARLIER = 16
THIEF = Buyer("0d" * 32)


class SolanaRig(Rig):
    """Solana, where an invoice is paid in USDT."""

    code = "solana"
    currency = "USDT"
    claim = "window"
    at_once = 8
    lacks: ClassVar = {
        "pay_ripening": "a block pays its maker by no transfer that a deposit could be",
        "stall": "what expires is signed again for more, and nothing is offered more for before",
        "refuse": "a spend has one output",
        "offer": "no node shows what waits here",
        "pretend": "no node shows what waits here",
        "share": "the key of an address signs for its SOL as long as the system program owns it",
    }

    def __init__(self, database: str, stack: ExitStack) -> None:
        super().__init__(database)
        self._stack = stack
        # The scan sees final blocks alone. Those that are taken back all the same are what a reorg is here.
        self.solana = Solana(finality_lag=0)
        self.peers: list[LyingSolana] = []
        self._frozen: set[str] = set()
        self._forgotten: Sequence[Signed] = ()
        self._numbers = count(1)

    def urls(self, providers: int) -> list[str]:
        self.peers = [
            self._stack.enter_context(LyingSolana(self.solana.chain, key=f"provider-{number}"))
            for number in range(providers)
        ]
        return [peer.url for peer in self.peers]

    def mine(self, blocks: int = 1) -> None:
        self.solana.mine(blocks)

    def pay(self, to: str, units: int) -> Payment:
        return self._paid(self.solana.token_calls(to, units))

    def _paid(self, calls: Sequence[Instruction], *, version: int | str = 0, **more: Any) -> Payment:
        """Send what the buyer signs; no two are alike."""
        blocks = self.solana.chain.blocks
        limited = [] if version == 1 else [set_compute_unit_limit(400_000 + next(self._numbers))]
        reference = blocks[max(0, len(blocks) - EARLIER)].hash
        raw = BUYER.sign([*limited, *calls], reference, version=version, **more)
        return Payment(self.solana.send(raw, skipPreflight=True), raw)

    def reorg(self, depth: int, *again: tuple[Payment, int]) -> None:
        texts = [(base64.b64encode(payment.again).decode(), offset) for payment, offset in again]
        self.solana.chain.reorg(depth, texts)

    def tip(self) -> int:
        return self.solana.chain.head.slot

    def pass_chain_time(self, seconds: int) -> None:
        self.solana.chain.advance(seconds)

    def enrich(self) -> None:
        self.solana.send(self.solana.transfer(self.hot, HOT_SOL))
        self.pay(self.hot, 1_000 * self.price)

    def gather(self) -> None:
        self.keep_and_follow()

    def leave_hole(self) -> None:
        self.solana.chain.skip(1)

    def outlive(self) -> None:
        self.forget_waiting()
        self.mine(LIFE_BLOCKS)

    def outlast(self) -> None:
        # Blocks are dated by whole seconds. The scan counts from the first head that it reaches after a stop.
        self.pass_time(traits_of(self.network).window_s + 1)
        self.advance()
        self.mine(LIFE_BLOCKS + 1)
        self.advance()

    def units_at(self, address: str) -> int:
        return self.solana.token_balance(address)

    def recipient(self) -> str:
        return new_address()

    def include(self, raw: bytes) -> None:
        self.forget_waiting()
        self.solana.send(raw, skipPreflight=True)
        self.mine()

    def forget_waiting(self) -> None:
        self._forgotten = self.solana.chain.forget_waiting()

    def usurp(self, thief: str, units: int) -> bool:
        hot, mint = Pubkey.from_string(self.hot), Pubkey.from_string(USDT)
        self.solana.give_tokens(thief, 0)
        places = associated(hot, mint), associated(Pubkey.from_string(thief), mint)
        self._send_as_hot([move_tokens(places[0], mint, places[1], hot, units=units, decimals=DECIMALS)])
        # It takes nothing that what waits would need.
        return False

    def _send_as_hot(self, calls: Sequence[Instruction]) -> None:
        message = compiled(Pubkey.from_string(self.hot), calls, Hash.from_string(self.solana.chain.head.hash))
        signature = self._sign(to_bytes_versioned(message))
        self.solana.send(bytes(VersionedTransaction.populate(message, [signature])))
        self.mine()

    def _sign(self, message: bytes) -> Signature:
        keys, wallet = held_keys.keys().deriver(self.network).keyring(), KeyRef(address=self.hot, ordinal=None)
        return Signature(keys.sign(wallet, message))

    def steal_in_company(self, units: int) -> None:
        """Let a thief with the hot wallet's key take some of its tokens, and pay with more of his own."""
        solana, hot, mint, thief = self.solana, Pubkey.from_string(self.hot), Pubkey.from_string(USDT), THIEF.key
        solana.give(THIEF.address, SOL)
        solana.give_tokens(THIEF.address, 10 * units)
        other = Pubkey.from_string(new_address())
        solana.give_tokens(str(other), 0)
        calls = [
            move_tokens(associated(owner, mint), mint, associated(other, mint), owner, units=moved, decimals=DECIMALS)
            for owner, moved in ((thief, 10 * units), (hot, units))
        ]
        message = compiled(thief, calls, Hash.from_string(solana.chain.head.hash))
        raw = to_bytes_versioned(message)
        signatures = [THIEF.keypair.sign_message(raw), self._sign(raw)]
        solana.send(bytes(VersionedTransaction.populate(message, signatures)))
        self.mine()

    def move_namesake(self) -> None:
        """Let a thief with the hot wallet's key send a token that we do not know."""
        hot, mint, thief = Pubkey.from_string(self.hot), Pubkey.from_string(NAMESAKE), new_address()
        self.solana.give_tokens(self.hot, 2, mint=NAMESAKE)
        self.solana.give_tokens(thief, 0, mint=NAMESAKE)
        places = associated(hot, mint), associated(Pubkey.from_string(thief), mint)
        self._send_as_hot([move_tokens(places[0], mint, places[1], hot, units=1, decimals=DECIMALS)])

    def invent_theft(self, number: int) -> None:
        """Let a provider show, in a block that all have, a transfer from the hot wallet that was never signed."""
        slot, hot = self.solana.mine(), Pubkey.from_string(self.hot)
        calls = [transfer(TransferParams(from_pubkey=hot, to_pubkey=Pubkey.new_unique(), lamports=5 * SOL))]
        message = compiled(hot, calls, Hash.from_string(self.solana.chain.head.hash))
        raw = bytes(VersionedTransaction.populate(message, [Signature(b"\1" * 64)]))
        self.peers[number].invent(slot, self._never_sent(raw))

    def ascribe_to_us(self, number: int) -> None:
        """Let a provider name the hot wallet as the signer of a stranger's transaction."""
        self.solana.send(self.solana.transfer(new_address(), SOL))

        def ascribe(one: dict[str, Any]) -> None:
            if isinstance(one["transaction"], dict):
                one["transaction"]["accountKeys"][0]["pubkey"] = self.hot

        self.peers[number].change_transactions(ascribe)
        self.mine()

    def demand(self, *, is_absurd: bool) -> None:
        self.solana.act("price", floor=ABSURD_PRICE if is_absurd else 0)
        # Nodes name the prices of that many blocks.
        self.mine(LIFE_BLOCKS)
        self.catch_up()

    def say_dead(self, number: int) -> None:
        self.peers[number].lies |= {
            "getBlockHeight": lambda truth, _params: truth + 10 * LIFE_BLOCKS,
            "isBlockhashValid": lambda truth, _params: truth | {"value": False},
        }

    def write_off(self, units: int) -> None:
        self.book_loss(units)

    def freeze(self, address: str) -> None:
        self.solana.give_tokens(address, 0)
        self.solana.act("freeze", address=holding(address))
        self._frozen.add(address)
        # A node refuses what would fail; those that took it before still include it.
        for signed in self._forgotten:
            self.solana.chain.broadcast(signed)
        self._forgotten = []
        self.mine()

    def melt(self, *, is_paused: bool = False) -> None:
        """Free the frozen. Its owner cannot pause this token, but leave our account frozen."""
        for address in self._frozen if not is_paused else ():
            self.solana.act("freeze", address=holding(address), is_frozen=False)
        self.mine()

    def refuse_transfers(self, number: int) -> None:
        def refused(truth: Any, _params: object) -> object:
            return truth | {"value": truth["value"] | {"err": FROZEN}}

        self.peers[number].lies["simulateTransaction"] = refused

    def lose_answers(self) -> None:
        for peer in self.peers:
            peer.lies["sendTransaction"] = lambda _truth, _params: DOWN

    def fakes(self) -> Mapping[str, Fake]:
        solana, price = self.solana, self.price
        mint, other = Pubkey.from_string(USDT), new_address()
        solana.give(THIEF.address, SOL)

        def calls(to: str, units: int = price, mint: str = USDT) -> list[Instruction]:
            return solana.token_calls(to, units, mint=mint)

        def through(to: str) -> None:
            make, move = calls(to, 7)
            self._paid([make, forwarded(move)])

        def undone(to: str) -> None:
            make, move = calls(to)
            self._paid([make, move, forwarded(BUYER.coin(other, SOL), fails=True)])

        def by_a_table(to: str) -> None:
            table = solana.table(to, holding(to), other)
            self._paid(calls(to, 5), tables=[table])

        def elsewhere(to: str) -> None:
            """Pay an account of theirs that is not the associated one."""
            place = new_address()
            data = base64.b64encode(holding_bytes(mint, Pubkey.from_string(to), 0)).decode()
            solana.act("account", address=place, lamports=2_039_280, owner=str(TOKEN), data=data)
            source = associated(BUYER.key, mint)
            self._paid(
                [move_tokens(source, mint, Pubkey.from_string(place), BUYER.key, units=price, decimals=DECIMALS)]
            )

        def given_away(to: str) -> None:
            """Make them the owner of an account that has tokens already."""
            solana.give_tokens(THIEF.address, price)
            place = Pubkey.from_string(holding(THIEF.address))
            solana.send(solana.signed([give_away(place, Pubkey.from_string(to), THIEF.key)], buyer=THIEF))

        def gone(to: str) -> None:
            self.pay(to, price)
            self.mine()
            self.poll(2)
            self.reorg(1)

        return {
            "failed in the end": Fake(undone),
            "nothing at all": Fake(lambda to: self.pay(to, 0)),
            "a namesake": Fake(lambda to: self._paid(calls(to, mint=NAMESAKE))),
            "of another program, less a fee": Fake(lambda to: self._paid(calls(to, mint=TAXED))),
            "another coin": Fake(lambda to: self._paid([BUYER.coin(to, SOL)])),
            "another account of theirs": Fake(elsewhere),
            "an account that changes its owner": Fake(given_away),
            "gone again": Fake(gone),
            "through a program": Fake(through, units=7),
            "by a lookup table": Fake(by_a_table, units=5),
            "two in one transaction": Fake(lambda to: self._paid([*calls(to, 3), *calls(to, 3)]), units=6),
            "theirs and another's": Fake(lambda to: self._paid([*calls(other, price), *calls(to, 4)]), units=4),
            "of version 1": Fake(lambda to: self._paid(calls(to, 9), version=1), units=9),
        }

    def lies(self) -> Mapping[str, Callable[[int, str], object]]:
        def fail(name: str) -> Callable[[int, str], object]:
            return lambda number, _to: setattr(self.peers[number], "failure", FAILURES[name])

        def cut(truth: Any, _params: object) -> object:
            return truth | {"transactions": []} if "transactions" in truth else truth

        return {name: fail(name) for name in FAILURES} | {
            "hidden": lambda number, to: self.peers[number].hide(to),
            "cut": lambda number, _to: self.peers[number].lies.update(getBlock=cut),
            "invented": self._invent,
            "altered": lambda number, _to: self.peers[number].alter_amounts(2),
            "stuck": lambda number, _to: self.peers[number].lag(1),
            "wrong chain": lambda number, _to: self.peers[number].lies.update(getGenesisHash="1" * 32),
        }

    def _invent(self, number: int, to: str) -> None:
        slot = self.solana.mine()
        self.peers[number].invent(slot, self._never_sent(self.solana.token(to, self.price)))

    def _never_sent(self, raw: bytes) -> Included:
        """Return the effect that a transaction would have."""
        signed = read_transaction(raw)
        outcome, _ = self.solana.chain.engine.simulate(signed, checks_signatures=False)
        return Included(signed=signed, outcome=outcome)

    def be_honest(self) -> None:
        for peer in self.peers:
            peer.be_honest()
