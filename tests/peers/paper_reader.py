"""A chain on paper, as chains.family.Reader sees one whose heights have holes. A test makes its blocks and lies."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from chains.base import (
    CHARGE,
    SKIPPED,
    Agreement,
    Block,
    BlockScan,
    Ours,
    ProviderError,
    Recorded,
    Skipped,
    Transfer,
)
from chains.spending import Departure


@dataclass
class PaperReader:
    """One network, seen through a node that may lag behind it. Heights without a block are skipped ones.

    tip: the first block is the one above it.
    """

    began: datetime
    tip: int = 0
    # By height.
    scans: dict[int, BlockScan] = field(default_factory=dict)
    # Heights that this node does not know yet.
    lag: int = 0
    branch: int = 0
    providers: int = 1
    answering: int = 1
    # The providers' answer about a block that was replaced.
    agree: Agreement = Agreement(same=0, other=1)  # noqa: RUF009
    # Whom they were asked about.
    asked_about: list[tuple[int, str]] = field(default_factory=list)
    final: int | None = None
    # The number of the first block, where blocks are numbered.
    first_count: int | None = None
    # Heights that scan() leaves out though they have a block.
    left_out: Collection[int] = ()
    is_silent: bool = False
    # The departures that are shown without a row.
    departures: dict[str, Departure] = field(default_factory=dict)
    # Transactions that one provider alone shows.
    invented: Collection[str] = ()
    # The providers' answer about each transaction in a block.
    included: Agreement = Agreement(same=0, other=1)  # noqa: RUF009
    # The heights whose headers were asked for.
    asked: list[int] = field(default_factory=list)

    # For tests ----------------------------------------------------------------------------------------------

    def mine(self, *transfers: Transfer, count: int = 1, **answer: Any) -> None:
        """Make blocks; the first of them has the transfers."""
        for number in range(count):
            before = max(self.scans, default=self.tip)
            self.tip += 1
            block = Block(
                height=self.tip, hash=f"0x{self.branch}-{self.tip}", parent_height=before,
                parent_hash=self.scans[before].block.hash if before in self.scans else "0x",
                time=self.began + timedelta(seconds=self.tip),
                count=None if self.first_count is None else self.first_count + len(self.scans),
            )  # fmt: skip
            self.scans[self.tip] = BlockScan(block=block, transfers=transfers, **answer) if number == 0 else BlockScan(
                block=block, transfers=()
            )  # fmt: skip

    def skip(self, count: int = 1) -> None:
        """Leave heights without a block."""
        self.tip += count

    def reorg(self, fork: int) -> None:
        """Drop all blocks above a height; the next blocks are another branch."""
        self.scans = {height: scan for height, scan in self.scans.items() if height <= fork}
        self.tip, self.branch = fork, self.branch + 1

    # For the gateway ----------------------------------------------------------------------------------------

    def head(self) -> int:
        if self.is_silent:
            raise ProviderError("nobody answers")
        return self.tip - self.lag

    def budget(self, **_limits: object) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def final_height(self) -> int | None:
        return self.final

    def departure(self, txid: str, block: Block, *, sender: str = "") -> Departure | None:
        del sender  # One key signs it.
        if self.departures.get(txid) is None:
            raise ProviderError(f"nobody shows {txid} in block {block.height}")
        return self.departures[txid]

    def agreement(self, height: int, block_hash: str) -> Agreement:
        self.asked_about.append((height, block_hash))
        return self.agree

    def inclusions(self, _block: Block, txids: Collection[str]) -> dict[str, Agreement]:
        return dict.fromkeys(txids, self.included)

    def second_opinion(self, recorded: Recorded) -> Agreement:
        scan = self.scans.get(recorded.height)
        there = scan if scan and scan.block.hash == recorded.block_hash else None
        shown = there.transfers if there else ()
        charged = {(each.txid, each.address, each.units) for each in there.charges} if there else set()
        is_charge = recorded.ordinal == CHARGE
        has_it = (is_charge and (recorded.txid, recorded.recipient, recorded.units) in charged) or any(
            (each.txid, each.ordinal, each.currency, each.units, each.recipient)
            == (recorded.txid, recorded.ordinal, recorded.currency, recorded.units, recorded.recipient)
            for each in shown
        )
        same = 0 if not has_it else 1 if recorded.txid in self.invented else self.providers
        return Agreement(same=same, other=self.providers - same)

    def block(self, height: int) -> Block | Skipped | None:
        self.asked.append(height)
        if height > self.head():
            return None
        return self.scans[height].block if height in self.scans else SKIPPED

    def scan(self, after: int, _head: int, ours: Ours, *, whole: bool = False, upon: str = "") -> tuple[BlockScan, ...]:
        del whole, upon
        above = [at for at in self.scans if after < at <= self.head() and at not in self.left_out]
        return (self._of(min(above), ours),) if above else ()

    def reread(self, height: int, ours: Ours, *, but_by: str = "") -> BlockScan | Skipped | None:
        del but_by
        if height > self.head():
            return None
        return self._of(height, ours) if height in self.scans else SKIPPED

    def _of(self, height: int, ours: Ours) -> BlockScan:
        scan = self.scans[height]
        addresses = ours.addresses([transfer.recipient for transfer in scan.transfers])
        transfers = tuple(each for each in scan.transfers if each.recipient in addresses)
        made = {(each.txid, int(each.ordinal)) for each in transfers if scan.spent}
        known = made | set(ours.coins([(coin.txid, coin.vout) for coin in scan.spent]))
        spent = tuple(coin for coin in scan.spent if (coin.txid, coin.vout) in known)
        return replace(scan, transfers=transfers, spent=spent)
