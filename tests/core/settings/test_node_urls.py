"""Reads a node's URL and credentials strictly, and shows neither in messages."""

import base64

import pytest

from core.settings.node_urls import read_node_url
from core.settings.settings import SettingsError, load_settings
from tests.core.settings.test_settings import DEVELOPMENT, PRODUCTION

REFUSED = [
    "ftp://node.example",
    "node.example",
    "https://",
    "https://node.example:0",
    "https://node.example:hunter2hunter2",
    "https://[hunter2hunter2/",
    "https://@node.example",
    "https://hunter2%3Ahunter2:x@node.example",
    "https://u:hunter2%0D%0Ahunter2@node.example",
    "https://u:hunter2hunter2%FF@node.example",
    "https://node.example#hunter2hunter2",
    "https://node.example#=hunter2hunter2",
    "https://node.example#X%20Key=hunter2hunter2",
    "https://node.example#X-Key=",
    "https://node.example#X-Key=hunter2%0D%0AX-Other:hunter2",
    "https://node.example#X-Key=hunter2hunter2%FF",
    "https://node.example#X-Key=hunter2%C3%A4hunter2",
    "https://node.example#X-Key=%20hunter2hunter2",
    "https://node.example#X-Key=" + "hunter2" * 1000,
    "https://node.example#Host=hunter2hunter2",
    "https://node.example#content-length=10",
    "https://u:hunter2hunter2@node.example#authorization=Bearer%20hunter2hunter2",
]


def basic(text: str) -> tuple[tuple[str, str], ...]:
    return (("Authorization", "Basic " + base64.b64encode(text.encode()).decode()),)


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        ("https://node.example", ()),
        ("https://user:pass@node.example", basic("user:pass")),
        ("https://user@node.example", basic("user:")),
        ("https://us%40er:p%3Aa%2Css%25@node.example", basic("us@er:p:a,ss%")),
        ("https://user:p@ss@node.example", basic("user:p@ss")),
        ("https://:pass@node.example", basic(":pass")),
        ("https://j%C3%BCrgen:pass@node.example", basic("jürgen:pass")),
        ("https://node.example#X-Api-Key=a%2Cb=c/d==", (("X-Api-Key", "a,b=c/d=="),)),
        ("https://node.example#Authorization=Bearer%20abc", (("Authorization", "Bearer abc"),)),
        ("https://u:p@node.example#X-Key=k", (*basic("u:p"), ("X-Key", "k"))),
    ],
)
def test_credentials_become_headers(text: str, headers: tuple[tuple[str, str], ...]) -> None:
    assert read_node_url(text).headers == headers
    assert read_node_url(text).address == "https://node.example"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("HTTPS://U:P@Node.Example:443/", "https://node.example"),
        ("http://node.example:80", "http://node.example"),
        ("http://node.example:443/", "http://node.example:443"),
        ("https://node.example:8545/V2/Key/#X-Key=k/", "https://node.example:8545/V2/Key"),
        ("https://node.example?key=a/", "https://node.example/?key=a/"),
        ("http://[::1]:8545/", "http://[::1]:8545"),
    ],
)
def test_an_address_is_read_into_one_form(text: str, address: str) -> None:
    assert read_node_url(text).address == address


@pytest.mark.parametrize("text", REFUSED)
def test_a_malformed_url_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(ValueError, match=r"^must ") as caught:
        read_node_url(text)

    assert "hunter2" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("text", REFUSED)
def test_the_start_fails_at_a_malformed_url_without_repeating_it(text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings({**DEVELOPMENT, "BSC_RPC_URLS": f"https://other.example,{text}"})

    assert str(caught.value).splitlines()[1].startswith("  BSC_RPC_URLS: must ")
    assert "hunter2" not in str(caught.value)


def test_credentials_are_not_printed() -> None:
    url = "https://user:hunter2hunter2@node.example/v2/path-key#X-Key=header-key"
    shown = repr(read_node_url(url)) + repr(load_settings({**DEVELOPMENT, "BSC_RPC_URLS": url}))

    assert [word for word in ("hunter2", "path-key", "header-key") if word in shown] == []


def test_settings_keep_a_url_as_written() -> None:
    url = "https://user:p%2Cw@node.example/x#X-Key=a%2Cb/"
    assert load_settings({**DEVELOPMENT, "BSC_RPC_URLS": f" {url} , https://b"}).rpc_urls["bsc"] == (url, "https://b")


def test_one_provider_with_two_keys_counts_once() -> None:
    twice = "https://a:b@node.example/#X-Key=k, https://NODE.example"
    with pytest.raises(SettingsError, match="BSC_RPC_URLS: one provider alone needs SINGLE_PROVIDER_OK=1"):
        load_settings({**PRODUCTION, "BSC_RPC_URLS": twice})

    assert load_settings({**PRODUCTION, "BSC_RPC_URLS": f"{twice}/2"}).rpc_urls
