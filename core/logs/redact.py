"""Takes secrets out of what is about to be logged. Called by core.logs.log for every event, and by cli for error texts.

Three nets, because each has holes: names that announce a secret, shapes that a secret has, and the very values that
the settings of this process hold.
"""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import unquote, urlsplit

from core.settings.node_urls import read_node_url
from core.settings.settings import Settings

REDACTED = "***"
DEPTH_MAX = 6
TEXT_CHARS_MAX = 16_384
# Shorter values would black out ordinary words; a short password in a URL is caught by its place.
VALUE_CHARS_MIN = 8
# Parts of a provider's URL that are at least so long are its key; shorter ones are names like "mainnet".
PROVIDER_KEY_CHARS_MIN = 16

_WORDS = (
    r"pass(?:word|wd|phrase)|secrets?(?:_?(?:keys?|box))?|mnemonic|signature|authorization|cookie"
    r"|(?:private|api|signing|buyer|access|token|seed|master)_?keys?|(?:claim|access|auth|api|bearer)_?token"
)
_SECRET_NAME = re.compile(rf"{_WORDS}|keystore_data|(?:^|_)(?:seed|token|pwd|passcode)$")
# key=value and "key": "value" inside a text, as in a DSN, a query string or the repr of a dict.
_ASSIGNMENT = re.compile(
    rf"(?i)({_WORDS})([\"']?\s{{0,4}}[=:]\s{{0,4}})(?:[\"'][^\"']{{0,4096}}[\"']|[^\s\"',&;)}}\]]+)"
)
_USERINFO = re.compile(r"://[^\s/?#]{0,512}@")
# A provider's header behind its URL, whatever its name.
_FRAGMENT = re.compile(r"(://[^\s#\"'<>]{1,512}#[\w!$&*+.^`|~-]{1,64}=)[^\s\"'<>,]+")
_BEARER = re.compile(r"(?i)\b(?:bearer|basic)\s{1,4}[\w.~+/=-]{16,}")
_OUR_SECRET = re.compile(r"\b(sk|whsec)_[\w-]{16,}")
# A cheque's token in a URL.
_CLAIM = re.compile(r"/claim/[\w-]{16,}")
# Twelve and more short lower-case words in a row: a BIP-39 phrase, or prose that a log can spare.
_PHRASE = re.compile(r"\b(?:[a-z]{3,8}[\s,'\"]{1,4}){11,23}[a-z]{3,8}\b")

# In this order: an assignment ends at a blank, and would leave the rest of a phrase or of a credential behind.
_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = (
    (_USERINFO, f"://{REDACTED}@"),
    (_FRAGMENT, rf"\1{REDACTED}"),
    (_PHRASE, REDACTED),
    (_BEARER, REDACTED),
    (_CLAIM, f"/claim/{REDACTED}"),
    (_ASSIGNMENT, rf"\1\2{REDACTED}"),
    (_OUR_SECRET, rf"\1_{REDACTED}"),
)


class Redactor:
    """Redacts values of any shape; knows the secrets of one process. Called as redactor(value)."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = sorted({text for text in secrets if len(text) >= VALUE_CHARS_MIN}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None

    def __call__(self, value: object, depth: int = 0) -> object:
        """Return value with every secret replaced, as plain JSON-able data."""
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, str):
            return self.text(value)
        if depth >= DEPTH_MAX:
            return self.text(repr(value))
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.named(str(key), item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self(item, depth + 1) for item in value]
        return self.text(str(value) if isinstance(value, Exception) else repr(value))

    def named(self, name: str, value: object, depth: int = 0) -> object:
        """Return value as it may be shown under this name."""
        if value is not None and not isinstance(value, bool) and _SECRET_NAME.search(name.lower().replace("-", "_")):
            return REDACTED
        return self(value, depth)

    def text(self, text: str) -> str:
        """Return the text without secrets, and of bounded length."""
        if self._known is not None:
            text = self._known.sub(REDACTED, text)
        for pattern, replacement in _SHAPES:
            text = pattern.sub(replacement, text)
        # Last: a secret cut in half would no longer be recognised.
        return text if len(text) <= TEXT_CHARS_MAX else f"{text[:TEXT_CHARS_MAX]}… ({len(text)} characters)"


def secrets_of(settings: Settings) -> list[str]:
    """Return the texts in the settings that must never be shown."""
    keys = [entry.partition(":")[2].strip() for entry in settings.secret_keys.split(",")]
    wallet = [settings.wallet_keystore_data, settings.wallet_passphrase, settings.wallet_mnemonic]
    urls = [settings.database_url, settings.redis_url, settings.smtp_url]
    sentry_key = urlsplit(settings.sentry_dsn or "").username
    passwords = [password for url in urls if url for password in _passwords(url)]
    nodes = [read_node_url(url) for urls in settings.rpc_urls.values() for url in urls]
    opening = [text for node in nodes for text in node.secrets]
    paths = _provider_keys(node.address for node in nodes)
    return [text for text in [*keys, settings.metrics_token, sentry_key, *wallet, *passwords, *opening, *paths] if text]


def _passwords(url: str) -> list[str]:
    password = urlsplit(url).password or ""
    return [password, unquote(password)]


def _provider_keys(urls: Iterable[str]) -> list[str]:
    """Return what looks like a key in the paths and queries; a database's path is only its name."""
    parts = [part for url in urls for part in re.split(r"[/?&=]", url.partition("://")[2])[1:]]
    return [part for part in parts if len(part) >= PROVIDER_KEY_CHARS_MIN]
