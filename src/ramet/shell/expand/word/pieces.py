"""Texts as ways to come by them, and how several make one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, NamedTuple

from ramet.concurrency.sizes import SMALL
from ramet.shell.expand.long_text import Parts, length, put_together
from ramet.shell.expand.size_check import within
from ramet.shell.expand.values import HUGE


class Text(NamedTuple):
    """A way to one text: `const` when it never changes; `run` is a coroutine function when `wait`."""

    wait: bool
    run: Callable[[Any], Any]
    const: str | None = None
    large: Callable[[Any], Coroutine[Any, Any, str] | None] | None = None
    """For all values of an array in one text: gives the way to wait for it when there are very many of them."""
    parts: Callable[[Any], str | Parts] | None = None
    """For a text of several parts: what `run` gives, or those parts where they are very long."""


def const(text: str) -> Text:
    return Text(False, lambda host: text, text)


def concat(pieces: list[Text]) -> Text:
    if len(pieces) == 1:
        return pieces[0]
    merged: list[Text] = []
    constant: list[Text] = []
    for piece in pieces:
        if piece.const is not None:
            constant.append(piece)
            continue
        if constant:
            merged.append(_one(constant))
            constant = []
        merged.append(piece)
    if constant or not merged:
        merged.append(_one(constant))
    if len(merged) == 1:
        return merged[0]
    if len(merged) > _MANY or any(piece.wait for piece in merged):
        return Text(True, _concat_waiting(merged))
    runs = [piece.run for piece in merged]
    large = _large_of(merged)
    parts = _parts_of(merged)
    if len(runs) == 2:
        first, second = runs

        def two(host: Any) -> str | Parts:
            a, b = first(host), second(host)
            size = len(a) + len(b)
            if size > SMALL:
                within(host, size)
                if size > HUGE:
                    host.parted = True
                    return Parts((a, b))
            return a + b  # type: ignore[no-any-return]

        def both(host: Any) -> str:
            a, b = first(host), second(host)
            if len(a) + len(b) > SMALL:
                within(host, len(a) + len(b))
            return a + b  # type: ignore[no-any-return]

        return Text(False, both, None, large, parts or two)

    def several(host: Any) -> str | Parts:
        found = [run(host) for run in runs]
        size = sum(map(len, found))
        if size > SMALL:
            within(host, size)
            if size > HUGE:
                host.parted = True
                return Parts(found)
        return "".join(found)

    def joined(host: Any) -> str:
        found = several(host)
        return found if type(found) is str else "".join(found)

    return Text(False, joined, None, large, parts or several)


def _one(constant: list[Text]) -> Text:
    """Constant texts as one. A single one stays what it is: of very many, none has to be freed."""
    return constant[0] if len(constant) == 1 else const("".join([piece.const or "" for piece in constant]))


def _parts_of(pieces: list[Text]) -> Callable[[Any], str | Parts] | None:
    """The parts of a text of several of which some may come in parts themselves."""
    if all(piece.parts is None for piece in pieces):
        return None
    runs: list[Callable[[Any], Any]] = [piece.parts or piece.run for piece in pieces]

    def put(found: Sequence[Any], host: Any) -> str | Parts:
        if any(isinstance(one, Parts) for one in found):
            within(host, sum(map(length, found)))
            return Parts(found)
        size = sum(map(len, found))
        if size > SMALL:
            within(host, size)
            if size > HUGE:
                host.parted = True
                return Parts(found)
        return "".join(found)

    if len(runs) == 2:
        first, second = runs

        def two(host: Any) -> str | Parts:
            a, b = first(host), second(host)
            if not host.parted and len(a) + len(b) <= SMALL:  # else one of them may be parts
                return a + b  # type: ignore[no-any-return]
            return put((a, b), host)

        return two

    def several(host: Any) -> str | Parts:
        found: list[Any] = [run(host) for run in runs]
        if not host.parted and sum(map(len, found)) <= SMALL:  # else some of them may be parts
            return "".join(found)
        return put(found, host)

    return several


async def ready(host: Any, text: Text) -> str:
    """A text for someone who can wait."""
    if text.wait:
        return await text.run(host)  # type: ignore[no-any-return]
    found = (text.parts or text.run)(host)
    return await put_together(host, found) if isinstance(found, Parts) else found


_MANY: Final = 2048
"""Parts of a text from which on others get their turns while it is put together."""


def _large_of(pieces: list[Text]) -> Callable[[Any], Coroutine[Any, Any, str] | None] | None:
    """The way to wait for a text with very many values of an array in it."""
    if not any(piece.large is not None for piece in pieces):
        return None

    def large(host: Any) -> Coroutine[Any, Any, str] | None:
        pending = [None if piece.large is None else piece.large(host) for piece in pieces]
        return None if pending.count(None) == len(pending) else settled(host, pending)

    async def settled(host: Any, pending: list[Coroutine[Any, Any, str] | None]) -> str:
        try:
            found = [piece.run(host) if one is None else await one for piece, one in zip(pieces, pending, strict=True)]
        finally:
            for one in pending:
                if one is not None:
                    one.close()  # where another part failed, it was never begun
        within(host, sum(map(len, found)))
        return await put_together(host, Parts(found))

    return large


def patient(text: Text) -> Text:
    """The same where whoever wants it can wait: what is made of very many values takes its time."""
    if text.large is None:
        return text
    large, run = text.large, text.run

    async def waiting(host: Any) -> str:
        pending = large(host)
        return run(host) if pending is None else await pending

    return Text(True, waiting)


def _concat_waiting(pieces: list[Text]) -> Callable[[Any], Awaitable[str]]:
    async def run(host: Any) -> str:
        found = [await piece.run(host) if piece.wait else piece.run(host) for piece in pieces]
        size = sum(map(len, found))
        within(host, size)
        if size <= HUGE:
            return "".join(found)
        return await put_together(host, Parts(found))

    async def run_many(host: Any) -> str:
        found: list[str] = []
        size = 0
        for start in range(0, len(pieces), 512):
            await host.budget.yield_turn()
            row = pieces[start : start + 512]
            found.append("".join([await piece.run(host) if piece.wait else piece.run(host) for piece in row]))
            size += len(found[-1])
            within(host, size)
        return "".join(found)

    return run_many if len(pieces) > _MANY else run
