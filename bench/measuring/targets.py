"""Sets up the targets: the product by its Procfile, and the frozen baselines. Called by bench.api."""

from __future__ import annotations

import base64
import contextlib
import secrets
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import psycopg2
import psycopg2.extras
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bench.measuring.harness import ROOT, Site, Target
from core.secrets.secretbox import SecretBox
from core.settings.rules import DEVELOPMENT_SECRET_KEYS
from devstack.supervise.ports import free_port
from devstack.supervise.process import Child
from devstack.supervise.procfile import read_procfile
from models.addresses import pool as address_pool
from models.addresses.reservations import CHUNK
from models.db import base, migrate
from models.merchants import rows as merchants
from models.merchants.rows import IssuedKey

FAMILY: Final = "evm"
ADDRESS_BYTES: Final = 20
# Rates of coins in dollars.
RATES: Final = (("USD", "1"), ("USDT", "0.9995"), ("ETH", "3100"))
# The product accepts no rate of the future, so its rates are refreshed. The frozen baselines accept one.
FRESH: Final = timedelta(hours=1)
REFRESH_S: Final = 60.0
BASELINE_KEY: Final = ("pk_baseline", "sk_baseline")


class Product:
    """The product: its database, its settings, and the two processes that answer POST /v1/payment."""

    def __init__(self, site: Site, *, addresses: int) -> None:
        self._site = site
        self._signer = Ed25519PrivateKey.generate()
        self.port = free_port()
        self.database_url = site.create_database("product")
        migrate.migrate(self.database_url)
        base.connect(self.database_url)
        fill_pool(self._signer, addresses)
        store_rates(self.database_url)
        site.repeat(REFRESH_S, refresh_rates, self.database_url)
        begin_scan(self.database_url)
        tidy(self.database_url, "pool_addresses")
        self.key = create_merchant("Benchmark")

    @property
    def public_key(self) -> str:
        """Return the key that the pool is signed with, in base64."""
        return base64.b64encode(self._signer.public_key().public_bytes_raw()).decode()

    def environment(self) -> dict[str, str]:
        """Return the settings of its processes."""
        return {
            "ENVIRONMENT": "development",
            "LOG_FORMAT": "json",
            "DATABASE_URL": self.database_url,
            "REDIS_URL": self._site.valkey.url,
            "PORT": str(self.port),
            "SECRET_KEYS": DEVELOPMENT_SECRET_KEYS,
            "ADDRESS_PUBLIC_KEY": self.public_key,
            # Creating an invoice queries no node.
            "ETHEREUM_RPC_URLS": "http://127.0.0.1:1",
        }

    def start(self) -> Target:
        """Start the web process and the one that creates invoices, as the Procfile does."""
        commands = read_procfile(ROOT / "Procfile")
        started = {name: self._site.start(name, commands[name], self.environment()) for name in ("web", "invoices")}
        await_http(started["web"], self.port)
        return Target(
            name="product",
            port=self.port,
            public_id=self.key.public_id,
            secret=self.key.secret,
            programs={
                "gunicorn": started["web"].pid,
                "dramatiq": started["invoices"].pid,
                **server_programs(self._site),
            },
        )


class Baselines:
    """The frozen baselines, each with a database of its own."""

    def __init__(self, site: Site, *, addresses: int) -> None:
        self._site = site
        schema = (ROOT / "bench" / "baselines" / "schema.sql").read_text(encoding="utf-8")
        self.urls = {}
        for name in ("direct", "raw", "stock"):
            self.urls[name] = site.create_database(name)
            with _session(self.urls[name]) as cursor:
                cursor.execute(schema)
                _seed_baseline(cursor, addresses)
            store_rates(self.urls[name])
            # Only the pool: PostgreSQL would plan for a table that was analysed while empty as if it stayed empty.
            tidy(self.urls[name], "pool_addresses")

    def start_direct(self) -> Target:
        return self._start("direct", "bench.baselines.direct:app")

    def start_stock(self) -> Target:
        worker = self._site.start(
            "stock-worker", "dramatiq bench.baselines.stock_actors -p 1 -t 4", self.environment("stock", 0)
        )
        return self._start("stock", "bench.baselines.stock_api:app", dramatiq=worker.pid)

    def environment(self, name: str, port: int) -> dict[str, str]:
        return {
            "BENCH_DATABASE_URL": self.urls[name],
            "BENCH_REDIS_URL": self._site.valkey.url,
            "BENCH_PORT": str(port),
        }

    def _start(self, name: str, app: str, **workers: int) -> Target:
        port = free_port()
        web = self._site.start(
            name, f"gunicorn -c bench/baselines/gunicorn.conf.py {app}", self.environment(name, port)
        )
        await_http(web, port)
        public_id, secret = BASELINE_KEY
        programs = {"gunicorn": web.pid, **workers, **server_programs(self._site)}
        return Target(name=name, port=port, public_id=public_id, secret=secret, programs=programs)


