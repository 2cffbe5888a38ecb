"""`ChatDays`: the messages of one channel by day, in a temporary file. `Chats`: those of all channels, as items.

Rules that this file keeps:
- Days are days of UTC. All days are one paged history; one day alone is a history of that day.
- A day is asked for again when it is older than its trust: today 10 seconds, this week 5 minutes, before that a day.
- Memory holds 8 bytes per message; the messages themselves are in an unlinked file.
"""

from __future__ import annotations

import asyncio
import errno
import json
import re
import tempfile
import time
from array import array
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import IO, Any, Final

from ramet.backends.services.nodes import Item, Place
from ramet.concurrency.loop_local import LoopLocal
from ramet.core.errors import fail
from ramet.core.stat import Kind, Stat
from ramet.core.streams import closing

TODAY_TTL: Final = 10.0
WEEK_TTL: Final = 300.0
OLDER_TTL: Final = 86400.0
GROUP: Final = 256
"""Messages that are read from the file at once."""
WASTE: Final = 64 << 20
"""Bytes of messages that were asked for again, after which the file is begun anew."""

MOST_CHANNELS: Final = 64
"""Channels whose messages are kept in temporary files at a time."""

Message = dict[str, Any]
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
History = Callable[[float, float], AsyncIterator[Message]]
"""The messages in [oldest, latest), newest first."""


@dataclass
class _Day:
    """Where the messages of a day begin in the file, newest first; the last number is the end."""

    offsets: array[int] = field(default_factory=lambda: array("Q"))
    asked: float = 0.0
    last: float = 0.0


def start_of(day: str) -> float:
    return datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC).timestamp()


def day_of(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


class _Spool:
    """A temporary file that closes with its last reader."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile(prefix="ramet-chat-")
        self.end = self.wasted = 0

    def append(self, line: bytes) -> int:
        self._file.seek(self.end)
        self._file.write(line)
        self.end += len(line)
        return self.end

    def read(self, start: int, stop: int) -> bytes:
        self._file.seek(start)
        return self._file.read(stop - start)

    def __del__(self) -> None:
        self._file.close()


class ChatDays:
    def __init__(
        self,
        history: History,
        days: int,
        clock: Callable[[], float] = time.time,
        *,
        at: Callable[[Message], float] = lambda message: float(message["ts"]),
    ) -> None:
        """`days` are listed; `at` is the time of a message."""
        self._history, self._window, self._clock, self._at = history, days, clock, at
        self._days: dict[str, _Day] = {}
        self._whole = False
        self._spool = _Spool()
        self._lock = LoopLocal(asyncio.Lock)

    def trust(self, day: str) -> float:
        """Seconds for which a day is trusted: messages are edited and answered late."""
        age = self._clock() - start_of(day)
        return TODAY_TTL if age < 86400 else WEEK_TTL if age < 7 * 86400 else OLDER_TTL

    def _stale(self, day: str) -> bool:
        found = self._days.get(day)
        return found is None or self._clock() - found.asked >= self.trust(day)

    async def days(self) -> list[tuple[str, float]]:
        """The days of the window that have messages, each with the time of its last one."""
        async with self._lock.get():
            self._trim()
            now = self._clock()
            today = date.fromisoformat(day_of(now))
            window = [(today - timedelta(days=number)).isoformat() for number in range(self._window + 1)]
            if not self._whole:
                await self._load(start_of(window[-1]), now, window)
                self._whole = True
            elif stale := [day for day in window if self._stale(day)]:
                await self._load(start_of(min(stale)), now, [day for day in window if day >= min(stale)])
        return [(day, found.last) for day, found in sorted(self._days.items()) if found.offsets]

    async def messages(self, day: str) -> AsyncIterator[Message]:
        """The messages of a day, oldest first."""
        offsets, spool = (await self._day(day)).offsets, self._spool
        for end in range(len(offsets) - 1, 0, -GROUP):
            start = max(0, end - GROUP)
            for line in reversed(spool.read(offsets[start], offsets[end]).split(b"\n")[:-1]):
                yield json.loads(line)

    async def last(self, day: str) -> float | None:
        """The time of the last message of a day; None if it has none."""
        found = await self._day(day)
        return found.last if found.offsets else None

    async def _day(self, day: str) -> _Day:
        async with self._lock.get():
            self._trim()
            if self._stale(day):
                await self._load(start_of(day), start_of(day) + 86400, [day])
            return self._days[day]

    async def _load(self, oldest: float, latest: float, days: list[str]) -> None:
        """Ask for a range of time and replace what is known of its days."""
        asked = self._clock()
        found: dict[str, _Day] = {day: _Day(asked=asked) for day in days}
        async with closing(self._history(oldest, latest)) as messages:
            async for message in messages:
                at = self._at(message)
                day = found.get(day_of(at))
                if day is None:
                    continue  # outside of what was asked for
                if not day.offsets:
                    day.last = at
                    day.offsets.append(self._spool.end)
                line = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
                day.offsets.append(self._spool.append(line + b"\n"))
        for name, day in found.items():
            old = self._days.get(name)
            if old is not None and old.offsets:
                self._spool.wasted += old.offsets[-1] - old.offsets[0]
            self._days[name] = day

    def _trim(self) -> None:
        if self._spool.wasted > WASTE:
            self.forget()

    def forget(self) -> None:
        """Ask for everything again."""
        self._days.clear()
        self._whole = False
        self._spool = _Spool()


class Chats:
    """The days of channels as items: `depth` items stand above a channel, below it come days."""

    def __init__(
        self,
        history: Callable[[str, float, float], AsyncIterator[Message]],
        days: int,
        *,
        depth: int = 0,
        at: Callable[[Message], float] = lambda message: float(message["ts"]),
    ) -> None:
        self._history, self._window, self._depth, self._at = history, days, depth, at
        self._kept: OrderedDict[str, ChatDays] = OrderedDict()

    def _chat(self, place: Place) -> ChatDays:
        channel = place.items[self._depth].key
        found = self._kept.get(channel)
        if found is None:
            found = self._kept[channel] = ChatDays(partial(self._history, channel), self._window, at=self._at)
            if len(self._kept) > MOST_CHANNELS:
                self._kept.popitem(last=False)
        self._kept.move_to_end(channel)
        return found

    @staticmethod
    def key(name: str) -> str | None:
        return name if _DAY.fullmatch(name) else None

    async def days(self, place: Place) -> AsyncIterator[Item]:
        """The days of the window that have messages."""
        chat = self._chat(place)
        for day, last in await chat.days():
            yield self._as_day(day, last, chat)

    async def day(self, place: Place, key: str) -> Item:
        """Any day, also one before the window."""
        try:
            date.fromisoformat(key)
        except ValueError:
            raise fail(errno.ENOENT, place.path) from None
        chat = self._chat(place)
        last = await chat.last(key)
        if last is None:
            raise fail(errno.ENOENT, place.path)
        return self._as_day(key, last, chat)

    def _as_day(self, day: str, last: float, chat: ChatDays) -> Item:
        return Item(day, day, None, Stat(Kind.DIR, None, round(last * 1e9), None, chat.trust(day)))

    def messages(self, place: Place) -> AsyncIterator[Message]:
        """The messages of the day of a place, oldest first."""
        return self._chat(place).messages(place.items[self._depth + 1].key)

    def forget(self, channel: str | None = None) -> None:
        """Ask for a channel again, or for all of them."""
        if channel is None:
            self._kept.clear()
        else:
            self._kept.pop(channel, None)
