"""Cells and their bytes: trees that other programs wrote, and hostile ones."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chains.ton import boc
from chains.ton.boc import CELLS_MAX
from chains.ton.cells import BITS_MAX, DEPTH_MAX, PRUNED, Cell, CellError
from chains.ton.slices import Builder, Slice, text_of

# Trees as @ton/core 0.63.1 writes them, except the last, which is pytoniq-core's: bytes and hash.
PUBLISHED = {
    "tree": (
        "b5ee9c72410104010012000201b001030106abcdef02000303c00001c0f0a34973",
        "258fc605424d1bad9b6f72206f8d7e40678733c1b8b30a18f647130ac21f969f",
    ),
    "library": (
        "b5ee9c7241010101002300084202adafed346b831de27b038f4c9581ee3d531bfa7da2373a908884847b69fd60ac46ae84da",
        "c3d048f95d7665dd697d2d216447d02557c9d8c84cd4f1310e9a2f4c3e8a867e",
    ),
    "proof": (
        "b5ee9c7241010501005700010001094603258fc605424d1bad9b6f72206f8d7e40678733c1b8b30a18f647130ac21f969f000202"
        "2201b0030428480101adafed346b831de27b038f4c9581ee3d531bfa7da2373a908884847b69fd60ac00010001c0ba68a810",
        "441a73b689bf6ce92ccb772ced3937495b21c5836ae5a78f53ada08af1a876f8",
    ),
    "update": (
        "b5ee9c72410108010089000100010a8a04258fc605424d1bad9b6f72206f8d7e40678733c1b8b30a18f647130ac21f969f258fc6"
        "05424d1bad9b6f72206f8d7e40678733c1b8b30a18f647130ac21f969f0002000202042201b0030728480101adafed346b831de2"
        "7b038f4c9581ee3d531bfa7da2373a908884847b69fd60ac00010201b005070106abcdef06000303c00001c0e105057e",
        "a8d9413262ef0938d9aaf6512299efde73aa7b54f29d865c7627450a9bebbeed",
    ),
    "two": (
        "b5ee9c724101070100c70001000109460373b47be2522446e33633830d9616950828c2cfeefe6fd2dfcf164bfd784dd0f8000802"
        "2202020306294603ec63562d55c169af7cad5d0ed5c29073484dd2e71470b8b67c8fac377f17097e0002046201030506688c0103"
        "adafed346b831de27b038f4c9581ee3d531bfa7da2373a908884847b69fd60acbca3645cec977c7185fbaee88db27bdea83e2056"
        "89d9d7dae0d4928b5c2dd4670001000528480101adafed346b831de27b038f4c9581ee3d531bfa7da2373a908884847b69fd60ac"
        "0001d4b42a5d",
        "41865f98a9ddce4204d85fa190ce27bc21ab09e3412fbb5eec951790b25317a4",
    ),
    "second": (
        "b5ee9c7201010601007d0001000109460345ad82efe8912c84284dd44ba14d62693fb46517df20dfcedb6af821350b2041000402"
        "21020203294603becd1db860f6a29e89b6a89f381bbff323203ff44f92ca394c9bf66d638416ca0002044101030548480102adaf"
        "ed346b831de27b038f4c9581ee3d531bfa7da2373a908884847b69fd60ac0001",
        "22098c924debe8ce716c630f3385c0df6f1817a963e294e7a9014ada162740ab",
    ),
}
# The same tree as @ton/core 0.63.1 writes it with an index and without a checksum.
INDEXED = "b5ee9c7281010401001200050b0f120201b001030106abcdef02000303c00001c0"
LEAF = Builder().uint(0xABCDEF, 24).ref(Builder().uint(7, 9).end()).end()
EMPTY = Builder().end()


@st.composite
def trees(draw: st.DrawFn, depth: int = 3) -> Cell:
    bits = draw(st.integers(0, BITS_MAX))
    builder = Builder().uint(draw(st.integers(0, (1 << bits) - 1)), bits)
    for _ in range(draw(st.integers(0, 4 if depth else 0))):
        builder.ref(draw(trees(depth=depth - 1)))
    return builder.end()


def chain(length: int) -> Cell:
    cell = EMPTY
    for _ in range(length):
        cell = Builder().ref(cell).end()
    return cell


def pruned(mask: int, *replaced: Cell) -> Cell:
    data = bytes((PRUNED, mask)) + b"".join(cell.hash for cell in replaced)
    data += b"".join(cell.depth.to_bytes(2, "big") for cell in replaced)
    return Cell(data, len(data) * 8, is_exotic=True)


def bag(*cells: str, roots: str = "00", size: int = 1, flags: int = 0, counts: str = "") -> bytes:
    """Return bytes with these cells, as they are written, and one root."""
    body = bytes.fromhex("".join(cells))
    head = bytes.fromhex("b5ee9c72") + bytes((flags | size, 2))
    head += bytes.fromhex(counts) if counts else b"".join(n.to_bytes(size, "big") for n in (len(cells), 1, 0))
    return head + len(body).to_bytes(2, "big") + bytes.fromhex(roots) + body


@pytest.mark.parametrize("name", PUBLISHED)
def test_trees_of_other_programs_are_read_with_their_hashes(name: str) -> None:
    raw, hashed = PUBLISHED[name]
    cell = boc.read(bytes.fromhex(raw))

    assert (cell.hash.hex(), cell.mask) == (hashed, 0)
    assert boc.read(boc.write(cell)) == cell
    assert boc.read_base64(boc.write_base64(cell)) == cell


def test_a_tree_is_written_as_another_program_writes_it() -> None:
    tree = Builder().uint(5, 3).ref(LEAF).ref(Builder().bit(1).end()).end()

    assert (tree.hash.hex(), tree.depth) == (PUBLISHED["tree"][1], 2)
    assert boc.read(bytes.fromhex(INDEXED)) == tree == boc.read(boc.write(tree))
    assert repr(tree) == f"Cell({PUBLISHED['tree'][1]})"


def test_the_cell_of_a_code_in_a_library_has_its_published_hash() -> None:
    # The wallet's code of USDT, and its hash as a public index names it.
    code = boc.read_base64("te6cckEBAQEAIwAIQgKPRS16Tf10BmtoI2UXclntBXNENb52tf1L1divK3w9aCBrv3Y=")

    assert (code.is_exotic, code.bits, code.depth) == (True, 264, 0)
    assert code.hash.hex() == "89468f02c78e570802e39979c8516fc38df07ea76a48357e0536f2ba7b3ee37b"


@settings(max_examples=60)
@given(trees())
def test_every_tree_is_read_as_it_was_written(tree: Cell) -> None:
    assert boc.read(boc.write(tree)) == tree


@settings(max_examples=300)
@given(st.binary(max_size=120))
def test_rubbish_is_refused(rubbish: bytes) -> None:
    for raw in (rubbish, bytes.fromhex("b5ee9c72") + rubbish):
        with pytest.raises(CellError):
            boc.read(raw)


@settings(max_examples=300)
@given(st.sampled_from(sorted(PUBLISHED)), st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_byte_is_another_tree_or_none(name: str, place: int, change: int) -> None:
    raw, hashed = PUBLISHED[name]
    changed = bytearray.fromhex(raw)
    changed[place % len(changed)] ^= change
    try:
        cell = boc.read(bytes(changed))
    except CellError:
        return
    assert cell.hash.hex() != hashed or not raw.startswith("b5ee9c7241")


@pytest.mark.parametrize("length", range(33))
def test_bytes_cut_short_are_refused(length: int) -> None:
    with pytest.raises(CellError):
        boc.read(bytes.fromhex(INDEXED)[:length])


def test_bytes_after_the_end_are_refused() -> None:
    for raw in (bytes.fromhex(INDEXED), bytes.fromhex(PUBLISHED["tree"][0])):
        with pytest.raises(CellError, match="too long"):
            boc.read(raw + b"\0")


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (bag("010001", "0000"), None),
        (bag("0102ff01", "0000"), None),
        # A circle of one, a circle of two, and a reference to nothing.
        (bag("010000"), "earlier one"),
        (bag("010001", "010000"), "earlier one"),
        (bag("010007", "0000"), "earlier one"),
        (bag("0500" + "01" * 5, "0000"), "too many references"),
        (bag("0600" + "01" * 6, "0000"), "too many references"),
        # A cell that is absent, as its first byte says.
        (bag("1700" + "00" * 34 + "01" * 7, "0000"), "too many references"),
        (bag("0001ff", "0000"), None),
        (bag("000180", "0000"), "longer than it has to be"),
        (bag("000100", "0000"), "longer than it has to be"),
        (bag("2000"), "another level"),
        (bag("000a00"), "cut short"),
        (bag("00"), "count wrongly"),
        (bag("0000", "00"), "count wrongly"),
        (bag("0000", roots="01"), "count wrongly"),
        (bag("0000", "0000", counts="020200"), "count wrongly"),
        (bag("0000", counts="010101"), "count wrongly"),
        (bag("0000", counts="000100"), "count wrongly"),
        (bag("0000", counts="ff0100"), "count wrongly"),
        (bag("0000", "0000", counts="010100"), "too long"),
        (bag("0000", flags=0x08), "impossible header"),
        (bag("0000", flags=0x10), "impossible header"),
        (bag("0000", size=0, counts="00"), "impossible header"),
        (bag("0000", size=5), "impossible header"),
        (bag("0800"), "no exotic cell"),
        (bag("080205"), "no exotic cell"),
        (bag("080202"), "no exotic cell"),
        (bag("080201"), "pruned branch"),
    ],
)
def test_forms_that_no_node_writes_are_refused(raw: bytes, problem: str | None) -> None:
    if problem is None:
        assert boc.read(raw)
        return
    with pytest.raises(CellError, match=problem):
        boc.read(raw)


def test_an_index_and_a_checksum_have_to_fit() -> None:
    with pytest.raises(CellError, match="index"):
        boc.read(bytes.fromhex(INDEXED.replace("050b0f12", "050b1012")))
    # Cache bits shift each offset by one.
    cached = INDEXED.replace("c7281", "c72a1").replace("050b0f12", "0a161e24")
    assert boc.read(bytes.fromhex(cached)) == boc.read(bytes.fromhex(INDEXED))
    with pytest.raises(CellError, match="checksum"):
        boc.read(bytes.fromhex(PUBLISHED["tree"][0][:-2] + "00"))


def test_the_checksum_is_the_published_one() -> None:
    # RFC 3720, appendix B.4.
    assert boc.checksum(bytes(32)) == 0x8A9136AA
    assert boc.checksum(bytes(range(32))) == 0x46DD794E
    assert boc.checksum(b"123456789") == 0xE3069283


@pytest.mark.parametrize("named", [LEAF.hash + b"\0\1", LEAF.hash + b"\0\2", bytes(32) + b"\0\1"])
def test_hashes_that_bytes_bring_have_to_be_right(named: bytes) -> None:
    raw = bag("1106" + named.hex() + "abcdef01", "0003" + "03c0")
    if named == LEAF.hash + b"\0\1":
        assert boc.read(raw) == LEAF
        return
    with pytest.raises(CellError, match="another hash"):
        boc.read(raw)


def test_a_root_that_is_a_part_of_a_proof_is_refused() -> None:
    part = Builder().ref(pruned(1, LEAF)).end()
    assert (part.mask, part.at(0)[0]) == (1, Builder().ref(LEAF).end().hash)
    with pytest.raises(CellError, match="part of a proof"):
        boc.read(boc.write(part))


def test_exotic_cells_that_break_their_rules_are_refused() -> None:
    other = Builder().uint(1, 8).end()
    proved = bytes((3,)) + LEAF.hash + LEAF.depth.to_bytes(2, "big")
    both = bytes((4,)) + 2 * LEAF.hash + 2 * LEAF.depth.to_bytes(2, "big")
    assert Cell(proved, 280, (LEAF,), is_exotic=True).mask == 0
    assert Cell(both, 552, (LEAF, LEAF), is_exotic=True).mask == 0
    for data, refs in [(proved, (other,)), (both, (LEAF, other)), (both, (other, LEAF)), (proved, (LEAF, LEAF))]:
        with pytest.raises(CellError):
            Cell(data, len(data) * 8, refs, is_exotic=True)
    for mask, replaced in [(0, ()), (8, (LEAF,)), (3, (LEAF,)), (1, (LEAF, LEAF))]:
        with pytest.raises(CellError, match="pruned"):
            pruned(mask, *replaced)
    with pytest.raises(CellError, match="pruned"):
        Cell(bytes((1, 1)) + bytes(34), 288, (LEAF,), is_exotic=True)


def test_trees_too_deep_are_refused() -> None:
    assert boc.read(boc.write(chain(DEPTH_MAX))).depth == DEPTH_MAX
    with pytest.raises(CellError, match="too deep"):
        chain(DEPTH_MAX + 1)
    high = pruned(1, LEAF)
    for _ in range(DEPTH_MAX - 1):
        high = Builder().ref(high).end()
    with pytest.raises(CellError, match="too deep"):
        Builder().ref(high).end()


def test_a_tree_that_shares_its_branches_is_read_in_no_time() -> None:
    cell = EMPTY
    for _ in range(500):
        cell = Builder().ref(cell).ref(cell).ref(cell).ref(cell).end()

    raw = boc.write(cell)
    assert (len(raw) < 6_000, boc.read(raw)) == (True, cell)


def test_more_bytes_or_cells_than_any_message_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    many = (CELLS_MAX + 1).to_bytes(3, "big").hex()
    body = bytes(2 * (CELLS_MAX + 1))
    raw = bytes.fromhex("b5ee9c720303" + many + "000001" + "000000") + len(body).to_bytes(3, "big") + bytes(3) + body
    with pytest.raises(CellError, match="count wrongly"):
        boc.read(raw)
    monkeypatch.setattr(boc, "BYTES_MAX", len(INDEXED) // 2)
    assert boc.read(bytes.fromhex(INDEXED)).depth == 2
    monkeypatch.setattr(boc, "BYTES_MAX", len(INDEXED) // 2 - 1)
    with pytest.raises(CellError, match="more bytes"):
        boc.read(bytes.fromhex(INDEXED))


@pytest.mark.parametrize(
    "text", ["te6c", "te6ccgEBAQEAAgAAAA=", "te6ccgEBAQEAAgAAAA==!", "té", " te6ccgEBAQEAAgAAAA=="]
)
def test_texts_that_are_no_cells_are_refused(text: str) -> None:
    assert boc.read_base64("te6ccgEBAQEAAgAAAA==") == EMPTY
    with pytest.raises(CellError):
        boc.read_base64(text)


def test_a_slice_reads_what_a_builder_wrote() -> None:
    address = "0:" + "ab" * 32
    builder = Builder().uint(5, 3).bit(value=True).raw(b"\0xyz").coins(0).coins(10**18).optional(None).optional(LEAF)
    cell = builder.address(address).address("-1:" + "00" * 32).address("").uint((1 << 8) - 3, 8).ref(EMPTY).end()
    read = Slice(cell)

    assert (read.uint(3), read.bit(), read.raw(4), read.coins(), read.coins()) == (5, True, b"\0xyz", 0, 10**18)
    assert (read.optional(), read.optional()) == (None, LEAF)
    assert [read.address(), read.address(), read.address()] == [address, "-1:" + "00" * 32, ""]
    assert (read.bits, read.refs) == (8, 1)
    assert (read.signed(8), read.ref()) == (-3, EMPTY)
    read.end()
    for reading in (read.bit, read.ref, read.coins, read.address):
        with pytest.raises(CellError):
            reading()


def test_a_slice_that_holds_more_than_was_read_has_not_ended() -> None:
    for cell in (Builder().bit(0).end(), Builder().ref(EMPTY).end()):
        with pytest.raises(CellError, match="more than it should"):
            Slice(cell).end()
        assert Slice(cell).rest() == cell
    with pytest.raises(CellError, match="exotic"):
        Slice(pruned(1, LEAF))
    with pytest.raises(CellError, match="exotic"):
        Builder().cells(pruned(1, LEAF))


@settings(max_examples=60)
@given(trees(depth=1), st.integers(0, BITS_MAX))
def test_a_copied_cell_equals_its_original(tree: Cell, bits: int) -> None:
    assert Builder().cells(tree).end() == tree
    half = Slice(tree)
    first = half.uint(min(bits, half.bits))
    assert Builder().uint(first, min(bits, tree.bits)).cells(half.rest()).end() == tree


@pytest.mark.parametrize(
    "bits",
    [
        "0000" + "0001" + "00000000",  # one byte that is zero
        "0000" + "0010" + "00000000" + "00000001",
    ],
)
def test_a_number_longer_than_it_has_to_be_is_refused(bits: str) -> None:
    read = Slice(Builder().uint(int(bits, 2), len(bits)).end())
    assert read.uint(4) == 0
    with pytest.raises(CellError, match="longer"):
        read.coins()


@pytest.mark.parametrize("bits", ["101" + "0" * 300, "11" + "0" * 300, "100" + "0" * 263, "01" + "000000010"])
def test_an_address_of_another_form_is_refused(bits: str) -> None:
    with pytest.raises(CellError):
        Slice(Builder().uint(int(bits, 2), len(bits)).end()).address()


def test_an_external_address_names_no_account() -> None:
    read = Slice(Builder().uint(0b01, 2).uint(10, 9).uint(777, 10).bit(1).end())
    assert (read.address(), read.bits) == ("", 1)


@settings(max_examples=60)
@given(st.binary(max_size=600), st.integers(0, 1000))
def test_a_text_goes_on_in_references(text: bytes, before: int) -> None:
    read = Slice(Builder().uint(0, before).text(text).end())
    assert read.uint(before) == 0
    assert text_of(read) == text


def test_a_text_as_long_as_a_tree_is_deep_is_written_and_read() -> None:
    text = bytes(range(256)) * 507
    cell = Builder().text(text).end()
    assert (cell.depth, text_of(Slice(cell))) == (1021, text)


def test_a_text_of_another_form_is_refused() -> None:
    for cell in (Builder().uint(0, 7).end(), Builder().ref(EMPTY).ref(EMPTY).end()):
        with pytest.raises(CellError, match="text"):
            text_of(Slice(cell))


def test_a_builder_refuses_more_than_a_cell_holds() -> None:
    full = Builder().uint(0, BITS_MAX)
    with pytest.raises(CellError):
        full.bit(0)
    for _ in range(4):
        full.ref(EMPTY)
    with pytest.raises(CellError):
        full.ref(EMPTY)
    for value, bits in [(-1, 8), (256, 8), (1, 0)]:
        with pytest.raises(ValueError, match="does not fit"):
            Builder().uint(value, bits)
    for units in (-1, 1 << 120):
        with pytest.raises(ValueError, match="does not fit"):
            Builder().coins(units)
