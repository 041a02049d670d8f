"""Shows browsers a page instead of the API's JSON error. Called by api.http.errors.

A buyer may mistype an address or append a slash, and is no API client. Addresses of the API answer in JSON
always, since HTTP libraries ask for text/html without being browsers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from falcon import Request, Response

from api.endpoints import Endpoint
from api.pages import languages
from api.pages.languages import Language
from api.pages.pages import HTML, StaticFiles, page_headers, takes_pages, templates
from core.settings.settings import Settings

# The address of one of our pages with a slash too many.
_WITH_SLASH: Final = re.compile(r"(/(?:pay|claim|link)/[A-Za-z0-9_-]{1,64})/(\?.*)?", re.DOTALL)
_READING: Final = frozenset({"GET", "HEAD"})
_FIRST_SEGMENT: Final = re.compile(r"/*([^/?#%]*)")


class ErrorPages:
    """The pages for refusals outside the hosted pages."""

    def __init__(self, settings: Settings, static: StaticFiles, endpoints: Iterable[Endpoint]) -> None:
        self._headers = page_headers(settings)
        self._page = templates(static).get_template("error.html")
        self._api = frozenset(endpoint.path.split("/")[1] for endpoint in endpoints)

    def show(self, req: Request, resp: Response, *, status: int, retry_after_s: int | None) -> bool:
        """Answer a browser with a page. Return False for a program, and at any address of the API."""
        target = getattr(req.context, "target", req.path)
        if not takes_pages(req) or self._is_api(target):
            return False
        resp.set_headers(self._headers)
        canonical = _WITH_SLASH.fullmatch(target)
        if canonical is not None and status == HTTPStatus.NOT_FOUND:
            resp.status = HTTPStatus.PERMANENT_REDIRECT
            resp.set_header("Location", f"{canonical[1]}{canonical[2] or ''}")
            return True
        resp.content_type = HTML
        say = languages.language_of(req)
        languages.label(resp, say)
        if status == HTTPStatus.NOT_FOUND and req.method in _READING and target.partition("?")[0] == "/":
            resp.text = self._page.render(title=say("home.title"), lines=(say("home.line"), say("home.lost")), say=say)
            return True
        resp.status = status
        title = _title(say, status, retry_after_s)
        resp.text = self._page.render(title=title, lines=(say("problem.check_link"),), say=say)
        return True

    def _is_api(self, target: str) -> bool:
        segment = _FIRST_SEGMENT.match(target)
        return segment is not None and segment[1] in self._api


def _title(say: Language, status: int, retry_after_s: int | None) -> str:
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return say("problem.reload_in", seconds=retry_after_s)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return say("problem.busy")
    return say("problem.no_page")
