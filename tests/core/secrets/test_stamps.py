from __future__ import annotations

import base64

import pytest

from core.secrets.stamps import Stamps

OLD = "old:" + base64.b64encode(b"o" * 32).decode()
NEW = "new:" + base64.b64encode(b"n" * 32).decode()
PARTS = (b"payouts", b"approve_payout", b'{"a":1}')
# Made by the first version that had stamps.
STAMPED = "old:3e7709ca5bda8e782e0220da24bc5ea271b9cd62bf8201a6dbc36182157acaac"
LONG_STAMPED = "old:a521809bf059746d87d6fefae504c4247ee5bf760878a7446c2a539826bbfc30"


def stamps(keys: str = OLD, purpose: str = "call") -> Stamps:
    return Stamps(keys, purpose=purpose)


def test_a_stamp_names_its_key_and_is_recognised() -> None:
    stamp = stamps().stamp(*PARTS)

    assert stamp.startswith("old:")
    assert stamps().is_genuine(stamp, *PARTS)


@pytest.mark.parametrize(
    "parts",
    [
        (b"payoutz", *PARTS[1:]),
        (PARTS[0], b"approve_payou", b't{"a":1}'),
        (b"", b"payoutsapprove_payout", PARTS[2]),
        (PARTS[1], PARTS[0], PARTS[2]),
        PARTS[:2],
        (*PARTS, b""),
        (b"".join(PARTS),),
    ],
)
def test_a_stamp_covers_each_part_and_the_bounds_between_them(parts: tuple[bytes, ...]) -> None:
    assert not stamps().is_genuine(stamps().stamp(*PARTS), *parts)


@pytest.mark.parametrize("stamp", ["", ":", "old", "old:", "old:00", "öld:ü", "new:" + "0" * 64, "old:" + "0" * 64])
def test_a_malformed_stamp_is_not_genuine(stamp: str) -> None:
    assert not stamps().is_genuine(stamp, *PARTS)


def test_a_stamp_with_one_changed_digit_is_not_genuine() -> None:
    stamp = stamps().stamp(*PARTS)
    for place in range(len("old:"), len(stamp)):
        other = stamp[:place] + ("0" if stamp[place] != "0" else "1") + stamp[place + 1 :]
        assert not stamps().is_genuine(other, *PARTS)


@pytest.mark.parametrize("length", [1, 1_990, 2_047, 2_048, 5_000])
def test_a_stamp_covers_every_byte_of_a_long_part(length: int) -> None:
    stamp = stamps().stamp(b"x" * length)
    for at in {0, length // 2, length - 1}:
        assert not stamps().is_genuine(stamp, b"x" * at + b"y" + b"x" * (length - at - 1))


def test_processes_of_different_versions_accept_each_others_stamps() -> None:
    assert stamps().is_genuine(STAMPED, *PARTS)
    assert stamps().is_genuine(LONG_STAMPED, b"answer", b"x" * 5_000)


def test_a_stamp_serves_one_purpose() -> None:
    assert not stamps().is_genuine(stamps(purpose="answer").stamp(*PARTS), *PARTS)


def test_the_first_key_stamps_and_every_key_checks() -> None:
    before, during, after = stamps(OLD), stamps(f"{NEW},{OLD}"), stamps(NEW)

    assert during.stamp(*PARTS).startswith("new:")
    assert during.is_genuine(before.stamp(*PARTS), *PARTS)
    assert after.is_genuine(during.stamp(*PARTS), *PARTS)
    assert not after.is_genuine(before.stamp(*PARTS), *PARTS)


def test_another_key_of_the_same_name_makes_another_stamp() -> None:
    renamed = "old:" + NEW.partition(":")[2]

    assert not stamps(renamed).is_genuine(stamps().stamp(*PARTS), *PARTS)
