"""Writes output descriptors, by which wallets and nodes watch our addresses and can sign for none. Called by keys.

As BIP-380 has them: where the key comes from, the account's public key, and a checksum.
"""

from typing import Any, Final

# The letters that a descriptor may have, and those of its checksum.
_LETTERS: Final = "0123456789()[],'/*abcdefgh@:$%{}IJKLMNOPQRSTUVWXYZ&+-.;<=>?!^_|~ijklmnopqrstuvwxyzABCDEFGH`#\"\\ "
_CHECKSUM_LETTERS: Final = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_CHECKSUM_SIZE: Final = 8
_GENERATORS: Final = (0xF5DEE51989, 0xA9FDCA3312, 0x1BAB10E32D, 0x3706B1677A, 0x644D626FFD)


def account_descriptor(root: Any, path: str, version: bytes) -> str:
    """Return what watches the receiving addresses of an account. path: to it, from m on; version: of public keys."""
    public = root.derive(path).to_public().to_base58(version)
    origin = f"{root.my_fingerprint.hex()}{path.removeprefix('m')}"
    text = f"wpkh([{origin}]{public}/0/*)"
    return f"{text}#{checksum(text)}"


def checksum(text: str) -> str:
    """Return the eight letters that find a slip of the hand. ValueError for a letter that no descriptor has."""
    symbols: list[int] = []
    groups: list[int] = []
    for letter in text:
        place = _LETTERS.index(letter)
        symbols.append(place & 31)
        groups.append(place >> 5)
        if len(groups) == 3:  # noqa: PLR2004 - three thirds make one symbol
            symbols.append(groups[0] * 9 + groups[1] * 3 + groups[2])
            groups.clear()
    if groups:
        symbols.append(groups[0] if len(groups) == 1 else groups[0] * 3 + groups[1])
    check = _polymod([*symbols, *[0] * _CHECKSUM_SIZE]) ^ 1
    return "".join(_CHECKSUM_LETTERS[check >> 5 * place & 31] for place in reversed(range(_CHECKSUM_SIZE)))


def _polymod(symbols: list[int]) -> int:
    check = 1
    for symbol in symbols:
        top = check >> 35
        check = (check & 0x7FFFFFFFF) << 5 ^ symbol
        for place, generator in enumerate(_GENERATORS):
            check ^= generator if top >> place & 1 else 0
    return check
