"""A program that passes its instruction on to another one, so that no instruction of the transaction shows it.

Its code is put together here, 71 instructions and the frame around them, for no compiler is at hand.
"""

from __future__ import annotations

import base64
import struct
from itertools import accumulate
from typing import Final

from solders.instruction import AccountMeta, Instruction
from solders.keypair import Keypair

FORWARDER: Final = Keypair.from_seed(b"\xf3" * 32).pubkey()
# From the end of the stack: accounts with their values, accounts as they are named, the instruction.
INFOS: Final = -1_200
NAMES: Final = -2_000
CALL: Final = -64
INFO_BYTES: Final = 56
NAME_BYTES: Final = 16
# In the program's input: of an account, its flags, address, owner, lamports, length and data, with room to grow.
SIGNER, WRITABLE, EXECUTABLE, KEY, OWNER, LAMPORTS, LENGTH, DATA = 1, 2, 3, 8, 40, 72, 80, 88
ROOM: Final = 10_240
SYSCALL: Final = b"sol_invoke_signed_c"
SECTIONS: Final = (".text", ".dynamic", ".dynsym", ".dynstr", ".rel.dyn", ".shstrtab")


def forwarded(call: Instruction, *, fails: bool = False) -> Instruction:
    """Return an instruction whose program makes the given one; fails: and undoes all of it at the end."""
    named = AccountMeta(call.program_id, is_signer=False, is_writable=False)
    return Instruction(FORWARDER, bytes([fails]) + bytes(call.data), [named, *call.accounts])


def forwarder_code() -> str:
    """Return the program, in base64."""
    return base64.b64encode(_framed(b"".join(_instructions()))).decode()


def _op(code: int, to: int = 0, of: int = 0, offset: int = 0, value: int = 0) -> bytes:
    return struct.pack("<BBhi", code, of << 4 | to, offset, value)


def _copy(to: int, of: int, plus: int = 0) -> list[bytes]:
    """Set a register to another and a number."""
    return [_op(0xBF, to, of), *([_op(0x07, to, value=plus)] if plus else [])]


def _load(to: int, of: int, offset: int = 0) -> bytes:
    return _op(0x79, to, of, offset)


def _store(to: int, offset: int, of: int) -> bytes:
    return _op(0x7B, to, of, offset)


def _pointer(to: int, offset: int, of: int, plus: int) -> list[bytes]:
    """Store the address of something at another."""
    return [*_copy(3, of, plus), _store(to, offset, 3)]


def _flag(place: int, info: int, name: int | None) -> list[bytes]:
    stores = [_op(0x73, 1, 3, info), *([_op(0x73, 2, 3, name)] if name is not None else [])]
    return [_op(0x71, 3, 6, place), *stores]


def _entry(to: int, size: int, start: int) -> list[bytes]:
    """Set a register to the place of the present account in a list on the stack."""
    return [_op(0xBF, to, 8), _op(0x27, to, value=size), _op(0x0F, to, 10), _op(0x07, to, value=start)]


def _instructions() -> list[bytes]:
    """Return the program. Registers: 6 the place in the input, 7 the number of accounts, 8 the present one."""
    one = [
        *_entry(1, INFO_BYTES, INFOS),
        *_entry(2, NAME_BYTES, NAMES),
        *_pointer(1, 0, 6, KEY),
        *_pointer(2, 0, 6, KEY),
        *_pointer(1, 8, 6, LAMPORTS),
        _load(4, 6, LENGTH),
        _store(1, 16, 4),
        *_pointer(1, 24, 6, DATA),
        *_pointer(1, 32, 6, OWNER),
        *_flag(SIGNER, 48, 9),
        *_flag(WRITABLE, 49, 8),
        *_flag(EXECUTABLE, 50, None),
        # The next account begins at a multiple of eight, behind the rent's epoch.
        _op(0x0F, 6, 4),
        _op(0x07, 6, value=DATA + ROOM + 7),
        _op(0x57, 6, value=-8),
        _load(3, 6),
        _store(1, 40, 3),
        _op(0x07, 6, value=8),
        _op(0x07, 8, value=1),
    ]
    loop = [_op(0x1D, 8, 7, len(one) + 1), *one, _op(0x05, offset=-len(one) - 2)]
    first = [*_copy(6, 1), _load(7, 6), _op(0x07, 6, value=8), _op(0xB7, 8)]
    return [*first, *loop, *_call()]


