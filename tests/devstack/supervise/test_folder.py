"""A stack's folder: its lock, its ports, its secrets, the Procfile and the environment of the processes."""

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from core.settings.settings import load_settings
from devstack.environment import app_environment, settings_environment
from devstack.evm.buyer import address_of
from devstack.plan import ROOT, PlanError, parse_networks
from devstack.story.accounts import ensure_accounts
from devstack.story.identity import Identity, load_identity
from devstack.supervise.data_folder import DataFolder
from devstack.supervise.files import read_json, write_json
from devstack.supervise.leash import Leash
from devstack.supervise.ports import KeptPorts, free_port, is_free
from devstack.supervise.process import StartError
from devstack.supervise.procfile import ProcfileError, read_procfile
from devstack.supervise.unprivileged import Account, UnsafeFolderError, reachable_copy, reachable_folder

NOBODY = Account(uid=65534, gid=65534)


def test_a_folder_has_one_stack_at_a_time(tmp_path: Path) -> None:
    first = DataFolder(tmp_path / "data")

    with pytest.raises(StartError, match=f"another stack runs.*pid {os.getpid()}"):
        DataFolder(tmp_path / "data")

    first.close()
    DataFolder(tmp_path / "data").close()


def test_a_folder_is_waited_for_while_a_dead_stacks_watchdog_tidies_up(tmp_path: Path) -> None:
    hold = (
        "import fcntl, os, sys, time; fcntl.flock(int(sys.argv[1]), fcntl.LOCK_EX); print(1, flush=True); time.sleep(1)"
    )
    first = DataFolder(tmp_path / "data")
    watchdog = subprocess.Popen(
        [sys.executable, "-c", hold, str(first.lock_fd)], pass_fds=(first.lock_fd,), stdout=subprocess.PIPE
    )
    assert watchdog.stdout is not None
    watchdog.stdout.readline()
    # The stack itself seems to be dead.
    (tmp_path / "data" / "lock").write_text("4194304")
    first.close()

    DataFolder(tmp_path / "data").close()

    assert watchdog.wait() == 0
    watchdog.stdout.close()


def test_ports_are_kept_from_start_to_start(tmp_path: Path) -> None:
    path = tmp_path / "ports.json"
    taken = KeptPorts(path).take("postgres")

    assert KeptPorts(path).take("postgres") == taken


def test_a_stored_port_that_is_taken_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "ports.json"
    taken = KeptPorts(path).take("postgres")
    with socket.socket() as other:
        other.bind(("127.0.0.1", taken))
        other.listen()

        assert not is_free(taken)
        assert KeptPorts(path).take("postgres") != taken


def test_a_wanted_port_is_taken_and_kept(tmp_path: Path) -> None:
    port = free_port()

    assert KeptPorts(tmp_path / "ports.json").take("web", wanted=port) == port


def test_no_outgoing_connection_is_given_the_port_before_a_server_has_it() -> None:
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])

    assert all(free_port() < lowest for _ in range(20))


def test_files_with_secrets_are_their_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_json(tmp_path / "secret", {"a": 1})
    finally:
        os.umask(before)

    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
    assert read_json(tmp_path / "secret", default=None) == {"a": 1}


def test_an_identity_is_made_once_and_kept_secret(tmp_path: Path) -> None:
    identity = load_identity(tmp_path)

    assert load_identity(tmp_path) == identity
    assert (tmp_path / "identity.json").stat().st_mode & 0o777 == 0o600
    assert identity.mnemonic not in repr(identity)


def test_an_identity_of_an_older_version_is_kept(tmp_path: Path) -> None:
    identity = load_identity(tmp_path)
    write_json(tmp_path / "identity.json", vars(identity) | {"buyer_address": "0x01"})

    assert load_identity(tmp_path) == identity


