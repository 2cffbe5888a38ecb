"""Run simple sed scripts on whole blocks of lines instead of one cycle per line.

Such a script only substitutes in every line, or keeps or drops lines by a pattern.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Final

from ramet.commands.sed import substitute
from ramet.commands.sed.program import Instruction, Kind, Substitution
from ramet.concurrency.sizes import HUGE
from ramet.patterns import Lines, Matcher
from ramet.patterns.engines import ReEngine
from ramet.patterns.match_lines import select

BlockChange = Callable[[bytes], bytes]
"""Maps a block of lines to its output; only the last line of the input may lack its newline."""


def block_change(program: list[Instruction], quiet: bool, several: bool, most: int) -> BlockChange | None:
    """Return a function for whole blocks; None if the script needs cycles. More than `most` bytes are an error."""
    if not program:
        return None
    if several and len({item.name for item in program}) > 1:
        # How the next file begins depends on whether an unfinished last line was emptied or dropped.
        return None
    if quiet:
        return _selection(program[0], "p") if len(program) == 1 else None
    changes: list[BlockChange] = []
    for item in program:
        change = _substitution(item, most) if item.name == "s" else _selection(item, "d")
        if change is None:
            return None
        changes.append(change)
    if len(changes) == 1:
        return changes[0]
    return functools.partial(_in_turn, changes, most)


def _in_turn(changes: list[BlockChange], most: int, block: bytes) -> bytes:
    for change in changes:
        block = change(block)
        substitute.bounded(len(block), most)  # checked between steps, as each may double the text
    return block


# ---------------------------------------------------------------------------------------------- lines kept or dropped


def _selection(item: Instruction, name: str) -> BlockChange | None:
    """Return the change of `/x/d`, or of `/x/p` with -n."""
    first = item.first
    if item.name != name or item.second is not None or first is None or first.kind is not Kind.REGEX:
        return None
    matcher = first.matcher
    source = None if matcher is None else matcher.over_lines()
    if matcher is None or source is None:
        return None
    invert = item.negated == (name == "p")

    def change(block: bytes) -> bytes:
        cut = block.rfind(b"\n") + 1
        kept = select(source, block[:cut], invert)[0] if cut else b""
        last = block[cut:]
        return b"".join((kept, last)) if last and matcher.test(last) != invert else kept

    return change


# ------------------------------------------------------------------------------------------------------ substitutions


_LONG_PIECE: Final = 1024
"""Bytes of a replacement from which on lines are changed one by one."""


def _substitution(item: Instruction, most: int) -> BlockChange | None:
    substitution = item.substitution
    if item.first is not None or item.negated or substitution is None:
        return None
    matcher = substitution.matcher
    if matcher is None or any(b"\n" in piece.text or len(piece.text) > _LONG_PIECE for piece in substitution.pieces):
        return None
    quick = _quick(substitution, matcher)
    if quick is None:
        return None
    plain = bool(matcher.literal) or _edge(substitution, matcher) is not None
    slow = substitute.make(substitution, matcher, most)

    def change(block: bytes) -> bytes:
        # `slow` checks the limit of a line, which `quick` cannot pass on a block of ordinary size.
        return quick(block) if len(block) < HUGE and (plain or block.isascii()) else _by_line(slow, block)

    return change


def _by_line(change: substitute.Change, block: bytes) -> bytes:
    """Substitute line by line, for characters beyond ASCII, which take another engine, and for huge lines."""
    lines = block.split(b"\n")
    last = len(lines) - (0 if lines[-1] else 1)
    for index in range(last):
        changed = change(lines[index])
        if changed is not None:
            lines[index] = changed
    return b"\n".join(lines)


def _quick(substitution: Substitution, matcher: Matcher) -> BlockChange | None:
    if substitution.number != 1 or substitution.show or substitution.file is not None or substitution.run:
        return None
    constant = substitute.constant_of(substitution.pieces)
    if constant is not None and matcher.literal and b"\n" not in matcher.literal:
        return _literal(matcher.literal, constant, substitution.every)
    if matcher.long:
        return None
    edge = _edge(substitution, matcher)
    if edge is not None:
        return edge
    engine = matcher.variant(Lines.BLOCK).engine(b"")
    if not isinstance(engine, ReEngine) or substitute.has_case(substitution.pieces):
        return None
    if engine.nullable:
        return _at_start(substitution, engine)
    template = substitute.template_of(substitution.pieces)
    if substitution.every:
        return lambda block: engine.pattern.sub(template, block)
    # A group around the pattern and one for the rest of the line, so a line matches only once.
    pattern = re.compile(b"(" + engine.pattern.pattern + b")(.*)", engine.pattern.flags)
    moved = tuple(piece._replace(group=piece.group + 1) if piece.group >= 0 else piece for piece in substitution.pieces)
    template = substitute.template_of(moved) + b"\\g<%d>" % pattern.groups
    return lambda block: pattern.sub(template, block)


_START, _END = b"(?m:^)", b"(?m:$)"


def _edge(substitution: Substitution, matcher: Matcher) -> BlockChange | None:
    """Return the change of `s/^/x/` and `s/$/x/`: a constant around every line."""
    constant = substitute.constant_of(substitution.pieces)
    engine = matcher.variant(Lines.BLOCK).engine(b"")
    if constant is None or not isinstance(engine, ReEngine) or engine.pattern.pattern not in (_START, _END):
        return None
    at_start = engine.pattern.pattern == _START
    between = b"\n" + constant if at_start else constant + b"\n"

    def change(block: bytes) -> bytes:
        ended = block.endswith(b"\n")
        body = (block[:-1] if ended else block).replace(b"\n", between)
        body = constant + body if at_start else body + constant
        return body + b"\n" if ended else body

    return change


def _at_start(substitution: Substitution, engine: ReEngine) -> BlockChange | None:
    """Return the change of `s/^ *//`: a match at the start of every line, even an empty one."""
    pattern = engine.pattern
    if not pattern.pattern.startswith(_START) or b"|" in pattern.pattern:
        return None
    template = substitute.template_of(substitution.pieces)

    def change(block: bytes) -> bytes:
        # No line begins after the last newline, though the pattern would match there.
        return pattern.sub(template, block[:-1]) + b"\n" if block.endswith(b"\n") else pattern.sub(template, block)

    return change


def _literal(old: bytes, new: bytes, every: bool) -> BlockChange:
    if every:
        return lambda block: block.replace(old, new)

    def change(block: bytes) -> bytes:
        if old not in block:
            return block
        return b"\n".join([line.replace(old, new, 1) for line in block.split(b"\n")])

    return change
