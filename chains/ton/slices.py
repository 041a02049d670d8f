"""Writes bits and references into a cell, and reads them in order. Used by the other modules of chains.ton.

Addresses are in the stored form of core.addresses.ton.
"""

from typing import Final, Self

from chains.ton.cells import BITS_MAX, REFS_MAX, Cell, CellError

NO_ADDRESS: Final = ""
"""The address of a message that names no account of the chain."""
COINS_BYTES_MAX: Final = 15
ACCOUNT_BITS: Final = 256

_BYTE: Final = 8
_STANDARD: Final = 0b100
_STANDARD_BITS: Final = 3 + 8 + ACCOUNT_BITS
_EXTERNAL: Final = 0b01
_EXTERNAL_LENGTH_BITS: Final = 9
_TEXT_BYTES: Final = BITS_MAX // _BYTE


class Builder:
    """Collects the bits and references of one cell. Every method raises CellError beyond a cell's limits."""

    __slots__ = ("_bits", "_refs", "_value")

    def __init__(self) -> None:
        self._value, self._bits = 0, 0
        self._refs = list[Cell]()

    @property
    def free_bits(self) -> int:
        """Return the number of bits that still fit."""
        return BITS_MAX - self._bits

    def uint(self, value: int, bits: int) -> Self:
        """Add an unsigned number. Raises ValueError if it does not fit into its bits."""
        if value < 0 or value >> bits:
            raise ValueError(f"{value} does not fit into {bits} bits")
        if bits > self.free_bits:
            raise CellError("a cell has no room for these bits")
        self._value, self._bits = self._value << bits | value, self._bits + bits
        return self

    def bit(self, value: bool | int) -> Self:  # noqa: FBT001 - the bit itself
        """Add a bit."""
        return self.uint(int(value), 1)

    def raw(self, data: bytes) -> Self:
        """Add whole bytes."""
        return self.uint(int.from_bytes(data, "big"), len(data) * _BYTE)

    def coins(self, units: int) -> Self:
        """Add an amount. Raises ValueError if it is negative or has more than 15 bytes."""
        size = (units.bit_length() + 7) // _BYTE
        return self.uint(size, 4).uint(units, size * _BYTE)

    def address(self, address: str) -> Self:
        """Add an address in its stored form, or NO_ADDRESS."""
        if address == NO_ADDRESS:
            return self.uint(0, 2)
        workchain, _, account = address.partition(":")
        return self.uint(_STANDARD, 3).raw(int(workchain).to_bytes(1, "big", signed=True) + bytes.fromhex(account))

    def ref(self, cell: Cell) -> Self:
        """Add a reference."""
        if len(self._refs) == REFS_MAX:
            raise CellError("a cell has no room for this reference")
        self._refs.append(cell)
        return self

    def optional(self, cell: Cell | None) -> Self:
        """Add a bit that says whether there is a reference, and the reference."""
        return self.bit(0) if cell is None else self.bit(1).ref(cell)

    def cells(self, cell: Cell) -> Self:
        """Add the bits and references of an ordinary cell."""
        if cell.is_exotic:
            raise CellError("an exotic cell has no bits to copy")
        bits = int.from_bytes(cell.data, "big") >> len(cell.data) * _BYTE - cell.bits
        self.uint(bits, cell.bits)
        for ref in cell.refs:
            self.ref(ref)
        return self

    def text(self, data: bytes) -> Self:
        """Add bytes, of which those that do not fit go on in a reference, and so on."""
        room = self.free_bits // _BYTE
        rest = None
        # From the end on: a text may be as long as a tree is deep, which no recursion is.
        for at in reversed(range(room, len(data), _TEXT_BYTES)):
            part = Builder().raw(data[at : at + _TEXT_BYTES])
            rest = (part if rest is None else part.ref(rest)).end()
        self.raw(data[:room])
        return self if rest is None else self.ref(rest)

    def end(self) -> Cell:
        """Return the cell."""
        spare = -self._bits % _BYTE
        value = (self._value << spare) | (1 << spare >> 1)
        return Cell(value.to_bytes((self._bits + spare) // _BYTE, "big"), self._bits, tuple(self._refs))


class Slice:
    """Reads a cell in order. Every method raises CellError if the cell ends too early."""

    __slots__ = ("_bits", "_refs", "_value")

    def __init__(self, cell: Cell) -> None:
        """Begin at the start. Raises CellError for an exotic cell, which has no bits to read."""
        if cell.is_exotic:
            raise CellError("an exotic cell where an ordinary one belongs")
        self._bits = cell.bits
        # The bits that complete the last byte are cut off.
        self._value = int.from_bytes(cell.data, "big") >> len(cell.data) * _BYTE - cell.bits
        self._refs = cell.refs

    @property
    def bits(self) -> int:
        """Return the number of bits that are left."""
        return self._bits

    @property
    def refs(self) -> int:
        """Return the number of references that are left."""
        return len(self._refs)

    def uint(self, bits: int) -> int:
        """Read an unsigned number."""
        left = self._bits - bits
        if left < 0:
            raise CellError("a cell ends too early")
        value = self._value >> left
        self._value ^= value << left
        self._bits = left
        return value

    def signed(self, bits: int) -> int:
        """Read a signed number."""
        value = self.uint(bits)
        return value - (1 << bits) if value >> bits - 1 else value

    def bit(self) -> bool:
        """Read a bit."""
        return self.uint(1) == 1

    def raw(self, size: int) -> bytes:
        """Read whole bytes."""
        return self.uint(size * _BYTE).to_bytes(size, "big")

    def sized(self, length_bits: int) -> int:
        """Read an unsigned number that follows its size in bytes. Raises CellError if the size is not the least."""
        size = self.uint(length_bits)
        value = self.uint(size * _BYTE)
        if size and not value >> (size - 1) * _BYTE:
            raise CellError("a number is longer than it has to be")
        return value

    def coins(self) -> int:
        """Read an amount."""
        return self.sized(4)

    def address(self) -> str:
        """Read an account's address in its stored form; NO_ADDRESS if it is not on the chain.

        Raises CellError for forms that the chain no longer has: parts of accounts, and those of variable length.
        """
        kind = self.uint(2)
        if kind == 0:
            return NO_ADDRESS
        if kind == _EXTERNAL:
            self.uint(self.uint(_EXTERNAL_LENGTH_BITS))
            return NO_ADDRESS
        if kind << 1 | self.uint(1) != _STANDARD:
            raise CellError("an address of a form that no account has")
        return f"{self.signed(8)}:{self.uint(ACCOUNT_BITS):064x}"

    def ref(self) -> Cell:
        """Read a reference."""
        if not self._refs:
            raise CellError("a cell has too few references")
        cell, self._refs = self._refs[0], self._refs[1:]
        return cell

    def optional(self) -> Cell | None:
        """Read a bit that says whether there is a reference, and the reference."""
        return self.ref() if self.bit() else None

    def rest(self) -> Cell:
        """Read all that is left, as a cell."""
        bits = self._bits
        builder = Builder().uint(self.uint(bits), bits)
        while self._refs:
            builder.ref(self.ref())
        return builder.end()

    def end(self) -> None:
        """Raise CellError if anything is left."""
        if self._bits or self._refs:
            raise CellError("a cell holds more than it should")


def text_of(rest: Slice) -> bytes:
    """Return the bytes that Builder.text wrote. Raises CellError if they end within a byte or branch."""
    parts = list[bytes]()
    while True:
        if rest.bits % _BYTE or rest.refs > 1:
            raise CellError("a text of another form")
        parts.append(rest.raw(rest.bits // _BYTE))
        if not rest.refs:
            return b"".join(parts)
        rest = Slice(rest.ref())
