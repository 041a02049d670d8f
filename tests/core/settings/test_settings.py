"""Reads the environment into settings or reports all its errors."""

import base64
from pathlib import Path

import pytest
from pydantic import ValidationError

from core.catalogue.catalogue import load_catalogue
from core.rates.pricing import StandardTerms
from core.settings.networks import CONFIRMATIONS_MAX
from core.settings.rules import DEVELOPMENT_SECRET_KEYS, Role
from core.settings.settings import Settings, SettingsError, load_settings
from models.deposits import cursors

KEY = "2024:" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
STORES = {"DATABASE_URL": "postgresql://u:dbpassword@db/sluice", "REDIS_URL": "redis://:redispassword@redis:6379/0"}
DEVELOPMENT = {"ENVIRONMENT": "development", **STORES}
PRODUCTION = {
    "ENVIRONMENT": "production",
    **STORES,
    "BASE_URL": "https://api.example.com",
    "PAY_URL": "https://pay.example.com",
    "SECRET_KEYS": KEY,
    "ADDRESS_PUBLIC_KEY": base64.b64encode(b"p" * 32).decode(),
}
KEYSTORE = {"WALLET_KEYSTORE": "/etc/sluice/keystore", "WALLET_PASSPHRASE": "open sesame open sesame"}
NOT_THE_SIGNER: list[Role] = ["web", "worker", "scheduler", "cli"]


def problems(env: dict[str, str], role: Role = "cli") -> tuple[str, ...]:
    with pytest.raises(SettingsError) as refused:
        load_settings(env, role=role)
    return refused.value.problems


def test_development_needs_only_postgresql_and_redis() -> None:
    settings = load_settings(DEVELOPMENT)
    assert settings.base_url == settings.pay_url == "http://127.0.0.1:8000"
    assert (settings.rates_source, settings.log_format, settings.redis_namespace) == ("static", "console", "sluice")


def test_development_reports_unsafe_settings() -> None:
    env = {**DEVELOPMENT, "WEBHOOK_ALLOW_PRIVATE": "1", "WALLET_MNEMONIC": "abandon about"}
    assert [warning.split()[0] for warning in load_settings(env).warnings()] == [
        "SECRET_KEYS",
        "RATES_SOURCE",
        "WEBHOOK_ALLOW_PRIVATE",
        "WALLET_MNEMONIC",
    ]


@pytest.mark.parametrize(
    ("given", "listens_on"),
    [
        ({}, "0.0.0.0:8000"),
        ({"PORT": "5000"}, "0.0.0.0:5000"),
        ({"BIND": "127.0.0.1", "PORT": "5000"}, "127.0.0.1:5000"),
        ({"BIND": "::1"}, "[::1]:8000"),
        ({"BIND": "unix:/run/sluice/web.sock"}, "unix:/run/sluice/web.sock"),
    ],
)
def test_production_listens_everywhere_unless_an_address_is_given(given: dict[str, str], listens_on: str) -> None:
    assert load_settings(PRODUCTION | given).listens_on == listens_on
    assert load_settings(DEVELOPMENT).listens_on == "127.0.0.1:8000"


@pytest.mark.parametrize("text", ["localhost", "127.0.0.1:8000", "unix:web.sock", "/run/web.sock"])
def test_a_place_that_is_neither_address_nor_socket_is_refused(text: str) -> None:
    assert [problem.split(":")[0] for problem in problems(PRODUCTION | {"BIND": text})] == ["BIND"]


CA_FILE = "ca:" + str(Path(__file__))


@pytest.mark.parametrize(
    ("tls", "parameters"),
    [
        ("verify", ""),
        ("unverified", "?ssl_cert_reqs=none"),
        (CA_FILE, "?ssl_ca_certs=" + str(Path(__file__))),
    ],
)
def test_the_certificate_of_redis_is_checked_as_the_operator_says(tls: str, parameters: str) -> None:
    url = "rediss://:redispassword@redis:6379/0"

    assert load_settings(PRODUCTION | {"REDIS_URL": url, "REDIS_TLS": tls}).redis_url == url + parameters


@pytest.mark.parametrize(
    ("url", "tls"),
    [
        ("redis://redis/0", "verify"),
        ("rediss://redis/0", "no"),
        ("rediss://redis/0", "ca:relative.pem"),
        ("rediss://redis/0", "ca:/no/such/file"),
        ("rediss://redis/0?ssl_cert_reqs=none", "verify"),
    ],
)
def test_a_check_of_a_certificate_that_would_not_be_made_is_refused(url: str, tls: str) -> None:
    lines = problems(PRODUCTION | {"REDIS_URL": url, "REDIS_TLS": tls})

    assert {line.partition(":")[0] for line in lines} == {"REDIS_TLS"}


