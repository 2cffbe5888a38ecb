"""Nodes are values: compared and hashed by what they mean, copied by pickle."""

from __future__ import annotations

import pickle

import pytest

from ramet.shell.syntax import nodes as n
from ramet.shell.syntax import parse


def test_nodes_have_no_other_fields() -> None:
    with pytest.raises(AttributeError):
        n.Literal("a").other = 1  # type: ignore[attr-defined]


def test_positions_do_not_count() -> None:
    assert n.Simple((), (), (), line=1) == n.Simple((), (), (), line=2)
    assert hash(n.Simple((), (), (), line=1)) == hash(n.Simple((), (), (), line=2))
    others: list[object] = [n.SingleQuoted("a"), n.Literal("b"), "a"]
    assert n.Literal("a") not in others
    assert hash(n.Literal("a")) != hash(n.SingleQuoted("a"))


def test_defaults_and_names() -> None:
    assert n.Param("x").braced and n.Param("x").args == ()
    assert n.Param(name="x", op=":-", args=(n.Word(()),)).op == ":-"
    with pytest.raises(TypeError):
        n.Literal()  # type: ignore[call-arg]
    assert repr(n.Literal("a")) == "Literal(text='a')"
    match n.Redirect(">", n.Word(()), 2):
        case n.Redirect(op, _, fd):
            assert (op, fd) == (">", 2)


def test_trees_can_be_pickled() -> None:
    tree = parse('for x in a; do echo "$x" $(b) > f; done; [[ a =~ b ]]; f() { :; }')
    again = pickle.loads(pickle.dumps(tree))
    assert again == tree and again is not tree
