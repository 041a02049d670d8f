"""Each page speaks the reader's language in every stage, and shows amounts, addresses and names as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any, Final

import pytest
from markupsafe import Markup

from api.pages import languages
from api.pages.languages import Language
from api.routes.invoices.pay import SELECT
from api.routes.payment_links.buyers import CHECKOUT
from api.routes.payout_links.claims import CLAIM
from core.errors import DomainError
from tests.api.conftest import Client
from tests.api.live import Live
from tests.api.pages.test_forms import limited, send
from tests.api.pages.test_page import BROWSER, OPEN, SCRIPT, STAGES, stage, words
from tests.api.routes.payment_links.rows import opened
from tests.api.routes.payout_links.rows import ANN, linked
from tests.api.rows import ADDRESS, add_invoice, add_merchant

pytestmark = pytest.mark.usefixtures("database")

CODES: Final = ["en", "ar", "de", "es", "ru", "zh"]
PAGES: Final = Path(languages.__file__).parent
# Errors that no reader of a page can cause, or mend.
NOT_A_READERS: Final = {
    "auth.body_read", "gateway.busy", "gateway.internal_error", "invoice.address_failed", "pay.bad_uuid",
    "pay.not_found", "paylink.bad_id", "paylink.disabled", "paylink.not_found", "payoutlink.not_found",
    "request.bad_content_type", "request.bad_json", "request.length_required", "request.not_found",
    "request.too_large",
}  # fmt: skip
# Beginnings of keys that the code puts together.
COMPOSED: Final = {"stage.seen_", "stage.arrived_", "address.", "script.", "error.", "language."}


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def test_the_six_languages_exist_and_english_is_the_first() -> None:
    assert list(languages.languages()) == CODES


@pytest.mark.parametrize("code", CODES[1:])
def test_a_language_has_every_text_with_the_same_places(code: str) -> None:
    english, other = languages.languages()["en"].texts, languages.languages()[code].texts

    assert set(other) == set(english)
    for key, text in other.items():
        assert text.strip() == text != "" or key == "words.list", key
        assert places(text) == places(english[key]), key


SCRIPTS: Final = [("ru", "[\u0400-\u04ff]"), ("zh", "[\u4e00-\u9fff]"), ("ar", "[\u0600-\u06ff]")]


@pytest.mark.parametrize(("code", "script"), SCRIPTS)
def test_a_language_is_written_in_its_script(code: str, script: str) -> None:
    for key, text in languages.languages()[code].texts.items():
        assert re.search(script, text) or key in {"language.direction", "words.list"}, key


@pytest.mark.parametrize("code", ["de", "es"])
def test_few_texts_are_the_same_as_in_english(code: str) -> None:
    english, other = languages.languages()["en"].texts, languages.languages()[code].texts
    same = {key for key, text in other.items() if text == english[key]}

    assert same <= {"language.direction", "words.list", "pay.coins", "pay.details", "script.days"}


def test_each_text_is_used() -> None:
    sources = "".join(file.read_text(encoding="utf-8") for file in _sources())
    unused = {key for key in languages.languages()["en"].texts if not any(each in sources for each in _spellings(key))}

    assert unused == set()


def _sources() -> Iterator[Path]:
    yield from PAGES.glob("*.py")
    yield from PAGES.glob("templates/*.html")


def _spellings(key: str) -> Iterator[str]:
    yield f'"{key}"'
    yield f"'{key}'"
    yield from ("" for part in COMPOSED if key.startswith(part))


@pytest.mark.parametrize("endpoint", [SELECT, CHECKOUT, CLAIM], ids=lambda endpoint: endpoint.name)
def test_each_error_that_a_reader_can_cause_has_a_text(endpoint: Any) -> None:
    errors: tuple[type[DomainError], ...] = endpoint.all_errors()
    texts = languages.languages()["en"].texts

    assert {error.code for error in errors if f"error.{error.code}" not in texts} <= NOT_A_READERS


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(("name", "columns", "deposits"), [row[:3] for row in STAGES])
def test_each_stage_is_shown_in_each_language(
    client: Client, code: str, name: str, columns: dict[str, object], deposits: list[dict[str, object]]
) -> None:
    english, text = stage(client, columns, *deposits), stage(client, columns, *deposits, lang=code)

    say = languages.languages()[code]
    assert f'<html lang="{code}" dir="{say.direction}"' in text
    assert f'data-stage="{name}"' in text
    assert set(numbers(text)) == set(numbers(english)), "amounts are written alike"
    if code != "en":
        assert heading(text) != heading(english)


def heading(text: str) -> str:
    shown = re.search(r'<h1 id="heading" tabindex="-1">([^<]+)<', text)
    assert shown is not None
    return shown[1]


def numbers(text: str) -> list[str]:
    """Return the amounts in coins on a page."""
    return re.findall(r"([0-9][0-9.,]*) (?:USDT|USDC|USD)\b", words(text))


ASKED: Final = [
    ("", "", "en"),
    ("", "de", "de"),
    ("", "de-AT,de;q=0.9,en;q=0.8", "de"),
    ("", "fr-FR, fr;q=0.9, es;q=0.3, ru;q=0.7", "ru"),
    ("", "zh-Hant-TW;q=1.0", "zh"),
    ("", "AR", "ar"),
    ("", "fr, *;q=0.5", "en"),
    ("", "de;q=0, es;q=0.1", "es"),
    ("", "de;q=x, \x00, es", "es"),
    ("", "en-GB,en;q=0.9,de;q=0.8", "en"),
    ("", ",".join(["xx"] * 30 + ["de"]), "en"),
    ("lang=es", "de", "es"),
    ("lang=ES", "", "es"),
    ("a=b&lang=ar&c=d", "de", "ar"),
    # No language of the pages: as if it were not there.
    ("lang=xx", "de", "de"),
    ("lang=", "de", "de"),
    ("lang=../en", "de", "de"),
    ("xlang=es", "de", "de"),
    ("lang=<script>", "", "en"),
    ("lang=" + "e" * 4096, "", "en"),
]


@pytest.mark.parametrize(("query", "accepted", "code"), ASKED)
def test_the_address_or_else_the_browser_chooses_the_language(
    client: Client, query: str, accepted: str, code: str
) -> None:
    headers = {"Accept-Language": accepted} if accepted else {}
    for path in (f"/pay/{add_invoice(add_merchant(), **OPEN)}", "/pay/x", "/link/x", "/claim/x", "/nothing"):
        answer = client.simulate_get(path, query_string=query, headers=BROWSER | headers)
        assert f'<html lang="{code}"' in answer.text
        assert answer.headers["content-language"] == code
        assert "Accept-Language" in answer.headers["vary"]
        assert "<script>" not in answer.text


def test_each_language_has_its_own_version_of_a_page(client: Client) -> None:
    path = f"/pay/{add_invoice(add_merchant(), **OPEN)}"
    tags = {client.simulate_get(path, query_string=f"lang={code}").headers["etag"] for code in CODES}

    assert len(tags) == len(CODES)


def test_a_form_keeps_the_language_that_was_chosen(live: Live) -> None:
    claim = f"/claim/{linked(live)['claim_token']}"
    path = f"/link/{opened(live, amount_mode='open')}"
    wrong = send(live, path, {"amount": ""}, query="lang=de")
    assert "Bitte geben Sie einen Betrag ein." in wrong.text
    made = send(live, path, {"amount": "12"}, query="lang=de&utm=1")
    assert made.status_code == 303
    assert made.headers["location"].endswith("?lang=de")
    page = made.headers["location"].partition("?")[0]
    assert send(live, page, {"method": "USDT:bsc"}, query="lang=xx").headers["location"] == page

    wrong = send(live, claim, {"step": "check", "address": "0x"}, query="lang=de")
    assert "keine gültige Ethereum-Adresse" in wrong.text
    sent = send(live, claim, {"step": "send", "address": ANN}, query="lang=ar")
    assert sent.headers["location"] == f"{claim}?lang=ar"
    assert "المال في الطريق" in live.client.simulate_get(claim, query_string="lang=ar").text


def test_the_steps_of_a_cheque_are_shown_in_each_language(live: Live) -> None:
    claim = f"/claim/{linked(live)['claim_token']}"
    seen: dict[str, str] = {}
    for code in CODES:
        first = live.client.simulate_get(claim, query_string=f"lang={code}").text
        second = send(live, claim, {"step": "check", "address": ANN}, query=f"lang={code}").text
        assert f'value="{ANN}"' in second
        assert heading(first) != heading(second)
        seen |= {heading(first): code, heading(second): code}
    assert len(seen) == 2 * len(CODES)


def test_values_keep_their_direction_and_are_never_markup() -> None:
    english, arabic = languages.languages()["en"], languages.languages()["ar"]

    assert english("stage.thanks", amount="5 USDT") == "Thank you. 5 USDT arrived."
    assert "\u20685 USDT\u2069" in arabic("stage.thanks", amount="5 USDT")
    for say in (english, arabic):
        mixed = say("claim.send_to", amount=Markup("<b>5</b>"), network=SCRIPT)
        assert isinstance(mixed, Markup)
        assert "<b>5</b>" in mixed
        assert "<script>" not in mixed
        assert say("link.pay", shop="{amount.__class__}").count("__class__") == 1


def test_an_address_is_shown_as_it_is_from_left_to_right(client: Client) -> None:
    path = f"/pay/{add_invoice(add_merchant(), **OPEN)}"
    text = client.simulate_get(path, query_string="lang=ar").text

    assert re.search(r'<p class="address" dir="ltr"><span class="away">العنوان</span> <code id="address"><b>0x', text)
    assert f'data-address="{ADDRESS}"' in text
    assert '<p class="amount"><bdi dir="ltr"><span id="amount">125</span> <span id="coin">USDT</span>' in text


def test_a_reader_may_change_the_language(client: Client) -> None:
    text = client.simulate_get(f"/pay/{add_invoice(add_merchant(), **OPEN)}", query_string="lang=ru").text

    links = re.findall(r'<a href="[?]lang=(..)" lang="(..)" hreflang="(..)"( aria-current="true")?>([^<]+)</a>', text)
    assert [link[0] for link in links] == CODES
    assert {link[:3] for link in links} == {(code, code, code) for code in CODES}
    assert [link[4] for link in links if link[3]] == ["Русский"]


def test_an_unknown_text_is_our_mistake() -> None:
    say = Language(code="en", texts={"language.direction": "ltr", "error.other": "Other."})

    with pytest.raises(KeyError):
        say("stage.nothing")
    assert say.error("nothing.at_all") == "Other."


def test_a_limit_is_explained_in_the_language(live: Live) -> None:
    narrow = limited(live, RATE_LIMIT_PUBLIC_MINUTE="1")
    for _ in range(2):
        answer = narrow.client.simulate_get("/pay/x", query_string="lang=de", headers=BROWSER)

    assert answer.status_code == 429
    assert answer.headers["content-language"] == "de"
    assert re.search(r"Bitte laden Sie diese Seite in [0-9]+ s neu[.]", answer.text)
