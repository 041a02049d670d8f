"""`sluice secrets new` prints a key that the settings take, another at each call."""

from core.secrets.secretbox import SecretBox, parse_secret_keys
from tests.cli.conftest import CommandLine


def test_a_new_key_seals_and_opens_and_is_another_each_time(sluice: CommandLine) -> None:
    sluice.env.clear()
    first, second = sluice("secrets", "new").out.strip(), sluice("secrets", "new", "--json").json["entry"]

    ((_, one),), ((_, other),) = parse_secret_keys(first).items(), parse_secret_keys(second).items()
    assert one != other
    box = SecretBox(first)
    assert box.open(box.seal(b"secret", bound_to="x"), bound_to="x") == b"secret"