def _call() -> list[bytes]:
    """Return the part that calls the first account's program with the others; the first byte of data is the result."""
    return [
        _load(3, 6),
        _op(0x07, 3, value=-1),
        _store(10, CALL + 32, 3),
        _op(0x71, 9, 6, 8),
        *_pointer(10, CALL + 24, 6, 9),
        _load(3, 10, INFOS),
        _store(10, CALL, 3),
        *_pointer(10, CALL + 8, 10, NAMES + NAME_BYTES),
        *_pointer(10, CALL + 16, 7, -1),
        *_copy(1, 10, CALL),
        *_copy(2, 10, INFOS),
        *_copy(3, 7),
        _op(0xB7, 4),
        _op(0xB7, 5),
        _op(0x85, value=-1),
        *_copy(0, 9),
        _op(0x95),
    ]


def _framed(text: bytes) -> bytes:
    """Return the program in the form that a loader takes (ELF), with one call of the system to fill in."""
    name_at = {name: 1 + sum(len(one) + 1 for one in SECTIONS[:place]) for place, name in enumerate(SECTIONS)}
    names = _padded(b"\0" + b"".join(name.encode() + b"\0" for name in SECTIONS))
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x10, 0, 0, 0, 0)
    strings = _padded(b"\0" + SYSCALL + b"\0")
    sizes = [len(text), 7 * 16, len(symbols), len(strings), 16, len(names)]
    at = dict(zip(SECTIONS, accumulate(sizes[:-1], initial=64 + 3 * 56), strict=True))
    call_at = at[".text"] + len(text) - 3 * 8
    relocation = struct.pack("<QQ", call_at, 1 << 32 | 10)
    linked = struct.pack(
        "<14Q", 17, at[".rel.dyn"], 18, 16, 19, 16, 6, at[".dynsym"], 5, at[".dynstr"], 10, len(strings), 0, 0
    )
    contents = [text, linked, symbols, strings, relocation, names]
    # Of each section: its kind, flags, the section that it refers to, another, and the size of an entry.
    kinds = [(1, 6, 0, 0, 0), (6, 3, 4, 0, 16), (11, 2, 4, 1, 24), (3, 2, 0, 0, 0), (9, 2, 3, 0, 16), (3, 0, 0, 0, 0)]
    table = bytes(64) + b"".join(
        struct.pack("<IIQQQQIIQQ", name_at[name], kind, flags, at[name], at[name], size, link, other, 8, entry)
        for name, size, (kind, flags, link, other, entry) in zip(SECTIONS, sizes, kinds, strict=True)
    )
    segments = b"".join(
        struct.pack("<IIQQQQQQ", kind, flags, start, start, start, size, size, 8)
        for kind, flags, start, size in (
            (1, 5, at[".text"], len(text)),
            (1, 4, at[".dynamic"], sum(sizes[1:5])),
            (2, 4, at[".dynamic"], len(linked)),
        )
    )
    body = segments + b"".join(contents)
    head = struct.pack("<HHIQQQIHHHHHH", 3, 247, 1, at[".text"], 64, 64 + len(body), 0, 64, 56, 3, 64, 7, 6)
    return b"\x7fELF\2\1\1" + bytes(9) + head + body + table


def _padded(raw: bytes) -> bytes:
    """Return bytes filled up to a multiple of eight."""
    return raw.ljust(-(-len(raw) // 8) * 8, b"\0")