def test_a_release_may_run_where_the_wallet_is() -> None:
    assert load_settings(PRODUCTION | KEYSTORE, role="release").environment == "production"
    assert problems(PRODUCTION | {"WALLET_MNEMONIC": "abandon about"}, role="release")  # type: ignore[arg-type]


def test_the_gateways_terms_are_settings() -> None:
    assert load_settings(PRODUCTION).standard_terms == StandardTerms(
        fee_ppm=15_000, fee_fixed_usd_cents=30, price_max_usd=10_000_000, accuracy_ppm=0, lifetime_s=3_600, quote_s=900
    )
    own = {
        "FEE_PERCENT": "0.0001", "FEE_FIXED_USD": "1.5", "PRICE_MAX_USD": "500", "ACCURACY_PERCENT": "1.5",
        "INVOICE_LIFETIME_S": "300", "QUOTE_LIFETIME_S": "3600",
    }  # fmt: skip
    assert load_settings(PRODUCTION | own).standard_terms == StandardTerms(
        fee_ppm=1, fee_fixed_usd_cents=150, price_max_usd=500, accuracy_ppm=15_000, lifetime_s=300, quote_s=3_600
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [("FEE_PERCENT", text) for text in ("-1", "100.0001", "0.00001", "1,5", "1e1", "NaN", "1_0")]
    + [("FEE_FIXED_USD", text) for text in ("-0.01", "10000.01", "0.001", "free")]
    + [("PRICE_MAX_USD", text) for text in ("0", "1000000001", "1.5")]
    + [("INVOICE_LIFETIME_S", text) for text in ("299", "43201", "0")]
    + [("QUOTE_LIFETIME_S", text) for text in ("299", "3601", "0")]
    + [("ACCURACY_PERCENT", text) for text in ("0.9999", "5.0001", "-1", "1.00001", "five")],
)
def test_impossible_terms_are_refused(name: str, text: str) -> None:
    (problem,) = problems(PRODUCTION | {name: text})
    assert problem.startswith(f"{name}: ")


def test_production_reports_no_unsafe_settings() -> None:
    settings = load_settings(PRODUCTION)
    assert settings.warnings() == ()
    assert (settings.rates_source, settings.log_format) == ("live", "json")


def test_production_reports_cheques_sent_without_tls() -> None:
    (warning,) = load_settings({**PRODUCTION, "PAY_URL": "http://pay.example.com"}).warnings()
    assert warning.startswith("PAY_URL is plain http")


def test_without_an_environment_production_rules_apply() -> None:
    assert problems(STORES) == ("BASE_URL: is required", "SECRET_KEYS: is required")
    assert load_settings({k: v for k, v in PRODUCTION.items() if k != "ENVIRONMENT"}).environment == "production"


def test_an_unknown_environment_is_refused() -> None:
    assert any(problem.startswith("ENVIRONMENT:") for problem in problems({**PRODUCTION, "ENVIRONMENT": "staging"}))


def test_an_unknown_environment_gets_no_development_defaults() -> None:
    assert "SECRET_KEYS: is required" in problems({**STORES, "ENVIRONMENT": "staging"})


def test_all_problems_are_reported_at_once() -> None:
    env = {
        "ENVIRONMENT": "production",
        "REDIS_URL": "http://redis",
        "PORT": "70000",
        "BASE_URL": "api.example.com",
        "SECRET_KEYS": DEVELOPMENT_SECRET_KEYS,
        "WALLET_MNEMONIC": "abandon about",
        "WEBHOOK_ALLOW_PRIVATE": "yes",
        "RATES_SOURCE": "static",
        "TRUSTED_PROXIES": "10.0.0.0/8,nonsense",
        "ETHEREUM_RPC_URLS": "ftp://node",
        "DOGECHAIN_RPC_URLS": "https://a,https://b",
    }
    assert [problem.split(":")[0] for problem in problems(env)] == [
        "DATABASE_URL",
        "REDIS_URL",
        "PORT",
        "BASE_URL",
        "TRUSTED_PROXIES",
        "ETHEREUM_RPC_URLS",
        "DOGECHAIN_RPC_URLS",
        "SECRET_KEYS",
        "WALLET_MNEMONIC",
        "WEBHOOK_ALLOW_PRIVATE",
        "RATES_SOURCE",
        "ETHEREUM_RPC_URLS",
    ]


