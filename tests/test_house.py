"""The rules of the source tree: folders, names, thresholds and words that keep it findable."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src" / "ramet"
MODULES = sorted(path for path in SRC.rglob("*.py"))

MOST_FILES = 25
NOUNS = {"casing", "quoting", "sorting", "listing", "testing", "feed", "shred", "sed", "ed"}
"""Module names that look like participles and are nouns or commands."""
FAMILIES = {SRC / "commands"}
"""Packages whose folders each have their own languages: class names are unique per folder there."""
THRESHOLD = re.compile(r"SMALL|LARGE|HUGE|MANY|BATCH|LONG_(SCRIPT|PATTERN|NUMBER)")
THREADED = re.compile(r"offload|in a thread", re.I)
"""How the docstring of a threshold reads that decides what leaves the event loop."""
BANNED = re.compile(
    r"\b(whoever|somebody|nobody|those who|takes? its time|in a moment|h[eo]lds? up|very many|some at a time"
    r"|aside|beside|apart from|of its own(?! \w))\b",
    re.I,
)
QUOTED = {"chown.py", "layout.py"}
"""Modules that name the user `nobody`."""


def folders() -> list[Path]:
    return sorted({path.parent for path in MODULES})


@pytest.mark.parametrize("folder", folders(), ids=lambda path: str(path.relative_to(SRC)))
def test_a_folder_has_few_files(folder: Path) -> None:
    assert len(list(folder.glob("*.py"))) <= MOST_FILES


def test_no_module_is_named_by_a_participle() -> None:
    names = {path.stem for path in MODULES}
    assert {name for name in names if re.search(r"(ing|ed)$", name)} - NOUNS == set()


def classes(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def test_class_names_are_unique_within_a_package() -> None:
    found: dict[Path, Counter[str]] = defaultdict(Counter)
    for path in MODULES:
        parts = path.relative_to(SRC).parts
        package = SRC / parts[0]
        if package in FAMILIES and len(parts) > 2:
            package = path.parent
        found[package].update(classes(path))
    twice = {str(package.relative_to(SRC)): [n for n, c in names.items() if c > 1] for package, names in found.items()}
    assert {package: names for package, names in twice.items() if names} == {}


def constants(path: Path) -> Iterator[tuple[str, str]]:
    """Names of the integer constants of a module, each with its docstring."""
    body = ast.parse(path.read_text()).body
    for node, after in zip_longest(body, body[1:]):
        targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
        if not targets or not re.fullmatch(r"[\d_ *<()+-]+", ast.unparse(getattr(node, "value", None) or ast.Pass())):
            continue
        said = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
        yield from ((target.id, str(said)) for target in targets if isinstance(target, ast.Name))


def test_size_thresholds_are_in_one_place() -> None:
    found = [
        f"{path.relative_to(SRC)}: {name}"
        for path in MODULES
        if path.parent != SRC / "concurrency"
        for name, said in constants(path)
        if THRESHOLD.fullmatch(name) or THREADED.search(said)
    ]
    assert found == []


def test_no_group_is_repeated_possessively() -> None:
    """Python before 3.11.5 matches `(...)*+` wrongly when a repetition fails halfway; `(?>(...)*)` is right."""
    literal = re.compile(r"""\b(?:r|rb|br)".*[^\\]\)(?:[*+?]|\{\d*,?\d*\})\+""")
    found = [
        f"{path.relative_to(SRC)}:{number}"
        for path in MODULES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if literal.search(line)
    ]
    assert found == []


def test_words_that_readers_stumble_over_are_gone() -> None:
    found = []
    for path in MODULES:
        if path.name in QUOTED:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if BANNED.search(line):
                found.append(f"{path.relative_to(SRC)}:{number}: {line.strip()}")
    assert found == []


PAGES = [ROOT / "docs" / "architecture.md", ROOT / "docs" / "concurrency.md", ROOT / "CONTRIBUTING.md"]


def test_the_map_shows_every_folder() -> None:
    block = PAGES[0].read_text().split("```text\n", 1)[1].split("```", 1)[0]
    shown: set[str] = set()
    above: list[str] = []
    for line in block.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        above[depth:] = [line.split()[0].rstrip("/")]
        shown.add("/".join(above))
    assert shown == {str(folder.relative_to(SRC)) for folder in folders() if folder != SRC}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_the_maps_name_files_that_exist(page: Path) -> None:
    named = re.findall(r"`([\w/]+/(?:[\w.]+\.(?:py|spec))?)`", page.read_text())
    missing = [
        one for one in named if not ((SRC / one).exists() or (ROOT / "tests" / one).exists() or (ROOT / one).exists())
    ]
    assert named and missing == []
