"""Keeps deposit addresses made in advance: written in signed chunks by the signer, verified before one is shown.

Called by actors.addresses.fill (fill) and by the processes that give an invoice its address (AddressStash). An attacker
who reaches the database could write an address of his own into the table, so none leaves the stash without the signer's
signature.
"""

import base64
import threading
import time
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Sequence
from time import monotonic
from typing import Final

import structlog
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from core.addresses.addresses import display
from core.catalogue.catalogue import Network, load_catalogue
from core.catalogue.fields import Environment
from core.errors import InvoiceAddressFailed
from core.texts.qr import qr_data_uri
from models.addresses import reservations
from models.addresses.reservations import CHUNK
from models.addresses.rows import AddressChunk
from models.db import locks
from models.db.base import StoreUnavailableError, execute, release, rows, transaction
from models.db.locks import LockSeed

log = structlog.get_logger()

STASH: Final = 64
"""Addresses that a process has in hand at most; one that fills ahead reserves more once half are left."""
# Well before reclaim_addresses could give them to another process.
STASH_S: Final = reservations.RECLAIM_AFTER_S / 2
VERIFIED_CHUNKS_MAX: Final = 64
# The signer checks the pool every second. A caller that waits for longer is refused for lack of an address.
WAIT_S: Final = 1.5
POLL_S: Final = 0.05
HOPELESS_S: Final = 30.0


def chunk_message(family: str, chunk: int, addresses: Sequence[str]) -> bytes:
    """Return the bytes that the signer signs: an address counts only at its own place."""
    return "\n".join(("sluice address chunk", family, str(chunk), *addresses)).encode("ascii", "backslashreplace")


def fill(family: str, chunk: int, addresses: Sequence[str], signature: bytes) -> bool:
    """Add a chunk. False if another signer was first or is at it; nothing was written then."""
    if len(addresses) != CHUNK:
        raise ValueError(f"a chunk has {CHUNK} addresses")
    with transaction():
        made = AddressChunk(family=family, chunk=chunk, signature=signature)
        if not locks.try_turn(f"address_pool:{family}", seed=LockSeed.ADDRESSES) or not made.write(
            "ON CONFLICT DO NOTHING"
        ):
            return False
        execute(
            "INSERT INTO pool_addresses (family, ordinal, address)"
            " SELECT %s, %s + place - 1, address FROM unnest(%s::text[]) WITH ORDINALITY AS made (address, place)",
            (family, chunk * CHUNK, list(addresses)),
        )
    return True


