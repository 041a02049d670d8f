"""Finds names in the environment that resemble a variable's."""

from __future__ import annotations

import pytest

from core.catalogue.catalogue import load_catalogue
from core.settings.names import known, lookalikes


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("ETHEREUM_RPC_URL", "ETHEREUM_RPC_URLS"),
        ("RPC_URLS_ETHEREUM", "ETHEREUM_RPC_URLS"),
        ("ETHEREUM_RPC_URLSS", "ETHEREUM_RPC_URLS"),
        ("TRUSTED_PROXY", "TRUSTED_PROXIES"),
        ("database_url", "DATABASE_URL"),
        ("DATABASE-URL", "DATABASE_URL"),
        ("SLUICE_PAY_URL", "PAY_URL"),
        ("SLUICE_SIGNER_RATE", "SIGNER_RATES"),
        ("FEES_PERCENT", "FEE_PERCENT"),
        ("RATES_COINBASE_URLS", "RATES_COINBASE_URL"),
        ("PORTS", "PORT"),
    ],
)
def test_a_slip_is_named_with_the_variable_that_is_meant(name: str, meant: str) -> None:
    assert list(lookalikes([name, "PATH"])) == [(name, meant)]


@pytest.mark.parametrize(
    "name",
    [
        "PATH", "HOME", "USER", "LANG", "LC_ALL", "PWD", "SHELL", "TERM", "DYNO", "PGHOST", "PGPASSWORD", "HOSTNAME",
        "WEB_CONCURRENCY", "GUNICORN_CMD_ARGS", "PYTHONPATH", "LISTEN_FDS", "CREDENTIALS_DIRECTORY", "HTTP_PROXY",
        "HTTPS_PROXY", "NO_PROXY", "HEROKU_POSTGRESQL_BLUE_URL", "REDIS_TLS_URL", "INVOCATION_ID", "JOURNAL_STREAM",
    ],
)  # fmt: skip
def test_other_programs_variables_are_left_alone(name: str) -> None:
    assert list(lookalikes([name])) == []


def test_every_name_of_ours_is_known() -> None:
    codes = {code.upper() for code in load_catalogue("production").networks}

    assert {f"{code}_RPC_URLS" for code in codes} < known()
    assert {"BITCOIN_JOIN_SAT_VB", "BSC_GAS_CAP_GWEI", "TON_FEE_CAP", "RATES_KRAKEN_URL", "PORT"} < known()
    assert not {"TRON_GAS_CAP_GWEI", "TON_JOIN_SAT_VB", "BITCOIN_SANCTIONS_ORACLE"} & known()
    assert list(lookalikes(known())) == []
