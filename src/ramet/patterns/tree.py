"""The syntax tree of a regular expression; nodes are frozen."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Assertion(Enum):
    """A condition on a position that consumes nothing."""

    LINE_START = "^"
    LINE_END = "$"
    TEXT_START = "\\`"
    TEXT_END = "\\'"
    BOUNDARY = "\\b"
    NOT_BOUNDARY = "\\B"
    WORD_START = "\\<"
    WORD_END = "\\>"


@dataclass(frozen=True, slots=True)
class Char:
    """One character; a lone surrogate stands for a byte that is not UTF-8."""

    char: str


@dataclass(frozen=True, slots=True)
class AnyChar:
    pass


@dataclass(frozen=True, slots=True)
class CharSet:
    """A bracket expression: inclusive ranges of code points and named classes."""

    ranges: tuple[tuple[int, int], ...]
    classes: tuple[str, ...] = ()
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Assert:
    kind: Assertion


@dataclass(frozen=True, slots=True)
class Group:
    number: int
    body: Node


@dataclass(frozen=True, slots=True)
class BackRef:
    number: int


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    body: Node
    low: int
    high: int | None


Node = Char | AnyChar | CharSet | Assert | Group | BackRef | Sequence | Choice | Repeat
EMPTY = Sequence(())


def children(node: Node) -> tuple[Node, ...]:
    if isinstance(node, (Group, Repeat)):
        return (node.body,)
    if isinstance(node, Sequence):
        return node.parts
    if isinstance(node, Choice):
        return node.options
    return ()


def contains(node: Node, kinds: type | tuple[type, ...]) -> bool:
    """Whether a node of one of these kinds occurs anywhere in the tree."""
    todo = [node]
    while todo:
        current = todo.pop()
        if isinstance(current, kinds):
            return True
        todo.extend(children(current))
    return False


def assertions(node: Node) -> set[Assertion]:
    found: set[Assertion] = set()
    todo = [node]
    while todo:
        current = todo.pop()
        if isinstance(current, Assert):
            found.add(current.kind)
        todo.extend(children(current))
    return found


_OF_WORDS = frozenset((Assertion.BOUNDARY, Assertion.NOT_BOUNDARY, Assertion.WORD_START, Assertion.WORD_END))


def of_characters(node: Node) -> bool:
    """Whether the GNU library has to look at characters rather than at bytes to match this in UTF-8."""
    todo = [node]
    while todo:
        current = todo.pop()
        if isinstance(current, CharSet):
            several = any(low != high or high > 0x7F for low, high in current.ranges)
            if several or current.classes or current.negated:
                return True
        elif isinstance(current, Assert) and current.kind in _OF_WORDS:
            return True
        elif not (isinstance(current, Repeat) and current.high == 0):
            todo.extend(children(current))
    return False


def literal(node: Node) -> str | None:
    """The one string that the tree matches, when it is that simple."""
    if isinstance(node, Char):
        return node.char
    if isinstance(node, Sequence):
        parts: list[str] = []
        for part in node.parts:
            if not isinstance(part, Char):
                return None
            parts.append(part.char)
        return "".join(parts)
    return None


def required(node: Node) -> str:
    """The longest string that every match contains (empty when none is sure)."""
    if isinstance(node, Char):
        return node.char
    if isinstance(node, Group):
        return required(node.body)
    if isinstance(node, Repeat):
        return required(node.body) if node.low > 0 else ""
    if not isinstance(node, Sequence):
        return ""
    best, run = "", ""
    for part in node.parts:
        if isinstance(part, Char):
            run += part.char
            continue
        if isinstance(part, Assert):
            continue
        best = max(best, run, required(part), key=len)
        run = ""
    return max(best, run, key=len)


def nullable(node: Node) -> bool:
    """Whether the empty string can be a match."""
    if isinstance(node, (Char, AnyChar, CharSet)):
        return False
    if isinstance(node, Group):
        return nullable(node.body)
    if isinstance(node, Repeat):
        return node.low == 0 or nullable(node.body)
    if isinstance(node, Sequence):
        return all(nullable(part) for part in node.parts)
    if isinstance(node, Choice):
        return any(nullable(option) for option in node.options)
    return True
