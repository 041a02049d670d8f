"""Only a family's own folders name it: this test finds all other places that depend on a family."""

from __future__ import annotations

import ast
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Final, get_args, get_type_hints

import pytest

from chains import registry
from core.catalogue.families import SERVED_FAMILIES, TRAITS, Traits
from devstack import chains

ROOT: Final = Path(__file__).parents[2]
FLOORS: Final = ("core", "models", "chains", "actors", "api", "scheduler", "cli", "devstack")
FAMILIES: Final = frozenset({"evm", "tron", "bitcoin", "solana", "ton"})
# Where a family may be named; its addresses need no chain library, so that every floor can read them.
OWN: Final = ("chains/{}/", "core/addresses/{}.py", "devstack/{}/")
UNITS: Final = frozenset({"wei", "gwei"})
PHRASE: Final = re.compile(r"(?i)(?<![a-z])(?:eth_(?=[a-z])|(?:gas_limit|chain_id|next_nonce)(?![a-z]))")

# The other files that name a family, with the reason. A new entry needs a lasting reason; remove one that is gone.
ALLOWED: Final[dict[str, tuple[set[str], str]]] = {
    "chains/registry.py": (set(FAMILIES), "the one table"),
    "devstack/chains.py": (set(FAMILIES), "the one table"),
    "core/addresses/addresses.py": (set(FAMILIES), "the one table"),
    "core/invoices/uris.py": (set(FAMILIES), "the one table"),
    "api/pages/icons.py": ({"bitcoin", "solana", "ton", "tron"}, "drawings by the codes of the catalogue's networks"),
    "core/settings/meanings.py": ({"gwei"}, "explains a variable that is named after the unit"),
    "core/catalogue/families.py": ({*FAMILIES, "gwei"}, "what is data of each family: traits and parameters"),
}


def files() -> Iterator[str]:
    """Return every file of code."""
    for floor in FLOORS:
        yield from (str(path.relative_to(ROOT)) for path in sorted((ROOT / floor).rglob("*.py")))


def names() -> Iterator[str]:
    """Return those in which no family may be named."""
    own = tuple(place.format(family) for place in OWN for family in FAMILIES)
    return (name for name in files() if not name.startswith(own))


def libraries(name: str) -> set[str]:
    """Return what a file imports that is neither ours nor Python's own."""
    tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
    named = [each.name for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names]
    named += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return {module.partition(".")[0] for module in named} - {*FLOORS, *sys.stdlib_module_names}


def family_words(source: str) -> set[str]:
    """Return what only a family may say, in identifiers and texts of a file; comments and docstrings are prose."""
    prose = docstrings(source)
    # From Python 3.12 on the text of an f-string is a token of its own.
    texts = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    collected = set[str]()
    for token in tokenize.generate_tokens(StringIO(source).readline):
        if token.type == tokenize.NAME or (token.type in texts and token.start not in prose):
            collected |= words_in(token.string)
    return collected


def words_in(text: str) -> set[str]:
    """Return the families, units and phrases in it that are no part of another word."""
    parts = {part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", text)}
    return parts & (FAMILIES | UNITS) | {phrase.lower() for phrase in PHRASE.findall(text)}


def docstrings(source: str) -> set[tuple[int, int]]:
    """Return where docstrings begin."""
    values = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr)]
    return {(node.lineno, node.col_offset) for node in values if isinstance(node, ast.Constant)}


@pytest.fixture(scope="module")
def by_file() -> dict[str, set[str]]:
    words_by_name = {name: family_words((ROOT / name).read_text(encoding="utf-8")) for name in names()}
    return {name: words for name, words in words_by_name.items() if words}


def test_no_other_code_depends_on_a_family(by_file: dict[str, set[str]]) -> None:
    new = {name: words - ALLOWED.get(name, (set(), ""))[0] for name, words in by_file.items()}

    assert len(list(names())) > 300
    assert {name: words for name, words in new.items() if words} == {}


def test_what_was_mended_is_taken_off_the_list(by_file: dict[str, set[str]]) -> None:
    gone = {name: words - by_file.get(name, set()) for name, (words, _) in ALLOWED.items()}

    assert {name: words for name, words in gone.items() if words} == {}


