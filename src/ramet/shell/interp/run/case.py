"""`case`: texts are looked up, patterns tried in their order."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from ramet.concurrency.offload import offload
from ramet.concurrency.sizes import LARGE
from ramet.shell.expand.c_locale import as_bytes, bytewise
from ramet.shell.expand.long_text import Parts, has_any, long_match, put_together
from ramet.shell.expand.pattern.matcher import compile_pattern
from ramet.shell.expand.word import to_text as texts
from ramet.shell.expand.word.pieces import ready
from ramet.shell.interp.run.maybe_async import Result, Run, drive
from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.syntax.nodes import Case

_NOWHERE: Final[tuple[int, None]] = (sys.maxsize, None)
_ROW: Final = 64
"""Patterns that are tried before others get a turn."""


def compile_case(node: Case, bodies: list[Run]) -> Run:
    subject = texts.operand(node.word)
    items = [
        ([texts.pattern(word) for word in item.patterns], body, item.end)
        for item, body in zip(node.items, bodies, strict=True)
    ]
    line = node.line
    subject_parts: Callable[[ShellState], Any] = subject.parts or subject.run
    parted = subject.parts is not None
    waits = subject.wait or any(pattern.wait for patterns, _, _ in items for pattern in patterns)
    fixed = [
        [
            pattern.const if pattern.const is not None and not has_any(pattern.const, "*?[\\(") else None
            for pattern in row
        ]
        for row, _, _ in items
    ]
    chained = any(end != ";;" for _, _, end in items)
    # Texts are looked up, whatever their number; patterns, and what is known only now, are tried in their order.
    table: dict[str, tuple[int, Run]] = {}
    tried: list[tuple[int, Run, texts.Text, list[Callable[[str], bool]] | None]] = []
    number = 0
    for (row, body, _), known in zip(items, fixed, strict=True):
        for one, text in zip(row, known, strict=True):
            number += 1
            if text is not None and len(text) <= LARGE:
                table.setdefault(text, (number, body))
            elif text is not None:
                tried.append((number, body, one, [text.__eq__, text.__eq__]))
            elif one.const is None:
                tried.append((number, body, one, None))
            else:
                tried.append((number, body, one, [compile_pattern(one.const, on).matches for on in (False, True)]))
    many = len(tried) > _ROW * 4
    groups = "(" if any(one.const is not None and "(" in one.const for _, _, one, _ in tried) else ""

    def match(sh: ShellState, value: str, pattern: str) -> bool:
        if not value.isascii() and bytewise(sh):
            value, pattern = as_bytes(value), as_bytes(pattern)
        return compile_pattern(pattern, "extglob" in sh.shopts, "nocasematch" in sh.shopts).matches(value)

    def simple(sh: ShellState) -> Result:
        sh.line, sh.last_command = line, node
        if sh.instrumented:
            return drive(general(sh))
        value: Any = subject_parts(sh)
        if parted and isinstance(value, Parts):
            return drive(after(sh, value))
        if (
            many
            or long_match(groups, len(value))
            or "nocasematch" in sh.shopts
            or not (value.isascii() or not bytewise(sh))
        ):
            return drive(search(sh, value))
        extglob = "extglob" in sh.shopts
        last, found = table.get(value, _NOWHERE)
        for number, body, pattern, matcher in tried:
            if number > last:
                break
            if matcher is not None:
                if matcher[extglob](value):
                    return body(sh)
                continue
            text: Any = pattern.run(sh) if pattern.parts is None else pattern.parts(sh)
            if type(text) is not str or long_match(text, len(value)):
                return drive(search(sh, value, number, text))
            if match(sh, value, text):
                return body(sh)
        if found is not None:
            return found(sh)
        sh.status = 0
        return 0

    async def matched(sh: ShellState, value: str, pattern: str) -> bool:
        if long_match(pattern, len(value)):
            return await offload(sh.budget, partial(match, sh, value, pattern))
        return match(sh, value, pattern)

    async def after(sh: ShellState, subject: Parts) -> int:
        return await search(sh, await put_together(sh, subject))

    async def general(sh: ShellState) -> int:
        sh.line, sh.last_command = line, node
        if sh.instrumented and (ends := await sh.shell.before_compound(sh, node)) is not None:
            return ends
        return await search(sh, await ready(sh, subject))

    async def search(sh: ShellState, value: str, begin: int = 0, given: str | Parts = "") -> int:
        """All in their order; from the pattern of a number on, if none before it matches and its text is known."""
        falling = False
        tries = 0
        result: Any = 0
        for number, (patterns, body, end) in enumerate(items):
            if not number % _ROW:
                await sh.budget.yield_turn()
            hit = falling
            if not falling:
                for pattern in patterns:
                    tries += 1
                    if not tries % _ROW:
                        await sh.budget.yield_turn()
                    if tries < begin:
                        continue
                    if tries == begin:
                        text = given if isinstance(given, str) else await put_together(sh, given)
                    else:
                        text = await ready(sh, pattern)
                    if await matched(sh, value, text):
                        hit = True
                        break
            if not hit:
                continue
            result = body(sh)
            if type(result) is not int:
                result = await result
            if result > 255 or end == ";;":
                return int(result)
            falling = end == ";&"
        if not result:
            sh.status = 0
        return int(result)

    return (lambda sh: drive(general(sh))) if waits or chained else simple
