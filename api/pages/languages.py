"""Says the texts of hosted pages in the reader's language. Used by api.pages.

One file of texts a language, with the same keys in each. Amounts, addresses, names and moments are put into the texts
as they are: no reader has to guess whether 1.000 is one or a thousand.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from falcon import Request, Response
from markupsafe import Markup, escape

FOLDER: Final = Path(__file__).parent / "texts"
DEFAULT: Final = "en"
RIGHT_TO_LEFT: Final = "rtl"
VARY: Final = "Accept-Language"
# The languages of a header that are looked at.
ASKED_MAX: Final = 20
# Around a text that runs in a direction of its own: first strong isolate, and its end (Unicode, annex 9).
ISOLATED: Final = "\u2068{}\u2069"

_CHOICE: Final = re.compile(r"(?:^|&)lang=([A-Za-z]{2,3})(?=&|$)")
_RANGE: Final = re.compile(r"\s*([A-Za-z]{2,8})(?:-[A-Za-z0-9-]*)?\s*(?:;\s*q=([01](?:\.[0-9]{0,3})?))?\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """The texts of a language by key, as "stage.paid"."""

    code: str
    texts: Mapping[str, str]

    @property
    def name(self) -> str:
        """Return the language's name in itself."""
        return self.texts["language.name"]

    @property
    def direction(self) -> str:
        """Return the direction of its script: ltr or rtl."""
        return self.texts["language.direction"]

    def __call__(self, key: str, **values: object) -> str:
        """Return a text with values in it. With markup among them it is markup, and the other values are escaped."""
        text = self.texts[key]
        if any(isinstance(value, Markup) for value in values.values()):
            return escape(text).format(**{name: self._isolated(escape(value)) for name, value in values.items()})
        return text.format(**{name: self._isolated(str(value)) for name, value in values.items()})

    def error(self, code: str) -> str:
        """Return the text for an error's code; a general one for errors that a reader can do nothing about."""
        return self.texts.get(f"error.{code}") or self.texts["error.other"]

    def _isolated(self, value: Any) -> Any:
        """Keep a value's own direction inside a text from right to left."""
        return type(value)(ISOLATED).format(value) if self.direction == RIGHT_TO_LEFT else value


@functools.cache
def languages() -> Mapping[str, Language]:
    """Return the languages by code, the default first."""
    codes = sorted((file.stem for file in FOLDER.glob("*.toml")), key=lambda code: (code != DEFAULT, code))
    return {code: Language(code=code, texts=_texts(code)) for code in codes}


def _texts(code: str) -> Mapping[str, str]:
    tables = tomllib.loads((FOLDER / f"{code}.toml").read_text(encoding="utf-8"))
    return {f"{table}.{key}": text for table, texts in tables.items() for key, text in texts.items()}


def language_of(req: Request) -> Language:
    """Return the language of the address's ?lang, else the best of Accept-Language, else the default."""
    known = languages()
    return known[chosen(req) or next((code for code in _accepted(req) if code in known), DEFAULT)]


def chosen(req: Request) -> str:
    """Return the language that the address names; empty without one that exists."""
    choice = _CHOICE.search(req.env.get("QUERY_STRING", ""))
    code = choice[1].lower() if choice else ""
    return code if code in languages() else ""


def keep_choice(req: Request, path: str) -> str:
    """Return the address of one of our pages in the language that this page's address names."""
    code = chosen(req)
    return f"{path}?lang={code}" if code else path


def label(resp: Response, language: Language) -> None:
    """Name the language of an answer, and to caches what it depends on."""
    resp.set_header("Content-Language", language.code)
    resp.set_header("Vary", VARY)


def _accepted(req: Request) -> Iterator[str]:
    """Return the languages that a browser asks for, best first."""
    header: str = req.env.get("HTTP_ACCEPT_LANGUAGE", "")
    ranges = (_RANGE.fullmatch(part) for part in header.split(",")[:ASKED_MAX])
    asked = [(each[1].lower(), float(each[2] or "1")) for each in ranges if each]
    return (code for code, weight in sorted(asked, key=lambda one: -one[1]) if weight > 0)
