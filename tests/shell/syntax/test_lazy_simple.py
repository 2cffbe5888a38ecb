"""A command whose words nobody has asked for is the same value as one that was read at once."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from ramet.shell.syntax import nodes as n
from ramet.shell.syntax import parse
from ramet.shell.syntax.lazy_simple import LazySimple

TEXT = "echo $x 'a b' 2 > f 2>&1 < g"


def command(text: str = TEXT) -> n.Simple:
    node = parse(text + " # never kept").statements[0].node
    assert isinstance(node, n.Simple)
    return node


def literal(text: str) -> n.Word:
    return n.Word((n.Literal(text),))


READ = n.Simple(
    (),
    (literal("echo"), n.Word((n.Param("x", braced=False),)), n.Word((n.SingleQuoted("a b"),)), literal("2")),
    (
        n.Redirect(">", literal("f")),
        n.Redirect(">&", literal("1"), 2),
        n.Redirect("<", literal("g")),
    ),
)


@pytest.fixture
def unread() -> LazySimple:
    found = LazySimple(literal("echo"), TEXT.removeprefix("echo"), 7)
    for name in ("words", "redirects"):
        with pytest.raises(AttributeError):
            object.__getattribute__(found, name)
    return found


def test_plain_commands_are_left_unread() -> None:
    assert isinstance(command(), LazySimple)
    assert command() == READ


def test_it_equals_what_was_read_from_both_sides(unread: LazySimple) -> None:
    assert unread == READ and hash(unread) == hash(READ)
    others: list[object] = [LazySimple(literal("echo"), TEXT.removeprefix("echo"), 1)]
    assert READ in others
    others = [LazySimple(literal("echo"), " other", 7), "echo", READ.words]
    assert unread not in others


def test_redirections_may_be_asked_for_first(unread: LazySimple) -> None:
    assert [one.line for one in unread.redirects] == [7, 7, 7]
    assert len(unread.words) == 4 and unread.assigns == ()
    assert type(unread) is n.Simple


def test_it_is_printed_and_carried_as_a_simple_command(unread: LazySimple) -> None:
    assert repr(unread) == repr(n.Simple((), READ.words, unread.redirects, 7))
    again = pickle.loads(pickle.dumps(unread))
    assert type(again) is n.Simple and again == READ and again.line == 7


def test_there_are_no_other_fields(unread: LazySimple) -> None:
    with pytest.raises(AttributeError, match="other"):
        _ = unread.other


def test_threads_may_ask_at_once() -> None:
    commands = [LazySimple(literal("echo"), TEXT.removeprefix("echo"), 1) for _ in range(200)]
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda _: [(one.words, one.redirects) for one in commands], range(4)))
    assert all(one == (READ.words, READ.redirects) for row in rows for one in row)
