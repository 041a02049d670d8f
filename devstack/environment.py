"""Makes the environment variables of a development stack's processes. Called by devstack.stack."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from core.settings.networks import RPC_SUFFIX
from devstack.story.identity import Identity
from devstack.supervise.leash import Leash

SIGNER: Final = "signer"
WALLET_PREFIX: Final = "WALLET_"


def settings_environment(
    *,
    base_url: str,
    port: int,
    database_url: str,
    redis_url: str,
    rpc_urls: Mapping[str, str],
    identity: Identity,
    desk_url: str,
) -> dict[str, str]:
    """Return the gateway's settings, without the wallet."""
    return {
        "ENVIRONMENT": "development",
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "PORT": str(port),
        "BASE_URL": base_url,
        "PAY_URL": base_url,
        "SECRET_KEYS": identity.secret_keys,
        "ADDRESS_PUBLIC_KEY": identity.address_public_key,
        "RATES_SOURCE": "static",
        "WEBHOOK_ALLOW_PRIVATE": "1",
        "DEVELOPMENT_DESK_URL": desk_url,
        **{f"{network.upper()}{RPC_SUFFIX}": url for network, url in rpc_urls.items()},
    }


def app_environment(
    name: str, *, inherited: Mapping[str, str], settings: Mapping[str, str], leash: Leash, mnemonic: str
) -> dict[str, str]:
    """Return the whole environment of one process: our variables override those that we were started with."""
    own = {
        key: value
        for key, value in inherited.items()
        if not key.startswith(WALLET_PREFIX) and not key.endswith(RPC_SUFFIX)
    }
    # The commands of the Procfile come from this Python environment, activated or not.
    programs = str(Path(sys.executable).parent)
    return {
        **own,
        **settings,
        **leash.env,
        "PATH": f"{programs}:{inherited.get('PATH', '/usr/bin:/bin')}",
        "PYTHONUNBUFFERED": "1",
        # Only one process's environment has the root secret.
        **({"WALLET_MNEMONIC": mnemonic} if name == SIGNER else {}),
    }
