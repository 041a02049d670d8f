"""Serves the documentation: rendered once at its first reading, without scripts. Routed by api.app."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any, Final

import jinja2
from falcon import Request, Response

from api.documentation import guides
from api.documentation.guides import Guide
from api.documentation.reference import STATES, Reference, errors_by_family
from api.documentation.samples import PUBLIC_ID, SECRET, TIMESTAMP
from api.http import http_cache
from api.openapi import events
from api.openapi.document import describe
from api.pages.pages import HTML, StaticFiles, page_headers
from api.routes import ENDPOINTS
from core.errors import RequestNotFound
from core.http.encoding import Packed, pack
from core.settings.settings import Settings

HERE: Final = Path(__file__).parent


class Documentation:
    """All pages below /docs."""

    methods = frozenset({"GET", "HEAD"})
    allow = "GET, HEAD"
    is_anonymous = True

    def __init__(self, settings: Settings, static: StaticFiles) -> None:
        self._settings, self._static = settings, static
        self._headers = [
            header for header in page_headers(settings) if header[0] not in {"Cache-Control", "X-Robots-Tag"}
        ]
        self._page = functools.cache(self._render)

    def on_get(self, req: Request, resp: Response, name: str = "") -> None:
        """Send a page."""
        page = self._page(name) if name in self.names() else None
        if page is None:
            raise RequestNotFound
        resp.set_headers(self._headers)
        resp.set_header("Cache-Control", "public, max-age=300")
        body = http_cache.choose(req, resp, page)
        if not http_cache.is_known(req, resp, body):
            resp.content_type = HTML
            resp.data = body

    on_head = on_get

    @functools.cache  # noqa: B019  there is one for each process
    def names(self) -> frozenset[str]:
        """Return the names of all pages; '' is the first."""
        own = ("", "authentication", "errors", "states", "objects", "events")
        return frozenset((*own, *guides.guides(), *self._tags()))

    @functools.cache  # noqa: B019
    def _reference(self) -> Reference:
        base_url = self._settings.base_url
        return Reference(describe(ENDPOINTS, base_url=base_url), base_url=base_url)

    def _tags(self) -> dict[str, str]:
        """Return the tags by the names of their pages; webhooks have a page of another kind."""
        return {slug(tag): tag for tag in self._reference().tags if tag != events.TAG}

    def _render(self, name: str) -> Packed:
        reference = self._reference()
        tags = self._tags()
        common = {"page": name, "tags": tags, "guides": {each: Guide(each).title for each in guides.guides()}}
        return pack(self._filled(name, tags, reference, common).encode())

    def _filled(self, name: str, tags: dict[str, str], reference: Reference, common: dict[str, Any]) -> str:
        if name in tags:
            inputs = {
                "title": tags[name],
                "text": reference.tags[tags[name]],
                "operations": [*reference.operations(tags[name])],
            }
            return self._template("tag.html").render(common | inputs)
        if name in guides.GUIDES:
            guide = Guide(name)
            return self._template("guide.html").render(common | {"title": guide.title, "html": guide.html})
        inputs = {
            "reference": reference,
            "operations": {tag: [*reference.operations(tag)] for tag in tags.values()} if not name else {},
            "families": errors_by_family(),
            "states": STATES,
            "sample": {"public_id": PUBLIC_ID, "secret": SECRET, "timestamp": TIMESTAMP},
            "base_url": self._settings.base_url,
        }
        return self._template(f"{name or 'index'}.html").render(common | inputs)

    def _template(self, name: str) -> jinja2.Template:
        return _environment(self._static).get_template(name)


@functools.cache
def _environment(static: StaticFiles) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(static=static.url, slug=slug)
    return environment


def slug(tag: str) -> str:
    """Return the name of a tag's page; guides have names of their own."""
    return f"api-{re.sub(r'[^a-z0-9]+', '-', tag.lower())}"
