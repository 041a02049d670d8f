"""Renders the guides of docs/ that are for merchants. Called by pages.

A gateway that was installed as a wheel has no docs/, and so the reference alone.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from markdown_it.token import Token

FOLDER: Final = Path(__file__).parents[2] / "docs"
# In the order of reading. All other pages of docs/ are for operators.
GUIDES: Final = (
    "quickstart", "clients", "payment-page", "payment-links", "webhooks", "terms", "wallets", "payouts", "cheques",
    "refunds", "batches", "auto-withdraw", "transfers", "splits", "timeline", "glossary",
)  # fmt: skip
_LINK: Final = re.compile(r"(?:docs/)?([a-z-]+)\.md(#[A-Za-z0-9_-]+)?")
_NOT_IN_ANCHORS: Final = re.compile(r"[^a-z0-9 -]")


class Guide:
    """A guide as HTML. Links to pages that are not shown here become plain words."""

    def __init__(self, name: str) -> None:
        from markdown_it import MarkdownIt  # noqa: PLC0415  half a megabyte, for those who read

        # No HTML of the text is taken over.
        parser = MarkdownIt("commonmark", {"html": False}).enable("table")
        tokens = parser.parse((FOLDER / f"{name}.md").read_text(encoding="utf-8"))
        self.name = name
        self.title = next(token.content for token in tokens if token.type == "inline")
        _anchor(tokens)
        for token in tokens:
            token.children = _led(token.children) if token.children else token.children
        self.html: str = parser.renderer.render(tokens, parser.options, {})


def guides() -> list[str]:
    """Return the names of the guides that there are."""
    return [name for name in GUIDES if (FOLDER / f"{name}.md").exists()]


def _anchor(tokens: Sequence[Token]) -> None:
    """Give each heading the anchor that GitHub gives it, by which the pages link to each other."""
    for token, text in itertools.pairwise(tokens):
        if token.type == "heading_open":
            token.attrSet("id", _NOT_IN_ANCHORS.sub("", text.content.lower()).replace(" ", "-"))


def _led(tokens: Sequence[Token]) -> list[Token]:
    """Lead links between guides to their pages here, and drop those that lead out of the documentation."""
    kept, is_dropped = [], False
    for token in tokens:
        if token.type == "link_open":
            target = _target(str(token.attrGet("href")))
            is_dropped = not target
            token.attrSet("href", target)
        if not (is_dropped and token.type in {"link_open", "link_close"}):
            kept.append(token)
        is_dropped = is_dropped and token.type != "link_close"
    return kept


def _target(href: str) -> str:
    if href.startswith(("#", "https://")):
        return href
    page = _LINK.fullmatch(href)
    return f"/docs/{page[1]}{page[2] or ''}" if page is not None and page[1] in GUIDES else ""
