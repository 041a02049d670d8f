"""Answers the calls of gateways, wallets and tests, by a table of methods. Used by server, which holds the lock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

from chains.base import ProviderError
from chains.bitcoin.scripts import script_of
from chains.bitcoin.transactions import Tx, read_hex
from devstack.bitcoin.facade import shown
from devstack.bitcoin.facade.blocks import read_block
from devstack.bitcoin.facade.faults import (
    ALREADY_IN_CHAIN,
    MISSING_INPUTS,
    NO_METHOD,
    NOT_FOUND,
    OUT_OF_RANGE,
    TYPE_ERROR,
    UNREADABLE,
    RefusedError,
)
from devstack.bitcoin.facade.pool import CHAIN, RELAY_RATE, check_cap
from devstack.bitcoin.facade.state import State

VERSION: Final = 290_000
BLOCKS_MAX: Final = 1_000
TXID_CHARS: Final = 64
# A higher fee rate is refused as a sender's mistake; in coins for a thousand virtual bytes.
CAP: Final = "0.10"
NOT_WAITING: Final = (
    "No such mempool transaction. Use -txindex or provide a block hash to enable blockchain transaction queries"
)


def answer(state: State, method: str, params: Sequence[Any]) -> object:
    """Return a call's result, or raise RefusedError."""
    call = METHODS.get(method)
    if call is None:
        raise RefusedError(NO_METHOD, "Method not found")
    try:
        return call(state, *params)
    except (TypeError, ValueError, AttributeError) as error:
        raise RefusedError(TYPE_ERROR, f"{method}: {error}") from None


def _block_hash(state: State, height: int) -> str:
    return state.at(height).hash


def _header(state: State, block_hash: str, verbose: bool = True) -> object:  # noqa: FBT001, FBT002  Core's own order
    entry = state.entry(block_hash)
    return shown.header(state.view, entry) if verbose else entry.block.header.raw.hex()


def _block(state: State, block_hash: str, verbosity: int = 1) -> object:
    entry = state.entry(block_hash)
    return shown.block(state.view, entry, int(verbosity)) if int(verbosity) else entry.block.raw.hex()


def _chain_info(state: State) -> object:
    view = state.view
    return {
        "chain": CHAIN, "blocks": view.height, "headers": view.height, "bestblockhash": view.tip.hash,
        "time": view.tip.block.header.time, "mediantime": view.median_time(view.tip), "verificationprogress": 1,
        "initialblockdownload": False, "pruned": False, "warnings": [],
    }  # fmt: skip


def _network_info(_state: State) -> object:
    rate = shown.coins(RELAY_RATE)
    return {
        "version": VERSION, "subversion": "/Sluice:0.1/", "protocolversion": 70016, "localrelay": True,
        "networkactive": True, "connections": 0, "relayfee": rate, "incrementalfee": rate, "warnings": [],
    }  # fmt: skip


def _pool_info(state: State) -> object:
    rate, waiting = shown.coins(RELAY_RATE), state.pool.waiting.values()
    return {
        "loaded": True, "size": len(waiting), "bytes": sum(one.vsize for one in waiting), "maxmempool": 300_000_000,
        "usage": sum(one.vsize for one in waiting), "total_fee": shown.coins(sum(one.fee_units for one in waiting)),
        "mempoolminfee": rate, "minrelaytxfee": rate, "incrementalrelayfee": rate, "unbroadcastcount": 0,
        "fullrbf": True,
    }  # fmt: skip


def _pool(state: State, verbose: bool = False, sequence: bool = False) -> object:  # noqa: FBT001, FBT002  as above
    if sequence:
        return {"txids": list(state.pool.waiting), "mempool_sequence": 1 + len(state.pool.waiting)}
    if not verbose:
        return list(state.pool.waiting)
    return {txid: shown.waiting(state.pool, one) for txid, one in state.pool.waiting.items()}


def _pool_entry(state: State, txid: str) -> object:
    if txid not in state.pool.waiting:
        raise RefusedError(NOT_FOUND, "Transaction not in mempool")
    return shown.waiting(state.pool, state.pool.waiting[txid])


