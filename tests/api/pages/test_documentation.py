"""/docs: every guide and operation has its page, each link leads somewhere, samples are signed and in the language."""

from __future__ import annotations

import ast
import gzip
import html
import json
import os
import re
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest

from api.documentation import guides
from api.documentation.pages import Documentation, slug
from api.documentation.samples import SECRET, TIMESTAMP
from api.openapi.document import TAGS
from api.pages.pages import static_files
from api.routes import ENDPOINTS
from core.errors import ERRORS
from core.secrets.signing import sign_request
from devstack.servers.npm import find_node
from tests.api.conftest import Client, make_settings
from tests.sdk.fixtures import CACHE

NAMES = sorted(Documentation(make_settings(), static_files()).names())
WEIGHT_MAX = 60_000


class Links(HTMLParser):
    """Gathers what a page refers to, its anchors, and what it must not have."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.ids: list[str] = []
        self.tags: set[str] = set()
        self.styles: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.add(tag)
        self.targets += [target for name in ("href", "src") if (target := values.get(name))]
        self.ids += [values["id"] or ""] if "id" in values else []
        self.styles += [name for name in values if name == "style" or name.startswith("on")]


def read(text: str) -> Links:
    links = Links()
    links.feed(text)
    return links


@pytest.fixture
def page(client: Client) -> Callable[[str], str]:
    def get(name: str) -> str:
        answer = client.simulate_get(f"/docs/{name}" if name else "/docs", headers={"Accept-Encoding": "gzip"})
        assert answer.status_code == 200, name
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert len(answer.content) <= WEIGHT_MAX, name
        return gzip.decompress(answer.content).decode()

    return get


def test_every_page_is_light_leads_somewhere_and_runs_nothing(page: Callable[[str], str]) -> None:
    pages = {name: read(page(name)) for name in NAMES}
    addresses = {"/openapi.json", *(f"/docs/{name}" if name else "/docs" for name in NAMES)}
    addresses |= {f"/docs/{name}#{anchor}" for name, links in pages.items() for anchor in links.ids}

    for name, links in pages.items():
        own = [f"/docs/{name}{target}" if target.startswith("#") else target for target in links.targets]
        elsewhere = [target for target in own if not target.startswith(("/static/", "https://"))]
        assert [target for target in elsewhere if target not in addresses] == [], name
        assert "script" not in links.tags
        assert links.styles == []
        assert len({*links.ids}) == len(links.ids), name


def test_every_operation_error_and_guide_has_its_place(page: Callable[[str], str]) -> None:
    for tag in TAGS:
        if tag != "Events":
            text = page(slug(tag))
            ids = read(text).ids
            assert [e.name for e in ENDPOINTS if e.tag == tag and e.name not in ids] == []
    assert set(read(page("errors")).ids) >= set(ERRORS)
    assert {*guides.guides()} == {*guides.GUIDES}
    assert page("authentication").count(SECRET) >= 2


def test_the_samples_are_signed_and_can_be_run(page: Callable[[str], str]) -> None:
    scripts = []
    for tag in (tag for tag in TAGS if tag != "Events"):
        text = page(slug(tag))
        for curl in samples(text, "curl"):
            if "X-Signature" in curl:
                check_signature(curl)
        for sample in samples(text, "Python"):
            ast.parse(sample)
        scripts += samples(text, "Node")

    assert len(scripts) == len(ENDPOINTS)
    node = find_node(os.environ, CACHE)
    body = "\n".join(script.partition("\n\n")[2].replace("const sluice", "var sluice") for script in scripts)
    subprocess.run([node, "--input-type=module", "--check", "-"], input=f"let Sluice;\n{body}", text=True, check=True)


def samples(text: str, language: str) -> list[str]:
    texts = re.findall(rf"<summary>{language}</summary><pre tabindex=\"0\"><code>(.*?)</code>", text, re.DOTALL)
    return [html.unescape(sample) for sample in texts]


def check_signature(curl: str) -> None:
    signature = re.search(r"X-Signature: (\w+)", curl)
    target = re.search(r"^curl https://api\.sluice\.example(\S+)", curl)
    body = re.search(r"-d '?(.*?)'?$", curl, re.DOTALL)
    assert signature is not None
    assert target is not None
    sent = b"" if body is None else body[1].replace("'\"'\"'", "'").encode()
    assert signature[1] == sign_request(SECRET, TIMESTAMP, "POST", target[1], sent)


def test_a_page_is_known_by_its_etag_and_another_does_not_exist(client: Client) -> None:
    first = client.simulate_get("/docs")

    assert client.simulate_get("/docs", headers={"If-None-Match": first.headers["etag"]}).status_code == 304
    assert client.simulate_get("/docs/nothing").status_code == 404
    assert client.simulate_get("/docs/..%2Fbackup").status_code == 404
    assert client.simulate_get("/docs/backup").status_code == 404, "that one is for operators"
    assert client.simulate_post("/docs").status_code == 405


def test_guides_show_no_html_of_their_text_and_no_link_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(guides, "FOLDER", tmp_path)
    (tmp_path / "webhooks.md").write_text(
        "# A `title`\n\n<script>x</script> [a](backup.md) [b](refunds.md#how-it-ends) [c](javascript:x) [d](#a-title)\n"
    )
    guide = guides.Guide("webhooks")

    assert "<script" not in guide.html
    assert 'href="/docs/refunds#how-it-ends"' in guide.html
    assert "backup" not in guide.html
    assert 'href="javascript' not in guide.html
    assert '<h1 id="a-title">' in guide.html
    assert guides.guides() == ["webhooks"]


def test_examples_in_pages_are_json(page: Callable[[str], str]) -> None:
    text = page("events")
    bodies = [html.unescape(body) for body in re.findall(r"<pre tabindex=\"0\"><code>(.*?)</code>", text, re.DOTALL)]

    assert len(bodies) == 13
    assert all(json.loads(body)["type"] for body in bodies)
