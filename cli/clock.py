"""`sluice clock advance`: moves every process of a development gateway, and its chains, into the future at once."""

from typing import Annotated

import typer

from chains.base import ProviderError
from chains.net.json_rpc import JsonRpc, RpcError
from cli.output import CommandError, JsonFlag, show
from cli.session import database
from core.catalogue.catalogue import load_catalogue
from core.settings.settings import Settings
from models.db.base import app_now, execute, transaction
from models.rates import rates

# A clock that has come further than this is a typing error.
ADVANCE_S_MAX = 10 * 366 * 86_400

clock_app = typer.Typer(no_args_is_help=True, help="The gateway's clock (development only).")


@clock_app.callback()
def _group() -> None:
    # With a callback typer keeps the single command below a group of its own.
    pass


@clock_app.command("advance")
def advance(seconds: Annotated[int, typer.Argument(min=1, max=ADVANCE_S_MAX)], *, as_json: JsonFlag = False) -> None:
    """Move the clock forward; rates keep their age, signing windows and webhook timestamps the real clock."""
    with database() as settings:
        if settings.environment == "production":
            raise CommandError("a production gateway's clock is the real one")
        nodes = _evm_nodes(settings)
        # First see that all are there: a chain left behind would keep its invoices from ever expiring.
        for network, node in nodes.items():
            _ask(network, node, "eth_chainId")
        target_s = int(app_now().timestamp()) + seconds
        moved = {network: _advance_chain(network, node, target_s) for network, node in nodes.items()}
        with transaction():
            rates.carry_over(seconds)
            execute("UPDATE app_clock SET ahead = ahead + make_interval(secs => %s)", (seconds,))
        now = app_now().isoformat()
    chains = [
        f"{network} {'moved along' if is_moved else 'keeps a clock of its own'}" for network, is_moved in moved.items()
    ]
    show({"now": now, "advanced_s": seconds, "chains": moved}, [f"it is now {now}", *chains], as_json=as_json)


def _evm_nodes(settings: Settings) -> dict[str, JsonRpc]:
    networks = load_catalogue(settings.environment).networks
    urls = {code: urls[0] for code, urls in settings.rpc_urls.items() if networks[code].family == "evm"}
    return {code: JsonRpc(url, timeout_s=settings.rpc_timeout_s) for code, url in urls.items()}


def _advance_chain(network: str, node: JsonRpc, target_s: int) -> bool:
    """Bring a development chain to a moment and mine a block there; False for a node that is none.

    By its newest block and not by a fixed step: a reorg may have taken the blocks that an earlier step had moved it by.
    """
    try:
        newest = _ask(network, node, "eth_getBlockByNumber", "latest", False)
        behind_s = target_s - int(_field(network, newest, "timestamp"), 16)
        _ask(network, node, "evm_increaseTime", max(0, behind_s))
        _ask(network, node, "evm_mine")
    except RpcError:
        return False
    return True


def _field(network: str, block: object, name: str) -> str:
    if not isinstance(block, dict) or not isinstance(block.get(name), str):
        raise CommandError(f"{network}: a block without {name}")
    return str(block[name])


def _ask(network: str, node: JsonRpc, method: str, *params: object) -> object:
    try:
        return node.call_or_none(method, params, object)
    except RpcError:
        raise
    except ProviderError as error:
        raise CommandError(f"{network}: {error}") from error
