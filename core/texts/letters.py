"""Lays out all e-mails in one form, as text and as HTML.

Used by core.texts.mail for cheques and security notices, and by core.invoices.letters for payments.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Final

import jinja2
import msgspec

_FOLDER: Final = Path(__file__).parent / "templates"
_KEPT_CONTROLS: Final = "\n\t"


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """The body of an e-mail, as text and as HTML."""

    text: str
    html: str


class Letter(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of an e-mail. Its texts may come from strangers: they are cleaned and escaped here."""

    lead: str
    # The sum, in large letters.
    headline: str = ""
    # Paragraphs, which may have several lines.
    paragraphs: tuple[str, ...] = ()
    # Names and values, one below the other.
    facts: tuple[tuple[str, str], ...] = ()
    # Without a URL there is no button.
    button: str = ""
    url: str = ""
    closing: str


def laid_out(letter: Letter) -> Body:
    """Return a letter as text and as HTML."""
    context = {
        "lead": one_line(letter.lead),
        "headline": one_line(letter.headline),
        "paragraphs": [clean(text) for text in letter.paragraphs],
        "facts": [(label, one_line(value)) for label, value in letter.facts if value],
        "button": letter.button,
        "url": letter.url,
        "closing": one_line(letter.closing),
    }
    return Body(text=_template("letter.txt").render(context) + "\n", html=_template("letter.html").render(context))


def clean(text: str) -> str:
    """Return a text without control characters and characters that change the direction of text."""
    return "".join(char for char in text if char in _KEPT_CONTROLS or (char.isprintable() or char == " "))


def one_line(text: str) -> str:
    """Return a cleaned text without line ends, so that a value cannot begin another line of facts."""
    return " ".join(clean(text).split())


@functools.cache
def _template(name: str) -> jinja2.Template:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=jinja2.select_autoescape(["html"]),
        undefined=jinja2.StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    ).get_template(name)