def test_two_stacks_share_no_secret(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()

    one, other = load_identity(tmp_path / "a"), load_identity(tmp_path / "b")

    assert set(vars(one).values()).isdisjoint(vars(other).values())


def test_the_buyers_address_belongs_to_its_key(tmp_path: Path) -> None:
    from eth_account import Account as EthAccount  # noqa: PLC0415

    identity = load_identity(tmp_path)

    assert EthAccount.from_key(identity.buyer_key).address == address_of(identity.buyer_key)


def test_accounts_are_the_same_at_every_start(tmp_path: Path, database: str) -> None:
    del database
    keys = load_identity(tmp_path).secret_keys
    accounts = ensure_accounts(tmp_path, keys)

    assert ensure_accounts(tmp_path, keys) == accounts
    assert len({key.public_id for key in accounts.all()}) == 3


def test_accounts_unknown_to_the_database_are_made_again(tmp_path: Path, database: str) -> None:
    del database
    first = ensure_accounts(tmp_path, load_identity(tmp_path).secret_keys)

    (tmp_path / "identity.json").unlink()
    second = ensure_accounts(tmp_path, load_identity(tmp_path).secret_keys)

    assert second != first


def test_a_procfile_is_its_long_running_processes(tmp_path: Path) -> None:
    path = tmp_path / "Procfile"
    path.write_text("# comment\n\nrelease: migrate\nweb: gunicorn api.wsgi:app -b 0.0.0.0:$PORT\nscheduler: run\n")

    assert read_procfile(path) == {"web": "gunicorn api.wsgi:app -b 0.0.0.0:$PORT", "scheduler": "run"}


def test_a_line_that_is_no_process_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "Procfile"
    path.write_text("web gunicorn\n")

    with pytest.raises(ProcfileError, match="web gunicorn"):
        read_procfile(path)


def test_our_procfile_has_a_process_for_every_queue() -> None:
    from actors.queue.registry import QUEUES  # noqa: PLC0415

    assert set(read_procfile(ROOT / "Procfile")) == {"web", "scheduler", *QUEUES}


def environment_of(name: str, identity: Identity, leash: Leash) -> dict[str, str]:
    settings = settings_environment(
        base_url="http://127.0.0.1:8000",
        port=8000,
        database_url="postgresql://a:b@127.0.0.1/c",
        redis_url="redis://127.0.0.1/0",
        rpc_urls={"bsc": "http://127.0.0.1:1"},
        identity=identity,
        desk_url="",
    )
    inherited = {
        "PATH": "/bin",
        "WALLET_MNEMONIC": "stray",
        "ETHEREUM_RPC_URLS": "http://elsewhere",
        "LOG_LEVEL": "debug",
    }
    return app_environment(name, inherited=inherited, settings=settings, leash=leash, mnemonic=identity.mnemonic)


@pytest.mark.parametrize("name", ["web", "invoices", "chain", "scheduler"])
def test_the_root_secret_is_the_signers_alone(name: str, tmp_path: Path, leash: Leash) -> None:
    env = environment_of(name, load_identity(tmp_path), leash)

    assert not [key for key in env if key.startswith("WALLET_")]
    load_settings(env, role="worker")


def test_the_signer_gets_the_stacks_own_wallet(tmp_path: Path, leash: Leash) -> None:
    identity = load_identity(tmp_path)

    settings = load_settings(environment_of("signer", identity, leash), role="signer")

    assert settings.wallet_mnemonic == identity.mnemonic


def test_processes_see_our_chains_and_no_others(tmp_path: Path, leash: Leash) -> None:
    env = environment_of("chain", load_identity(tmp_path), leash)

    assert load_settings(env).rpc_urls == {"bsc": ("http://127.0.0.1:1",)}
    assert env["LOG_LEVEL"] == "debug"
    assert env["PATH"].split(":") == [str(Path(sys.executable).parent), "/bin"]


def test_all_networks_are_those_with_a_development_chain() -> None:
    evm = ("ethereum", "bsc", "polygon", "avalanche", "base", "arbitrum")
    assert parse_networks("all") == (*evm, "tron", "solana", "ton", "bitcoin")
    assert parse_networks(" bsc, ethereum,bsc") == ("bsc", "ethereum")


@pytest.mark.parametrize("text", ["", ",", "ethereum,nowhere", "TON", "ALL"])
def test_other_networks_are_refused(text: str) -> None:
    with pytest.raises(PlanError, match="ethereum, bsc"):
        parse_networks(text)


def test_a_reachable_folder_needs_no_substitute(open_folder: Path) -> None:
    assert reachable_folder(open_folder / "new", NOBODY) == open_folder / "new"


def test_a_user_who_is_not_root_uses_the_folder_itself(tmp_path: Path) -> None:
    assert reachable_folder(tmp_path, None) == tmp_path
    assert reachable_copy(tmp_path, (), None) == tmp_path


def test_a_closed_folder_has_one_substitute_that_goes_with_it(
    tmp_path: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("devstack.supervise.unprivileged._PERSISTENT", open_folder)
    closed, other = tmp_path / "closed", tmp_path / "other"
    for folder in (closed, other):
        folder.mkdir(mode=0o700)

    stand_in = reachable_folder(closed, NOBODY)
    assert stand_in.parent == open_folder
    assert reachable_folder(closed, NOBODY) == stand_in
    assert stat.S_IMODE(stand_in.stat().st_mode) == 0o711

    closed.rmdir()
    reachable_folder(other, NOBODY)
    assert not stand_in.exists()


@pytest.mark.parametrize("is_link", [False, True])
def test_a_substitute_made_by_another_user_is_refused(
    tmp_path: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch, *, is_link: bool
) -> None:
    monkeypatch.setattr("devstack.supervise.unprivileged._PERSISTENT", open_folder)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    stand_in = reachable_folder(closed, NOBODY)
    (stand_in / "origin").unlink()
    if is_link:
        stand_in.rmdir()
        stand_in.symlink_to(tmp_path)
    else:
        stand_in.chmod(0o777)

    with pytest.raises(UnsafeFolderError):
        reachable_folder(closed, NOBODY)


def test_programs_are_copied_with_their_libraries(
    tmp_path: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("devstack.supervise.unprivileged._PERSISTENT", open_folder)
    closed = tmp_path / "closed"
    (closed / "package" / "bin").mkdir(parents=True)
    (closed / "package.libs").mkdir()
    (closed / "package.libs" / "lib.so").touch()
    closed.chmod(0o700)

    copy = reachable_copy(closed / "package", (closed / "package.libs",), NOBODY)

    assert (copy / "bin").is_dir()
    assert (copy.parent / "package.libs" / "lib.so").is_file()
    assert reachable_copy(closed / "package", (closed / "package.libs",), NOBODY) == copy
