"""Opens, writes and replaces keystores, with the words and passphrases that an operator types. Used by the commands.

No command here needs the other settings, so that all run on a machine without a database.
"""

import base64
import binascii
import os
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from chains.keys import Keys
from chains.keystore import KeystoreError, seal, unseal
from cli.output import CommandError

OWNER_ONLY: Final = 0o600
DEFAULT: Final = Path("wallet.keystore.json")

KeystoreOption = Annotated[
    Path, typer.Option("--keystore", envvar="WALLET_KEYSTORE", show_envvar=True, help="The keystore's file.")
]
DataOption = Annotated[
    str | None,
    typer.Option(
        "--keystore-data", envvar="WALLET_KEYSTORE_DATA", show_envvar=True, help="The keystore in base64, not a file."
    ),
]
PassphraseOption = Annotated[
    str | None,
    typer.Option("--passphrase", envvar="WALLET_PASSPHRASE", show_envvar=True, help="Asked for where it is not given."),
]
PassphraseFileOption = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file", envvar="WALLET_PASSPHRASE_FILE", show_envvar=True, help="The file of the passphrase."
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A keystore and its passphrase, as the options or the environment name them. Its repr shows neither."""

    path: Path
    data: str | None
    passphrase: str | None
    passphrase_file: Path | None

    def __repr__(self) -> str:
        return f"Source({self.path})"

    @property
    def name(self) -> str:
        """Return the keystore's name for messages."""
        return str(self.path) if self.data is None else "WALLET_KEYSTORE_DATA"

    def mnemonic(self) -> str:
        """Open the keystore and return its words. Raises CommandError."""
        stored = self._stored()
        try:
            return unseal(stored, self._passphrase())
        except KeystoreError as error:
            raise CommandError(f"{self.name}: {error}") from None

    def _stored(self) -> bytes:
        try:
            return self.path.read_bytes() if self.data is None else base64.b64decode(self.data, validate=True)
        except OSError as error:
            remedy = "name the keystore by --keystore or WALLET_KEYSTORE"
            raise CommandError(f"{self.path}: {error.strerror}", remedy=remedy) from None
        except binascii.Error:
            raise CommandError("WALLET_KEYSTORE_DATA is not base64") from None

    def _passphrase(self) -> str:
        if self.passphrase_file is not None:
            return passphrase_in(self.passphrase_file)
        return self.passphrase or str(typer.prompt("Passphrase of the keystore", hide_input=True, err=True))


def passphrase_in(path: Path) -> str:
    """Return the passphrase in a file, as the signer reads it. Raises CommandError."""
    try:
        return path.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        raise CommandError(f"{path}: the passphrase cannot be read") from None


def asked_words() -> str:
    """Ask for the words on paper."""
    return str(typer.prompt("Mnemonic", hide_input=True, err=True))


def asked_new_passphrase() -> str:
    """Ask for a new passphrase, twice."""
    return str(typer.prompt("New passphrase for the keystore", hide_input=True, confirmation_prompt=True, err=True))


def keys_of(words: str) -> Keys:
    """Return the keys of typed words. Raises CommandError, which repeats none of them."""
    try:
        return Keys(words)
    except KeystoreError as error:
        raise CommandError(str(error)) from None


def write_new(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read. An existing file is kept: it may be a keystore that holds money."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def rekey(path: Path, mnemonic: str, passphrase: str) -> None:
    """Seal a keystore's words with another passphrase, in place of the file. Raises CommandError and OSError.

    At every moment the file opens with the old passphrase or with the new one.
    """
    try:
        data = seal(mnemonic, passphrase)
    except KeystoreError as error:
        raise CommandError(str(error)) from None

    def check(written: Path) -> None:
        # A disk that wrote another text must not cost the only keystore.
        if unseal(written.read_bytes(), passphrase) != mnemonic:
            raise CommandError(f"{written} was not written as it should be; the keystore is as it was")

    replace(path, data, check=check)


def replace(path: Path, data: bytes, *, check: Callable[[Path], None]) -> None:
    """Replace a file in one step, once its new content is on the disk and checked; owner and mode stay."""
    target = path.resolve(strict=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            _resemble(file.fileno(), target.stat())
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        check(Path(name))
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync(target.parent)


def _resemble(descriptor: int, other: os.stat_result) -> None:
    """Give an open file another file's owner and mode: the signer must be able to read it afterwards."""
    os.fchown(descriptor, other.st_uid, other.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(other.st_mode))


def _sync(folder: Path) -> None:
    """Write a folder's names to the disk: without that a power cut may bring the old file back."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
