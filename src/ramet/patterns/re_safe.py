"""Decide when Python's backtracking `re` is exact (leftmost-longest) and linear for a pattern.

Only patterns proven here run on `re`: a chain of character sets whose repetitions leave no choice.
"""

from __future__ import annotations

from dataclasses import dataclass

from ramet.patterns.emit import Coding, Lines
from ramet.patterns.tree import AnyChar, Assert, Assertion, Char, CharSet, Group, Node, Repeat, Sequence

_ALL = (1 << 256) - 1
_NEWLINE = 1 << 10
_LONG = 1000


def _mask(text: str) -> int:
    result = 0
    for char in text:
        result |= 1 << ord(char)
    return result


def _span(low: int, high: int) -> int:
    return ((1 << (high + 1)) - 1) ^ ((1 << low) - 1)


_LOWER, _UPPER, _DIGIT = _span(97, 122), _span(65, 90), _span(48, 57)
_CLASSES = {
    "alpha": _LOWER | _UPPER,
    "digit": _DIGIT,
    "alnum": _LOWER | _UPPER | _DIGIT,
    "upper": _UPPER,
    "lower": _LOWER,
    "space": _span(9, 13) | 1 << 32,
    "blank": _mask("\t "),
    "punct": _span(33, 47) | _span(58, 64) | _span(91, 96) | _span(123, 126),
    "print": _span(32, 126),
    "graph": _span(33, 126),
    "cntrl": _span(0, 31) | 1 << 127,
    "xdigit": _DIGIT | _span(97, 102) | _span(65, 70),
}


@dataclass(frozen=True, slots=True)
class _Step:
    """One set of bytes with its repetition."""

    mask: int
    low: int
    high: int | None


def byte_mask(node: Node, coding: Coding, lines: Lines, icase: bool) -> int | None:
    """The bytes that a one-character node matches, as a bit set; None for other nodes."""
    if isinstance(node, Char):
        code = ord(node.char)
        result = 1 << code if code <= (0x7F if coding is Coding.ASCII else 0xFF) else 0
    elif isinstance(node, AnyChar):
        result = _ALL & ~_NEWLINE if lines is Lines.BLOCK else _ALL
    elif isinstance(node, CharSet):
        result = 0
        for low, high in node.ranges:
            if low <= 0xFF:
                result |= _span(low, min(high, 0xFF))
        for name in node.classes:
            result |= _CLASSES[name]
        if icase:
            result = _fold(result)
        if node.negated:
            result = _ALL & ~result
        return result & ~_NEWLINE if lines is Lines.BLOCK else result
    else:
        return None
    return _fold(result) if icase else result


def _fold(mask: int) -> int:
    return mask | (mask & _LOWER) >> 32 | (mask & _UPPER) << 32


def is_simple(tree: Node, coding: Coding, lines: Lines, icase: bool) -> bool:
    """Whether `re` is exact and linear for this tree."""
    steps: list[_Step | Assertion] = []
    if not _flatten(tree, coding, lines, icase, steps):
        return False
    for index, step in enumerate(steps):
        if isinstance(step, Assertion):
            continue
        if step.high is not None and step.high > _LONG:
            return False
        if step.low != step.high and step.mask & _follow(steps, index + 1, lines):
            return False
    return _linear(steps, lines)


def _flatten(node: Node, coding: Coding, lines: Lines, icase: bool, steps: list[_Step | Assertion]) -> bool:
    if isinstance(node, Sequence):
        return all(_flatten(part, coding, lines, icase, steps) for part in node.parts)
    if isinstance(node, Group):
        return _flatten(node.body, coding, lines, icase, steps)
    if isinstance(node, Assert):
        steps.append(node.kind)
        return True
    body, low, high = (node.body, node.low, node.high) if isinstance(node, Repeat) else (node, 1, 1)
    mask = byte_mask(body, coding, lines, icase)
    if mask is None:
        return False
    steps.append(_Step(mask, low, high))
    return True


def _follow(steps: list[_Step | Assertion], start: int, lines: Lines) -> int:
    """The bytes that may come next when what is before has ended."""
    result = 0
    for place in range(start, len(steps)):
        step = steps[place]
        if isinstance(step, Assertion):
            if step is Assertion.TEXT_END or (step is Assertion.LINE_END and lines is not Lines.MULTI):
                return result | (_NEWLINE if lines is Lines.BLOCK else 0)
            # The position decides, not a byte: any byte might follow.
            return _ALL
        result |= step.mask
        if step.low > 0:
            return result
    return result


def _linear(steps: list[_Step | Assertion], lines: Lines) -> bool:
    unbounded = [
        step
        for index, step in enumerate(steps)
        if isinstance(step, _Step) and step.high is None and index < len(steps) - 1
    ]
    if not unbounded:
        return True
    first = steps[0]
    if isinstance(first, Assertion):
        if first is Assertion.TEXT_START or (first is Assertion.LINE_START and lines is Lines.TEXT):
            return True
        at_line = first is Assertion.LINE_START and lines is Lines.BLOCK
        return at_line and all(not step.mask & _NEWLINE for step in unbounded)
    return first.low > 0 and first.high is not None and all(not step.mask & first.mask for step in unbounded)
