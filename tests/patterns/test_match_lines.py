"""Selected lines are those that a test of each line selects, whether few or many match."""

from __future__ import annotations

import re
from itertools import product

import pytest

from ramet import patterns
from ramet.patterns import Lines
from ramet.patterns.match_lines import numbered, select

MANY = b"".join(b"%d %s\n" % (n, b"cart" if n % 3 else b"checkout") for n in range(4000))
FEW = b"".join(b"line %d\n" % n for n in range(4000))
WIDE = "".join(f"größe {n % 11}\n" for n in range(4000)).encode()
BLOCKS = {"many": MANY, "few": FEW, "wide": WIDE, "short": b"a\n\nb 1\n", "empty lines": b"\n" * 50, "none": b""}
PATTERNS = [b"checkout", b"cart", b"line 399", b"1", b"^1", b"[0-9]$", b"[03] *c[a-z]+", b"^$", b"^", b"zzz", b"e.1"]


def lines_of(block: bytes) -> list[bytes]:
    return block.split(b"\n")[:-1]


@pytest.mark.parametrize(("name", "pattern", "invert"), list(product(BLOCKS, PATTERNS, [False, True])))
def test_selection_of_a_block_is_selection_of_its_lines(name: str, pattern: bytes, invert: bool) -> None:
    block = BLOCKS[name]
    matcher = patterns.compile(pattern, lines=Lines.BLOCK)
    test = re.compile(pattern.decode()).search
    wanted = [(n, line) for n, line in enumerate(lines_of(block), 7) if (test(line.decode()) is None) == invert]
    assert select(matcher, block, invert) == (b"".join(line + b"\n" for _, line in wanted), len(wanted))
    assert list(numbered(matcher, block, invert, 7)) == wanted


@pytest.mark.parametrize(
    ("pattern", "possible"), [(b"abc", True), (b"^a.*b$", True), (b"a\nb", False), (b"(a|\n)b", False)]
)
def test_a_pattern_that_can_see_a_newline_does_not_run_over_lines(pattern: bytes, possible: bool) -> None:
    assert (patterns.compile(pattern).over_lines() is not None) == possible


def test_back_references_do_not_run_over_lines() -> None:
    assert patterns.compile(rb"\(a*\)b\1", patterns.SED_BASIC).over_lines() is None