def create_merchant(name: str) -> IssuedKey:
    """Create a merchant and return its key."""
    return merchants.create_key(merchants.create_merchant(name).id, "unified", "", SecretBox(DEVELOPMENT_SECRET_KEYS))


def server_programs(site: Site) -> dict[str, int]:
    """Return the servers that all targets share."""
    return {"redis": site.valkey.pid or 0, "postgres": site.postgres.pid or 0}


def await_http(child: Child, port: int) -> None:
    """Return once the child gives any answer."""

    def answers() -> bool:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=1).close()
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    child.wait_until(answers)


def fill_pool(signer: Ed25519PrivateKey, addresses: int) -> None:
    """Fill the product's pool with random addresses, signed as its signer would."""
    chunks = -(-addresses // CHUNK)
    made = [["0x" + secrets.token_hex(ADDRESS_BYTES) for _ in range(CHUNK)] for _ in range(chunks)]
    signatures = [signer.sign(address_pool.chunk_message(FAMILY, number, chunk)) for number, chunk in enumerate(made)]
    base.execute(
        "INSERT INTO address_chunks (family, chunk, signature) SELECT %s, * FROM unnest(%s, %s::bytea[])",
        (FAMILY, list(range(chunks)), signatures),
    )
    listed = [address for chunk in made for address in chunk]
    base.execute(
        "INSERT INTO pool_addresses (family, ordinal, address)"
        " SELECT %s, place - 1, address FROM unnest(%s::text[]) WITH ORDINALITY AS made (address, place)",
        (FAMILY, listed),
    )


def store_rates(url: str) -> None:
    """Write rates that stay fresh for the whole run, for targets that accept a time in the future."""
    with _session(url) as cursor:
        psycopg2.extras.execute_values(
            cursor,
            "INSERT INTO rates (currency, usd, source, quoted_at) VALUES %s",
            [(currency, usd, "benchmark", datetime.now(UTC) + FRESH) for currency, usd in RATES],
        )


def refresh_rates(url: str) -> None:
    """Refresh the product's rates and network fees, as its own worker would."""
    with _session(url) as cursor:
        cursor.execute("UPDATE rates SET quoted_at = now(), agreed_at = now()")
        cursor.execute("UPDATE network_fees SET quoted_at = now()")


def begin_scan(url: str) -> None:
    """Write the first block of the network's scan; without one the network is not offered."""
    with _session(url) as cursor:
        cursor.execute(
            "INSERT INTO chain_cursors (network, height, hash, block_time, head_height, started_height)"
            " VALUES (%s, 1, '0x1', now(), 1, 1)",
            ("ethereum",),
        )


def _seed_baseline(cursor: psycopg2.extensions.cursor, addresses: int) -> None:
    cursor.execute(
        "WITH owner AS (INSERT INTO owners (id, name) VALUES (gen_random_uuid(), 'b') RETURNING id),"
        " shop AS (INSERT INTO merchants (id, owner_id, name)"
        "   SELECT gen_random_uuid(), id, 'b' FROM owner RETURNING id)"
        " INSERT INTO api_keys (id, public_id, merchant_id, kind, secret_box)"
        " SELECT gen_random_uuid(), %s, id, 'unified', %s FROM shop",
        BASELINE_KEY,
    )
    cursor.execute(
        "INSERT INTO pool_addresses (family, ordinal, address) SELECT %s, n, '0x' || left("
        "md5(n::text) || md5('a' || n), 40) FROM generate_series(0, %s) AS n",
        (FAMILY, addresses),
    )


def tidy(url: str, *tables: str) -> None:
    """Vacuum and analyse tables, or all.

    Otherwise an autovacuum worker does so during some round, and its processor time counts as that round's.
    """
    with _session(url) as cursor:
        cursor.execute(f"VACUUM (ANALYZE) {', '.join(tables)}")


@contextlib.contextmanager
def _session(url: str) -> Iterator[psycopg2.extensions.cursor]:
    session = psycopg2.connect(url)
    session.autocommit = True
    try:
        with session.cursor() as cursor:
            yield cursor
    finally:
        session.close()