def claims(source: str) -> list[str]:
    """Return the expressions in which a file reads the claim of a family, or compares a value with a kind of claim."""
    comparisons = list[ast.expr]()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(attr="claim", value=family) if "traits" in ast.unparse(family).lower():
                comparisons.append(node)
            case ast.Compare():
                comparisons += [node] if any(map(is_kind_of_claim, ast.walk(node))) else []
            case ast.MatchValue(value=value):
                comparisons += [value] if is_kind_of_claim(value) else []
    return [ast.unparse(each) for each in comparisons]


def is_kind_of_claim(node: ast.AST) -> bool:
    kinds = get_args(get_type_hints(Traits)["claim"])
    return isinstance(node, ast.Constant) and node.value in kinds


def test_no_caller_compares_claims() -> None:
    outside = [name for name in files() if not name.startswith(("chains/", "core/catalogue/"))]
    by_name = {name: claims((ROOT / name).read_text(encoding="utf-8")) for name in outside}

    assert len(outside) > 300
    assert {name: lines for name, lines in by_name.items() if lines} == {}


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        (
            'if traits_of(network).claim == "coins": pass',
            ["traits_of(network).claim", "traits_of(network).claim == 'coins'"],
        ),
        ('claim = traits.claim\nif claim != "counter": pass', ["traits.claim", "claim != 'counter'"]),
        ('is_new = kind in {"coins", "window"}', ["kind in {'coins', 'window'}"]),
        ('match kind:\n    case "window": pass', ["'window'"]),
        ("CLAIMS[self._traits.claim]", ["self._traits.claim"]),
        ("isinstance(draft.claim, Coins) and traits.spends_coins", []),
        ('{"coins": [], "window": 1}', []),
    ],
)
def test_comparisons_of_claims_are_known(source: str, texts: list[str]) -> None:
    assert sorted(claims(source)) == sorted(texts)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('if network.family == "evm": pass', {"evm"}),
        ("from chains.evm.reader import EvmReader", {"evm"}),
        ("class TonReader: ...", {"ton"}),
        ("SOLANA_MAX = 1", {"solana"}),
        ("price_wei = 1", {"wei"}),
        ('x = f"{amount} gwei"', {"gwei"}),
        ('node.call("eth_chainId", [])', {"eth_"}),
        ('sql = "SELECT gas_limit FROM t"', {"gas_limit"}),
        ("self._next_nonce(chain_id=1)", {"next_nonce", "chain_id"}),
        ("def f():\n    x = 'tron'; 'bitcoin'", {"tron"}),
        ('"""Reads EVM, in wei."""\n# bitcoin: eth_call\ndef f():\n    """Of tron."""', set()),
        ("button = weight = chain_identity = toner = method_name", set()),
    ],
)
def test_what_only_a_family_may_say_is_known(source: str, words: set[str]) -> None:
    assert family_words(source) == words


def test_a_family_is_served_where_it_stands_in_the_table_and_told_apart_where_it_has_traits() -> None:
    assert registry._MODULES.keys() == SERVED_FAMILIES
    assert TRAITS.keys() == FAMILIES


@pytest.mark.parametrize(("modules", "folder"), [(registry._MODULES, "chains"), (chains._MODULES, "devstack")])
def test_a_family_has_a_folder_of_its_name(modules: dict[str, str], folder: str) -> None:
    assert dict(modules) == {family: f"{folder}.{family}.family" for family in modules}
    for module in modules.values():
        assert (ROOT / module.replace(".", "/")).with_suffix(".py").exists()


def contract() -> dict[str, list[str]]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    name = "Only chains and development chains know chain libraries"
    (row,) = [row for row in contracts if row["name"] == name]
    return dict(row)


def test_development_chains_alone_import_chain_libraries_beside_chains() -> None:
    row = contract()

    assert {*row["source_modules"], "chains"} == set(FLOORS)
    assert row["ignore_imports"] == [f"devstack.{family}.** -> *" for family in chains._MODULES]


def test_what_families_alone_import_is_a_chain_library() -> None:
    own = ("chains/", *(place.format(family) for place in OWN for family in FAMILIES))
    used, elsewhere = (
        {library for name in files() if name.startswith(own) == is_own for library in libraries(name)}
        for is_own in (True, False)
    )

    assert {"web3", "tronpy", "embit", "pbk"} <= used - elsewhere
    assert used - elsewhere - set(contract()["forbidden_modules"]) == set()
