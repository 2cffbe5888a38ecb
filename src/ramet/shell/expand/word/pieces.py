"""`Text`: a compiled way to one text, and how several make one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from ramet.concurrency.sizes import BATCH, SMALL
from ramet.shell.expand.size_check import within


class Text(NamedTuple):
    """A way to one text: `const` when it never changes; `run` is a coroutine function when `wait`."""

    wait: bool
    run: Callable[[Any], Any]
    const: str | None = None


def const(text: str) -> Text:
    return Text(False, lambda host: text, text)


def concat(pieces: list[Text]) -> Text:
    """Return the way to the texts of all pieces, one after the other."""
    if len(pieces) == 1:
        return pieces[0]
    merged: list[Text] = []
    constant: list[str] = []
    for piece in pieces:
        if piece.const is not None:
            constant.append(piece.const)
            continue
        if constant:
            merged.append(const("".join(constant)))
            constant = []
        merged.append(piece)
    if constant or not merged:
        merged.append(const("".join(constant)))
    if len(merged) == 1:
        return merged[0]
    if len(merged) > BATCH or any(piece.wait for piece in merged):
        return Text(True, _concat_waiting(merged))
    runs = [piece.run for piece in merged]
    if len(runs) == 2:
        first, second = runs

        def both(host: Any) -> str:
            a, b = first(host), second(host)
            if len(a) + len(b) > SMALL:
                within(host, len(a) + len(b))
            return a + b  # type: ignore[no-any-return]

        return Text(False, both)

    def several(host: Any) -> str:
        found = [run(host) for run in runs]
        within(host, sum(map(len, found)))
        return "".join(found)

    return Text(False, several)


async def ready(host: Any, text: Text) -> str:
    """Return a text, waiting where it must be waited for."""
    return await text.run(host) if text.wait else text.run(host)  # type: ignore[no-any-return]


def _concat_waiting(pieces: list[Text]) -> Callable[[Any], Awaitable[str]]:
    async def run(host: Any) -> str:
        found: list[str] = []
        for place, piece in enumerate(pieces, 1):
            found.append(await piece.run(host) if piece.wait else piece.run(host))
            if not place % BATCH:
                within(host, sum(map(len, found)))
                await host.budget.yield_turn()
        within(host, sum(map(len, found)))
        return "".join(found)

    return run
