"""Split a pattern with too many alternatives for one automaton into several engines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from ramet.concurrency.offload import checkpoint
from ramet.patterns import tree
from ramet.patterns.tree import Char, Choice, Group, Node
from ramet.patterns.tree import Sequence as Row

T = TypeVar("T")

MOST: Final = 16 * 1024
"""Weight of a tree that compiles to one automaton in about a millisecond."""


class Split(NamedTuple):
    """The parts of a split tree; the leftmost-longest match of all parts counts."""

    trees: list[Node]
    texts: list[str]
    around: list[int]
    """The groups that each of the texts is a match of."""


def split_choice(node: Node, *, texts: bool) -> Split | None:
    """Split a tree into smaller ones, and with `texts` into plain texts; None if it has no suitable choice."""
    found = _large(node)
    if found is None:
        return None
    choice, around, bare = found
    bare = bare and texts
    plain: list[str] = []
    others: list[Node] = []
    for place, option in enumerate(choice.options):
        if not place & 255:
            checkpoint()
        text = tree.literal(option) if bare else None
        if text:
            plain.append(text)
        else:
            others.append(option)
    if not any(tree.contains(option, Group) for option in others):
        others = in_order(others, _beginning)  # neighbours share how they begin
    trees = [around(Choice(tuple(some))) for some in _rows(others)]
    return Split(trees, plain, group_numbers(around(tree.EMPTY)))


def group_numbers(node: Node) -> list[int]:
    """The groups of a tree as they are opened."""
    numbers: list[int] = []
    todo = [node]
    while todo:
        current = todo.pop()
        if isinstance(current, Group):
            numbers.append(current.number)
        todo += reversed(tree.children(current))
    return numbers


def in_order(items: Sequence[T], key: Callable[[T], Any]) -> list[T]:
    """Sort in parts, because one sort cannot be interrupted."""
    parts: dict[Any, list[T]] = {}
    for place, item in enumerate(items):
        if not place & 255:
            checkpoint()
        parts.setdefault(key(item)[:2], []).append(item)
    found: list[T] = []
    for start in sorted(parts):
        found += sorted(parts[start], key=key)
    return found


def _large(node: Node) -> tuple[Choice, Callable[[Node], Node], bool] | None:
    """Find a choice that is too large, its context, and whether the context is only groups."""
    if isinstance(node, Choice):
        return (node, _same, True) if _weight(node) > MOST else None
    if isinstance(node, Group):
        found = _large(node.body)
        if found is None:
            return None
        choice, around, bare = found
        number = node.number
        return choice, lambda inner: Group(number, around(inner)), bare
    if isinstance(node, Row):
        for place, part in enumerate(node.parts):
            if not isinstance(part, Char) and (found := _large(part)) is not None:
                return found[0], partial(_replaced, node.parts, place, found[1]), False
    return None


def _replaced(parts: tuple[Node, ...], place: int, inside: Callable[[Node], Node], inner: Node) -> Node:
    return Row((*parts[:place], inside(inner), *parts[place + 1 :]))


def _same(node: Node) -> Node:
    return node


def _weight(node: Node) -> int:
    total = 0
    todo = [node]
    while todo and total <= MOST:
        children = tree.children(todo.pop())
        total += 1 + len(children)
        todo += [child for child in children if type(child) is not Char]
    return total


def _beginning(node: Node) -> str:
    """The text that a tree begins with."""
    found: list[str] = []
    for part in tree.children(node) or (node,):
        if not isinstance(part, Char):
            break
        found.append(part.char)
    return "".join(found)


def _rows(options: Sequence[Node]) -> Iterator[list[Node]]:
    """Options in rows of bounded weight."""
    row: list[Node] = []
    total = 0
    for option in options:
        weight = _weight(option)
        if row and total + weight > MOST:
            yield row
            row, total = [], 0
        row.append(option)
        total += weight
    if row:
        yield row
