"""Trees print to text that parses back to them, and functions print as bash prints them."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.shell.syntax.shell_trees import Trees

from ramet.shell.syntax import Options, parse
from ramet.shell.syntax import nodes as n
from ramet.shell.syntax.printer import assignment_text, command_text, function_text, to_text, word_text

OPTIONS = Options(extglob=True)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**64))
def test_any_tree_parses_back_from_its_text(seed: int) -> None:
    # A seed, not `st.randoms()`: every choice of a tree drawn by hypothesis itself takes ten times as long.
    tree = Trees(Random(seed)).script(3)
    assert parse(to_text(tree), OPTIONS) == tree


FUNCTIONS = (Path(__file__).parent / "functions.txt").read_text("utf-8").split("=====\n")


@pytest.mark.parametrize("case", FUNCTIONS, ids=[case.split("\n")[0] for case in FUNCTIONS])
def test_functions_print_as_in_bash(case: str) -> None:
    source, _, expected = case.partition("-----\n")
    node = parse(source, OPTIONS).statements[0].node
    assert isinstance(node, n.Function)
    assert function_text(node) + "\n" == expected


def test_pieces() -> None:
    assert word_text(n.Word((n.Literal("a"), n.Escaped(" ")))) == "a\\ "
    assignment = n.Assignment(
        "a", None, True, n.ArrayLiteral((n.ArrayElement(n.Word((n.Literal("k"),)), True, n.Word(())),))
    )
    assert assignment_text(assignment) == to_text(assignment) == "a+=([k]+=)"
    assert to_text(n.Word(())) == ""
    statement = parse("a & b").statements[0]
    assert to_text(statement) == "a &"
    assert command_text(parse("if a; then b; fi").statements[0].node) == "if a; then\n    b;\nfi"
    assert command_text(parse("x=1 echo \"a  b\" $'q\\n' >&2 <&- 1>f <>g").statements[0].node) == (
        "x=1 echo \"a  b\" 'q\n' 1>&2 0>&- > f 0<> g"
    )
    assert command_text(parse("a >& f").statements[0].node) == "a >&f"
    assert to_text(parse("f() { ${x!y}; }")) == "f () { ${x!y}; }"
    assert command_text(parse("! !").statements[0].node) == "! ! "