def _spenders(state: State, wanted: Sequence[Mapping[str, Any]]) -> object:
    if not wanted:
        raise RefusedError(OUT_OF_RANGE, "Invalid parameter, outputs are missing")
    spenders: list[dict[str, object]] = []
    for one in wanted:
        coin = _outpoint(one)
        spender = state.pool.spender(coin)
        spenders.append({"txid": coin[0], "vout": coin[1]} | ({} if spender is None else {"spendingtxid": spender}))
    return spenders


def _outpoint(named: Mapping[str, Any]) -> tuple[str, int]:
    txid, vout = str(named.get("txid")), int(named.get("vout", -1))
    if len(txid) != TXID_CHARS:
        raise RefusedError(OUT_OF_RANGE, f"txid must be of length {TXID_CHARS}")
    if vout < 0:
        raise RefusedError(OUT_OF_RANGE, "Invalid parameter, vout cannot be negative")
    return txid, vout


def _transaction(state: State, txid: str, verbosity: int = 0, block_hash: str | None = None) -> object:
    more: dict[str, object] = {}
    if block_hash is None:
        transaction = state.pool.waiting[txid].tx if txid in state.pool.waiting else None
    else:
        entry = state.entry(block_hash)
        transaction = next((tx for tx in entry.block.txs if tx.txid == txid), None)
        header = shown.header(state.view, entry)
        more = {"in_active_chain": state.view.is_on_chain(entry), "blockhash": block_hash, "time": header["time"]}
        more |= {"confirmations": header["confirmations"], "blocktime": header["time"]}
    if transaction is None:
        raise RefusedError(
            NOT_FOUND, NOT_WAITING if block_hash is None else "No such transaction found in the provided block"
        )
    if not int(verbosity):
        return transaction.raw.hex()
    # The fee is shown from verbosity 2 on, as in a block.
    shown_transaction = (
        shown.in_block(entry, transaction, int(verbosity)) if block_hash else shown.transaction(transaction)
    )
    return shown_transaction | more


def _coin(state: State, txid: str, vout: int, include_mempool: bool = True) -> object:  # noqa: FBT001, FBT002  as above
    coin = state.view.coins.get((txid, vout))
    if include_mempool:
        coin = None if state.pool.spender((txid, vout)) else coin or state.pool.coin((txid, vout))
    if coin is None:
        return None
    return {
        "bestblock": state.view.tip.hash, "value": shown.coins(coin.output.units), "coinbase": coin.is_reward,
        "confirmations": 0 if coin.height is None else state.view.height - coin.height + 1,
        "scriptPubKey": shown.script(coin.output.script),
    }  # fmt: skip


def _estimate(_state: State, blocks: int, _mode: str = "") -> object:
    return {"errors": ["Insufficient data or no feerate found"], "blocks": blocks}


def _send(state: State, raw: str, cap: object = CAP, _burn: object = None) -> object:
    tx = _read(raw)
    if tx.txid in state.pool.waiting:
        return tx.txid
    new, replaced = state.pool.judge(tx, now=state.now())
    check_cap(new, _rate(cap))
    state.pool.add(new, replaced)
    return new.txid


def _try(state: State, raws: Sequence[str], cap: object = CAP) -> object:
    return [_tried(state, _read(raw), _rate(cap)) for raw in raws]


def _tried(state: State, tx: Tx, cap_rate: int) -> object:
    verdict: dict[str, object] = {"txid": tx.txid, "wtxid": shown.wtxid(tx)}
    if tx.txid in state.pool.waiting:
        return verdict | {"allowed": False, "reject-reason": "txn-already-in-mempool"}
    try:
        new, _ = state.pool.judge(tx, now=state.now())
    except RefusedError as fault:
        reason = {ALREADY_IN_CHAIN: "txn-already-known"}.get(fault.code, fault.text)
        reason = "missing-inputs" if reason == MISSING_INPUTS else reason
        return verdict | {"allowed": False, "reject-reason": reason.split(",")[0]}
    try:
        check_cap(new, cap_rate)
    except RefusedError:
        return verdict | {"allowed": False, "reject-reason": "max-fee-exceeded"}
    return verdict | {"allowed": True, "vsize": new.vsize, "fees": {"base": shown.coins(new.fee_units)}}