class AddressStash:
    """Keeps a process's few reserved addresses, so that no invoice waits for one. Safe to share between threads."""

    def __init__(
        self,
        public_key: str,
        *,
        environment: Environment = "production",
        is_current: Callable[[], bool] = lambda: True,
    ) -> None:
        """Take the signer's public key in base64; empty in a process that gives out no address.

        environment: whose networks show the addresses. is_current: whether the database is known to have lost nothing;
        asked before anything is reserved.
        """
        # A family's addresses are shown alike on all of an environment's networks.
        self._network_of: dict[str, Network] = {
            network.family: network for network in load_catalogue(environment).networks.values()
        }
        self._is_current = is_current
        self._key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key)) if public_key else None
        self._lock = threading.Lock()
        # By family: held by who reserves, so that those who find the stash empty meanwhile wait for one and the same.
        # A family whose pool is empty keeps no caller of another waiting.
        self._reserving = {family: threading.Lock() for family in self._network_of}
        # Until when each may be given out, and what it is; the oldest first.
        self._ready: defaultdict[str, deque[tuple[float, tuple[int, str]]]] = defaultdict(deque)
        self._undrawn: deque[tuple[str, str]] = deque(maxlen=STASH)
        self._wanted = threading.Event()
        # By family: its pool was empty for WAIT_S, and no caller waits for it until then.
        self._hopeless_until = dict.fromkeys(self._network_of, 0.0)
        # Each family's chunks are read and dropped by who reserves of it.
        self._verified: dict[str, OrderedDict[int, tuple[str, ...]]] = {
            family: OrderedDict() for family in self._network_of
        }

    def fill_ahead(self) -> None:
        """Start a thread that reserves more once half are left, and draws the QR codes that will be asked for.

        It ends with the process. Call it once, and after the process's last fork.
        """
        threading.Thread(target=self._fill_ahead, name="addresses", daemon=True).start()

    def take(self, family: str) -> tuple[int, str]:
        """Return an ordinal, reserved for the caller alone, and its address in the stored form.

        Call it outside a transaction. Raises InvoiceAddressFailed where the pool is empty or not to be trusted.
        """
        address = self._next(family)
        if address is None:
            with self._reserving[family]:
                address = self._next(family) or self._refill_soon(family)
        if address is None:
            log.error("address_pool.empty", family=family)
            raise InvoiceAddressFailed
        if self._is_low(family) or self._undrawn:
            self._wanted.set()
        return address

    def _next(self, family: str) -> tuple[int, str] | None:
        """Return the oldest that may still be given out."""
        with self._lock:
            ready = self._ready[family]
            while ready:
                stale_at, address = ready.popleft()
                if monotonic() < stale_at:
                    return address
        return None

    def _is_low(self, family: str) -> bool:
        return len(self._ready[family]) <= STASH // 2

    def _refill(self, family: str, *, takes: bool = True) -> tuple[int, str] | None:
        """Reserve what is missing and return the first of it, if it is wanted and there is one."""
        stale_at = monotonic() + STASH_S
        fresh = self._reserve(family, STASH - len(self._ready[family]))
        taken = fresh.pop(0) if takes and fresh else None
        with self._lock:
            self._ready[family].extend((stale_at, each) for each in fresh)
        self._undrawn.extend((family, address) for _, address in fresh)
        return taken

    def _refill_soon(self, family: str) -> tuple[int, str] | None:
        """Return the first reserved address; wait a moment for the signer if it has made none yet.

        Only one caller waits, so that a pool that is not filled delays no other.
        """
        address = self._refill(family)
        if address is not None or monotonic() < self._hopeless_until[family]:
            return address
        until = monotonic() + WAIT_S
        while address is None and monotonic() < until:
            time.sleep(POLL_S)
            address = self._refill(family)
        if address is None:
            self._hopeless_until[family] = monotonic() + HOPELESS_S
        return address

    def _fill_ahead(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            try:
                self._fill_and_draw()
            except Exception:
                # The next caller that needs an address reserves it itself, and gets the error if it cannot.
                log.warning("address_pool.not_filled_ahead", exc_info=True)
            release()

    def _fill_and_draw(self) -> None:
        for family in tuple(self._ready):
            with self._reserving[family]:
                if self._is_low(family):
                    self._refill(family, takes=False)
        while self._undrawn:
            family, address = self._undrawn.popleft()
            qr_data_uri(display(self._network_of[family], address))
            # Threads that answer calls go first.
            time.sleep(0)

    def give_back(self, family: str, ordinal: int) -> None:
        """Return an address that was not needed. If that fails, reclaim_addresses finds it later."""
        try:
            reservations.give_back(family, ordinal)
        except StoreUnavailableError:
            log.warning("address_pool.return_failed", family=family, ordinal=ordinal)

    def _reserve(self, family: str, limit: int) -> list[tuple[int, str]]:
        if not self._is_current():
            return []
        places = [divmod(ordinal, CHUNK) for ordinal in reservations.reserve(family, limit)]
        chunks = self._chunks(family, {chunk for chunk, _ in places})
        return [(chunk * CHUNK + place, chunks[chunk][place]) for chunk, place in places if chunk in chunks]

    def _chunks(self, family: str, wanted: Collection[int]) -> dict[int, tuple[str, ...]]:
        """Return those of the chunks whose signature holds."""
        verified = self._verified[family]
        for chunk, signature, addresses in _read_chunks(family, [chunk for chunk in wanted if chunk not in verified]):
            if self._is_signed(chunk_message(family, chunk, addresses), signature):
                verified[chunk] = tuple(addresses)
            else:
                log.critical("address_pool.chunk_unsigned", family=family, chunk=chunk)
        known = {chunk: verified[chunk] for chunk in wanted if chunk in verified}
        while len(verified) > VERIFIED_CHUNKS_MAX:
            verified.popitem(last=False)
        return known

    def _is_signed(self, message: bytes, signature: bytes) -> bool:
        if self._key is None:
            return False
        try:
            self._key.verify(signature, message)
        except InvalidSignature:
            return False
        return True


def _read_chunks(family: str, chunks: Sequence[int]) -> list[tuple[int, bytes, list[str]]]:
    if not chunks:
        return []
    return rows(
        "SELECT c.chunk, c.signature, array_agg(p.address ORDER BY p.ordinal) FROM address_chunks c"
        f" JOIN pool_addresses p ON p.family = c.family AND p.ordinal >= c.chunk * {CHUNK}"
        f" AND p.ordinal < (c.chunk + 1) * {CHUNK}"
        " WHERE c.family = %s AND c.chunk = ANY(%s::bigint[]) GROUP BY c.chunk, c.signature",
        (family, list(chunks)),
    )
