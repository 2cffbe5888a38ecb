"""Compile `case`: constant texts are looked up in a table, patterns tried in their order."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from ramet.concurrency.offload import offload
from ramet.concurrency.sizes import BATCH
from ramet.shell.expand.c_locale import as_bytes, bytewise
from ramet.shell.expand.word import to_text as texts
from ramet.shell.expand.word.pieces import ready
from ramet.shell.interp.run.maybe_async import Result, Run, drive
from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.syntax.nodes import Case
from ramet.text.pattern.matcher import compile_pattern, is_costly

_NOWHERE: Final[tuple[int, None]] = (sys.maxsize, None)


def compile_case(node: Case, bodies: list[Run]) -> Run:
    subject = texts.operand(node.word)
    items = [
        ([texts.pattern(word) for word in item.patterns], body, item.end)
        for item, body in zip(node.items, bodies, strict=True)
    ]
    line = node.line
    subject_text = subject.run
    waits = subject.wait or any(pattern.wait for patterns, _, _ in items for pattern in patterns)
    fixed = [
        [
            pattern.const if pattern.const is not None and not any(c in pattern.const for c in "*?[\\(") else None
            for pattern in row
        ]
        for row, _, _ in items
    ]
    chained = any(end != ";;" for _, _, end in items)
    table: dict[str, tuple[int, Run]] = {}
    tried: list[tuple[int, Run, texts.Text, list[Callable[[str], bool]] | None]] = []
    number = 0
    for (row, body, _), known in zip(items, fixed, strict=True):
        for one, text in zip(row, known, strict=True):
            number += 1
            if text is not None:
                table.setdefault(text, (number, body))
            elif one.const is None:
                tried.append((number, body, one, None))
            else:
                tried.append((number, body, one, [compile_pattern(one.const, on).matches for on in (False, True)]))
    many = len(tried) > BATCH
    groups = "(" if any(one.const is not None and "(" in one.const for _, _, one, _ in tried) else ""

    def match(sh: ShellState, value: str, pattern: str) -> bool:
        if not value.isascii() and bytewise(sh):
            value, pattern = as_bytes(value), as_bytes(pattern)
        return compile_pattern(pattern, "extglob" in sh.shopts, "nocasematch" in sh.shopts).matches(value)

    def simple(sh: ShellState) -> Result:
        sh.line, sh.last_command = line, node
        if sh.instrumented:
            return drive(general(sh))
        value = subject_text(sh)
        if (
            many
            or is_costly(groups, len(value))
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
            text = pattern.run(sh)
            if is_costly(text, len(value)):
                return drive(search(sh, value, number, text))
            if match(sh, value, text):
                return body(sh)
        if found is not None:
            return found(sh)
        sh.status = 0
        return 0

    async def matched(sh: ShellState, value: str, pattern: str) -> bool:
        if is_costly(pattern, len(value)):
            return await offload(sh.budget, partial(match, sh, value, pattern))
        return match(sh, value, pattern)

    async def general(sh: ShellState) -> int:
        sh.line, sh.last_command = line, node
        if sh.instrumented and (ends := await sh.shell.before_compound(sh, node)) is not None:
            return ends
        return await search(sh, await ready(sh, subject))

    async def search(sh: ShellState, value: str, begin: int = 0, given: str = "") -> int:
        """Try all patterns in their order, or those from number `begin` on, whose text is `given`."""
        falling = False
        tries = 0
        result: Any = 0
        for number, (patterns, body, end) in enumerate(items):
            if not number % BATCH:
                await sh.budget.yield_turn()
            hit = falling
            if not falling:
                for pattern in patterns:
                    tries += 1
                    if not tries % BATCH:
                        await sh.budget.yield_turn()
                    if tries < begin:
                        continue
                    text = given if tries == begin else await ready(sh, pattern)
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