def _generate(state: State, blocks: int, address: str, _tries: int = 0) -> object:
    if not 0 <= blocks <= BLOCKS_MAX:
        raise RefusedError(OUT_OF_RANGE, f"not more than {BLOCKS_MAX} blocks at once")
    script = _script(address)
    return [state.mine(script) for _ in range(blocks)]


def _generate_block(state: State, address: str, txs: Sequence[str]) -> object:
    waiting = state.pool.waiting
    chosen = [waiting[one].tx if one in waiting else _read(one) for one in txs]
    return {"hash": state.mine(_script(address), chosen)}


def _submit(state: State, raw: str) -> None:
    state.submit(read_block(bytes.fromhex(raw)))


def _invalidate(state: State, block_hash: str) -> None:
    state.invalidate(block_hash)


def _reconsider(state: State, block_hash: str) -> None:
    state.reconsider(block_hash)


def _set_time(state: State, seconds: int) -> None:
    if seconds < 0:
        raise RefusedError(OUT_OF_RANGE, "Mocktime must be in the range of 0 and above")
    state.mock_time = seconds


def _scan(state: State, action: str, wanted: Sequence[Any] = ()) -> object:
    if action != "start":
        return None
    scripts = {_described(one if isinstance(one, str) else one["desc"]): one for one in wanted}
    unspents, units = [], 0
    for (txid, vout), coin in state.view.coins.items():
        if coin.output.script in scripts and coin.height is not None:
            units += coin.output.units
            unspents.append(
                {
                    "txid": txid, "vout": vout, "scriptPubKey": coin.output.script.hex(),
                    "amount": shown.coins(coin.output.units), "coinbase": coin.is_reward, "height": coin.height,
                    "blockhash": state.view.chain[coin.height], "confirmations": state.view.height - coin.height + 1,
                }
            )  # fmt: skip
    return {
        "success": True, "txouts": len(state.view.coins), "height": state.view.height,
        "bestblock": state.view.tip.hash, "unspents": unspents, "total_amount": shown.coins(units),
    }  # fmt: skip


def _set_info(state: State, _kind: str = "") -> object:
    return {"height": state.view.height, "bestblock": state.view.tip.hash, "txouts": len(state.view.coins)}


def _described(text: str) -> bytes:
    kind, _, rest = text.partition("(")
    content = rest.partition(")")[0]
    if kind == "addr":
        return _script(content)
    if kind == "raw":
        return bytes.fromhex(content)
    raise RefusedError(NOT_FOUND, f"'{kind}' is not a descriptor that is known here")


def _script(address: str) -> bytes:
    try:
        return script_of(address, CHAIN)
    except ValueError:
        raise RefusedError(NOT_FOUND, "Error: Invalid address") from None


def _read(raw: str) -> Tx:
    try:
        return read_hex(raw)
    except ProviderError:
        raise RefusedError(UNREADABLE, "TX decode failed. Make sure the tx has at least one input.") from None


def _rate(cap: object) -> int:
    return int(Decimal(str(cap)).scaleb(8))


METHODS: Final[Mapping[str, Callable[..., object]]] = MappingProxyType(
    {
        "getblockcount": lambda state: state.view.height,
        "getbestblockhash": lambda state: state.view.tip.hash,
        "getblockhash": _block_hash,
        "getblockheader": _header,
        "getblock": _block,
        "getblockchaininfo": _chain_info,
        "getnetworkinfo": _network_info,
        "getmempoolinfo": _pool_info,
        "getrawmempool": _pool,
        "getmempoolentry": _pool_entry,
        "getrawtransaction": _transaction,
        "gettxspendingprevout": _spenders,
        "gettxout": _coin,
        "gettxoutsetinfo": _set_info,
        "scantxoutset": _scan,
        "estimatesmartfee": _estimate,
        "sendrawtransaction": _send,
        "testmempoolaccept": _try,
        "generatetoaddress": _generate,
        "generateblock": _generate_block,
        "submitblock": _submit,
        "invalidateblock": _invalidate,
        "reconsiderblock": _reconsider,
        "setmocktime": _set_time,
    }
)