def test_a_network_without_an_adapter_cannot_be_switched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a network would take orders that no actor could carry out."""
    monkeypatch.setattr("core.settings.networks.SERVED_FAMILIES", frozenset({"evm"}))
    (problem,) = problems({**DEVELOPMENT, "TON_RPC_URLS": "http://127.0.0.1:1"})

    assert problem.startswith("TON_RPC_URLS: this version has no adapter")


def test_a_missing_address_is_named_once() -> None:
    assert problems({k: v for k, v in PRODUCTION.items() if k not in {"BASE_URL", "PAY_URL"}}) == (
        "BASE_URL: is required",
    )


def test_a_bad_port_is_reported_without_the_address_that_follows_from_it() -> None:
    assert [problem.split(":")[0] for problem in problems({**DEVELOPMENT, "PORT": "0"})] == ["PORT"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "mysql://u:topsecretvalue@db/x"),
        ("REDIS_URL", "ftp://:topsecretvalue@redis"),
        ("SECRET_KEYS", "k:topsecretvalue"),
        ("ETHEREUM_RPC_URLS", "wss://node/topsecretvalue"),
        ("SMTP_URL", "topsecretvalue"),
        ("PORT", "topsecretvalue"),
        ("TRUSTED_PROXIES", "topsecretvalue"),
    ],
)
def test_a_problem_never_shows_the_value(name: str, value: str) -> None:
    text = "\n".join(problems({**DEVELOPMENT, name: value}))
    assert name in text
    assert "topsecretvalue" not in text


def test_secrets_stay_out_of_the_repr() -> None:
    env = {
        **PRODUCTION,
        **KEYSTORE,
        "ETHEREUM_RPC_URLS": "https://node/providerkey,https://other",
        "SMTP_URL": "smtp://u:mailpassword@m",
        "SIGNER_RATES": "ETH:2500,POL:0.5",
    }
    shown = repr(load_settings(env, role="signer"))
    for secret in ("dbpassword", "redispassword", "mailpassword", "providerkey", "sesame", KEY.partition(":")[2]):
        assert secret not in shown


def test_the_wallet_stays_out_of_the_repr() -> None:
    shown = repr(load_settings({**DEVELOPMENT, "WALLET_MNEMONIC": "abandon about", "WALLET_KEYSTORE_DATA": "e30="}))
    assert "abandon" not in shown
    assert "e30=" not in shown


def test_a_settings_object_made_by_hand_does_not_show_values_in_its_errors() -> None:
    with pytest.raises(ValidationError) as refused:
        Settings.model_validate({"database_url": "topsecretvalue"})
    assert "topsecretvalue" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SECRET_KEYS", DEVELOPMENT_SECRET_KEYS),
        ("SECRET_KEYS", f"{KEY},renamed:{DEVELOPMENT_SECRET_KEYS.partition(':')[2]}"),
        ("WALLET_MNEMONIC", "abandon about"),
        ("WEBHOOK_ALLOW_PRIVATE", "1"),
        ("WEBHOOK_ALLOW_PRIVATE", "TRUE"),
        ("RATES_SOURCE", "static"),
        ("ETHEREUM_RPC_URLS", "https://only-one"),
    ],
)
def test_production_refuses(name: str, value: str) -> None:
    assert [problem.split(":")[0] for problem in problems({**PRODUCTION, name: value})] == [name]


def test_production_accepts_a_single_provider_if_the_operator_allows_it() -> None:
    env = {**PRODUCTION, "ETHEREUM_RPC_URLS": "https://only-one", "SINGLE_PROVIDER_OK": "1"}
    assert load_settings(env).rpc_urls == {"ethereum": ("https://only-one",)}


@pytest.mark.parametrize("role", NOT_THE_SIGNER)
@pytest.mark.parametrize("name", ["WALLET_KEYSTORE", "WALLET_PASSPHRASE", "WALLET_ANYTHING_NEW"])
def test_in_production_only_the_signer_sees_the_wallet(role: Role, name: str) -> None:
    assert problems({**PRODUCTION, name: "x"}, role) == (f"{name}: only the signer may see it",)


def test_the_mnemonic_is_refused_once_in_any_role() -> None:
    for role in [*NOT_THE_SIGNER, "signer"]:
        problems_there = [
            p for p in problems({**PRODUCTION, "WALLET_MNEMONIC": "abandon"}, role) if "WALLET_MNEMONIC:" in p
        ]
        assert problems_there == ["WALLET_MNEMONIC: production refuses it, use a keystore"]


def test_in_development_any_process_may_see_the_wallet() -> None:
    assert load_settings({**DEVELOPMENT, **KEYSTORE}, role="web").wallet_keystore == Path("/etc/sluice/keystore")


@pytest.mark.parametrize(
    "wallet",
    [
        {},
        {"WALLET_KEYSTORE": "/k"},
        {"WALLET_KEYSTORE": "/k", "WALLET_KEYSTORE_DATA": "e30=", "WALLET_PASSPHRASE": "p"},
        {"WALLET_KEYSTORE": "/k", "WALLET_PASSPHRASE": "p", "WALLET_PASSPHRASE_FILE": "/p"},
        {"WALLET_PASSPHRASE": "p"},
    ],
)
def test_the_signer_needs_one_wallet_and_one_passphrase(wallet: dict[str, str]) -> None:
    assert len(problems({**PRODUCTION, **wallet}, "signer")) == 1


def test_the_signer_starts_with_a_keystore_and_its_passphrase() -> None:
    assert load_settings({**PRODUCTION, **KEYSTORE}, role="signer").passphrase() == KEYSTORE["WALLET_PASSPHRASE"]


def test_a_passphrase_file_is_read_without_its_line_end(tmp_path: Path) -> None:
    (tmp_path / "passphrase").write_text(" two words \n", encoding="utf-8")
    wallet = {"WALLET_KEYSTORE": "/k", "WALLET_PASSPHRASE_FILE": str(tmp_path / "passphrase")}
    assert load_settings({**PRODUCTION, **wallet}, role="signer").passphrase() == " two words "


def test_a_worker_needs_the_key_that_addresses_are_verified_with() -> None:
    assert problems(DEVELOPMENT, "worker") == ("ADDRESS_PUBLIC_KEY: is required, or addresses could not be verified",)


def test_providers_are_read_by_network_in_order() -> None:
    env = {**DEVELOPMENT, "ETHEREUM_RPC_URLS": "http://a/x , http://b,", "BSC_RPC_URLS": "https://c"}
    assert load_settings(env).rpc_urls == {"ethereum": ("http://a/x", "http://b"), "bsc": ("https://c",)}


def test_a_list_of_no_providers_is_refused() -> None:
    assert [problem.split(":")[0] for problem in problems({**DEVELOPMENT, "BSC_RPC_URLS": " , "})] == ["BSC_RPC_URLS"]


def test_a_variable_set_to_nothing_counts_as_absent() -> None:
    assert load_settings({**PRODUCTION, "WALLET_KEYSTORE": "", "PORT": " "}).port == 8000


def test_trusted_proxies_are_networks() -> None:
    networks = load_settings({**DEVELOPMENT, "TRUSTED_PROXIES": "10.0.0.0/8, ::1"}).trusted_proxies
    assert [str(network) for network in networks] == ["10.0.0.0/8", "::1/128"]


@pytest.mark.parametrize("value", ["nan", "inf", "0", "-1", "26"])
def test_the_wait_for_a_call_is_bounded(value: str) -> None:
    assert [problem.split(":")[0] for problem in problems({**DEVELOPMENT, "CALL_WAIT_S": value})] == ["CALL_WAIT_S"]


def test_calls_leave_threads_for_pages_and_the_pool_marks_are_in_order() -> None:
    (problem,) = problems({**DEVELOPMENT, "WEB_THREADS": "8", "CALL_SLOTS": "8", "POOL_LOW": "9", "POOL_HIGH": "9"})
    assert "CALL_SLOTS" in problem
    assert "POOL_LOW" in problem


def test_a_network_may_have_a_gas_cap_and_a_sanctions_oracle_of_its_own() -> None:
    oracle = "0x40C57923924B5c5c5455c48D93317139ADDaC8fb"
    settings = load_settings({**DEVELOPMENT, "BSC_GAS_CAP_GWEI": "7", "ETHEREUM_SANCTIONS_ORACLE": oracle})

    assert (settings.fee_caps, settings.sanctions_oracles) == ({"bsc": 7}, {"ethereum": oracle})


def test_a_network_may_take_more_confirmations_and_never_fewer() -> None:
    settings = load_settings({**PRODUCTION, "POLYGON_CONFIRMATIONS": "100", "ARBITRUM_CONFIRMATIONS": "256"})
    shown = {code: network.confirmations for code, network in settings.catalogue.networks.items()}
    standard = {code: network.confirmations for code, network in load_catalogue("production").networks.items()}

    assert shown == standard | {"polygon": 100, "arbitrum": 256}
    assert settings.catalogue.networks["polygon"].maturity == 256
    assert load_settings(PRODUCTION).catalogue.networks == load_catalogue("production").networks


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("POLYGON_CONFIRMATIONS", "63"),
        ("POLYGON_CONFIRMATIONS", "257"),
        ("ARBITRUM_CONFIRMATIONS", "257"),
        ("BITCOIN_CONFIRMATIONS", "1"),
        ("BITCOIN_CONFIRMATIONS", "7"),
        ("BITCOIN_CONFIRMATIONS", "0"),
        ("BITCOIN_CONFIRMATIONS", "-1"),
        ("BITCOIN_CONFIRMATIONS", "six"),
        ("DOGECOIN_CONFIRMATIONS", "6"),
    ],
)
def test_confirmations_that_deposits_could_not_have_are_refused(name: str, value: str) -> None:
    assert {problem.split(":")[0] for problem in problems({**PRODUCTION, name: value})} == {name}


@pytest.mark.parametrize("floor", ["actors", "api", "cli", "scheduler"])
def test_no_process_reads_the_catalogue_past_the_settings(floor: str) -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in (Path(__file__).parents[3] / floor).rglob("*.py")}

    assert texts
    assert [path for path, text in texts.items() if "load_catalogue(settings" in text] == []


def test_the_scan_keeps_the_blocks_that_confirmations_may_take() -> None:
    assert cursors.BLOCKS_KEPT >= 2 * CONFIRMATIONS_MAX


def test_an_explorer_may_be_replaced_or_left_out() -> None:
    catalogue = load_catalogue("production")
    bsc, base = catalogue.networks["bsc"], catalogue.networks["base"]
    settings = load_settings(
        {**DEVELOPMENT, "BSC_EXPLORER_URL": "https://scan.example/#/{txid}?a", "BASE_EXPLORER_URL": "none"}
    )

    assert settings.transaction_url(bsc, "0x1/../2") == "https://scan.example/#/0x1%2F..%2F2?a"
    assert settings.transaction_url(base, "0x1") == ""
    standard = load_settings(DEVELOPMENT)
    assert standard.transaction_url(base, "0x1") == "https://basescan.org/tx/0x1"
    # No explorer shows the chain of one machine.
    assert standard.transaction_url(load_catalogue("development").networks["base"], "0x1") == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BSC_GAS_CAP_GWEI", "0"),
        ("BSC_GAS_CAP_GWEI", "much"),
        ("BSC_GAS_CAP_GWEI", "2001"),
        ("BSC_GAS_CAP_GWEI", "2001.0"),
        ("BSC_FEE_CAP", "0"),
        ("BSC_FEE_CAP", "much"),
        ("BSC_FEE_CAP", "2001"),
        ("TON_FEE_CAP", "100000000001"),
        ("DOGECHAIN_FEE_CAP", "7"),
        ("TRON_GAS_CAP_GWEI", "7"),
        ("DOGECHAIN_GAS_CAP_GWEI", "7"),
        ("BITCOIN_JOIN_SAT_VB", "-1"),
        ("BITCOIN_JOIN_SAT_VB", "much"),
        ("BITCOIN_JOIN_SAT_VB", "2001"),
        ("BSC_JOIN_SAT_VB", "7"),
        ("DOGECHAIN_JOIN_SAT_VB", "7"),
        ("ETHEREUM_SANCTIONS_ORACLE", "0x40"),
        ("TRON_SANCTIONS_ORACLE", "0x40C57923924B5c5c5455c48D93317139ADDaC8fb"),
        ("BSC_EXPLORER_URL", "https://scan.example/tx/"),
        ("BSC_EXPLORER_URL", "javascript:alert({txid})"),
        ("BSC_EXPLORER_URL", "https://scan.example/{txid}/{txid}"),
        ("DOGECHAIN_EXPLORER_URL", "https://scan.example/{txid}"),
    ],
)
def test_an_invalid_gas_cap_or_oracle_is_refused(name: str, value: str) -> None:
    assert [problem.split(":")[0] for problem in problems({**DEVELOPMENT, name: value})] == [name]


def test_a_fee_cap_may_use_the_general_or_the_gas_name_but_not_both() -> None:
    assert load_settings({**DEVELOPMENT, "BSC_FEE_CAP": "2000"}).fee_caps == {"bsc": 2000}
    assert problems({**DEVELOPMENT, "BSC_FEE_CAP": "7", "BSC_GAS_CAP_GWEI": "7"}) == (
        "BSC_FEE_CAP: BSC_GAS_CAP_GWEI is the same: name one of them",
    )


def test_numbers_for_one_family_are_kept_by_network_and_name() -> None:
    settings = load_settings({**DEVELOPMENT, "BITCOIN_JOIN_SAT_VB": "0"})

    assert settings.figures == {"bitcoin": {"_JOIN_SAT_VB": 0}}
    with pytest.raises(TypeError):
        settings.figures["bitcoin"]["_JOIN_SAT_VB"] = 7  # type: ignore[index]


def test_own_hosts_include_both_addresses() -> None:
    assert load_settings(PRODUCTION).own_hosts == {"api.example.com", "pay.example.com"}


def test_own_hosts_are_recognised_by_their_punycode() -> None:
    settings = load_settings(PRODUCTION | {"PAY_URL": "https://z\u00e4hlung.example"})

    assert settings.own_hosts == {"api.example.com", "xn--zhlung-bua.example"}


def test_addresses_lose_their_final_slash() -> None:
    assert load_settings({**PRODUCTION, "PAY_URL": "https://pay.example.com/"}).pay_url == "https://pay.example.com"


def test_settings_are_immutable() -> None:
    settings = load_settings({**DEVELOPMENT, "BSC_RPC_URLS": "http://a"})
    with pytest.raises(ValidationError):
        settings.port = 1
    with pytest.raises(TypeError):
        settings.rpc_urls["bsc"] = ()  # type: ignore[index]


def test_the_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**DEVELOPMENT, "PORT": "8123"}.items():
        monkeypatch.setenv(name, value)
    assert isinstance(load_settings(), Settings)
    assert load_settings().port == 8123


def test_the_treasury_sweeps_eagerly_in_development_and_by_cost_in_production() -> None:
    loaded = load_settings(DEVELOPMENT), load_settings(PRODUCTION)
    assert [(s.sweep_min_usd, s.sweep_fee_max_percent, s.hot_limit_usd) for s in loaded] == [
        (0, 10_000, 10_000),
        (20, 5, 10_000),
    ]


def test_a_cold_address_is_checked_and_stored_in_its_stored_form(monkeypatch: pytest.MonkeyPatch) -> None:
    cold = "0x52908400098527886E0F7030069857D2E4169EE7"
    settings = load_settings(DEVELOPMENT | {"ETHEREUM_COLD_ADDRESS": cold})
    assert settings.cold_addresses == {"ethereum": cold.lower()}
    misspelt = problems(DEVELOPMENT | {"ETHEREUM_COLD_ADDRESS": cold.replace("A", "a", 1).replace("E", "e", 1)})
    assert misspelt[0].startswith("ETHEREUM_COLD_ADDRESS: The address is misspelt")
    monkeypatch.setattr("core.settings.networks.SERVED_FAMILIES", frozenset({"evm"}))
    assert problems(DEVELOPMENT | {"TON_COLD_ADDRESS": cold, "BASE_COLD_ADDRESS": "0x12"}) == (
        "BASE_COLD_ADDRESS: The address must be 0x and 40 hexadecimal digits.",
        "TON_COLD_ADDRESS: this version serves no such network",
    )


def test_emails_come_from_the_pages_host_by_default() -> None:
    settings = DEVELOPMENT | {"PAY_URL": "https://pay.example:8443/x"}

    assert load_settings(settings).mail_sender == "no-reply@pay.example"
    assert load_settings(settings | {"MAIL_FROM": "shop@mail.example"}).mail_sender == "shop@mail.example"
    assert problems(settings | {"MAIL_FROM": "a@b\r\nBcc: c@d"})[0].startswith("MAIL_FROM:")


@pytest.mark.parametrize("name", ["payout_links_enabled", "payment_links_enabled"])
def test_links_are_on_by_default(name: str) -> None:
    assert getattr(load_settings(DEVELOPMENT), name)
    assert not getattr(load_settings(DEVELOPMENT | {name.upper(): "0"}), name)
