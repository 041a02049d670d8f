"""A sealed secret opens only with its key and for its row."""

import base64

import pytest

from core.secrets.secretbox import SecretBox, SecretBoxError, SecretKeysError, parse_secret_keys

OLD = "old:" + base64.b64encode(b"o" * 32).decode()
NEW = "new:" + base64.b64encode(b"n" * 32).decode()


def test_a_sealed_secret_opens() -> None:
    box = SecretBox(NEW)
    assert box.open(box.seal("sk_grüß".encode(), bound_to="api_key:1"), bound_to="api_key:1") == "sk_grüß".encode()


def test_the_first_key_seals_and_names_itself() -> None:
    assert SecretBox(f"{NEW},{OLD}").seal(b"s", bound_to="r").startswith("new:")


def test_a_box_of_a_rotated_key_still_opens() -> None:
    sealed = SecretBox(OLD).seal(b"s", bound_to="r")
    assert SecretBox(f"{NEW}, {OLD}").open(sealed, bound_to="r") == b"s"


def test_a_box_of_a_dropped_key_does_not_open() -> None:
    with pytest.raises(SecretBoxError):
        SecretBox(NEW).open(SecretBox(OLD).seal(b"s", bound_to="r"), bound_to="r")


def test_a_box_does_not_open_for_another_row() -> None:
    box = SecretBox(NEW)
    with pytest.raises(SecretBoxError):
        box.open(box.seal(b"s", bound_to="api_key:1"), bound_to="api_key:2")


def test_sealing_twice_gives_two_boxes() -> None:
    box = SecretBox(NEW)
    assert box.seal(b"s", bound_to="r") != box.seal(b"s", bound_to="r")


def test_a_box_with_one_changed_bit_does_not_open() -> None:
    box = SecretBox(NEW)
    raw = bytearray(base64.b64decode(box.seal(b"secret", bound_to="r").removeprefix("new:")))
    for position in range(len(raw)):
        changed = bytearray(raw)
        changed[position] ^= 1
        with pytest.raises(SecretBoxError):
            box.open("new:" + base64.b64encode(changed).decode(), bound_to="r")


@pytest.mark.parametrize("box", ["", "new:", "new:%%%", "new:AAAA", "new", ":AAAA", "new:ÄÄÄÄ"])
def test_a_malformed_box_does_not_open(box: str) -> None:
    with pytest.raises(SecretBoxError):
        SecretBox(NEW).open(box, bound_to="r")


@pytest.mark.parametrize(
    "text",
    ["", ",", "nokey", ":" + NEW.partition(":")[2], "a b:" + NEW.partition(":")[2], "k:", "k:AAAA", "k:!!!", "k:ÄÖ",
     NEW[:10] + "!" + NEW[10:],
     f"{NEW},{NEW}", f"{NEW},"],
)  # fmt: skip
def test_malformed_keys_are_refused(text: str) -> None:
    with pytest.raises(SecretKeysError):
        parse_secret_keys(text)


def test_the_refusal_of_a_key_does_not_show_it() -> None:
    with pytest.raises(SecretKeysError) as refused:
        parse_secret_keys("k:dG9wc2VjcmV0")
    assert "dG9wc2VjcmV0" not in str(refused.value)
    assert "topsecret" not in str(refused.value)
