"""Event-loop holds and cancellation: hundreds of scripts with values of up to 1 MiB or 20,000 items.

`python -m bench holds [part of a name ...]` runs each script of `holds.txt` and lists those that hold the loop for
longer than the mark; `python -m bench cancel [part of a name ...]` cancels each of them at some moments.
Times are those of the processor: all that this process does between two turns of the loop, so work in threads that
keeps the interpreter to itself counts too, and a busy machine does not.
"""

from __future__ import annotations

import asyncio
import gc
import random
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import _lru_cache_wrapper
from pathlib import Path
from typing import Final

from tests.support.loop_holds import Lateness, longest_hold

from ramet import RAMResource, Workspace
from ramet.core.paths import parse

HOLD: Final = 0.020
"""Seconds that the loop may be held."""
CANCEL: Final = 1.0
"""Seconds in which a cancelled script ends."""
TRIES: Final = 3
LONGEST: Final = 4.0
"""Seconds of a script that are looked at; what it does then is much the same."""
MOMENTS: Final = 3
"""Times that a script is cancelled."""
MIB: Final = 1 << 20

# ------------------------------------------------------------------------------------------------------------ values

BEFORE: Final = {
    "text": "printf -v x '%0200000d' 0",
    "huge": "printf -v x '%01000000d' 0",
    "wide": "printf -v x '%0500000d' 0; x=${x//0/é}",
    "words": "a=({1..20000})",
    "texts": "printf -v x '%0300000d' 0; a=($x 1$x 2$x)",
    "keys": "declare -A h; for i in {1..20000}; do h[k$i]=$i; done",
    "pattern": "p=$(< /data/choice); v='some text with xyzzyxyz in it'",
    "stars": "p=$(< /data/stars); v='some text with xyzzyxyz in it'",
    "nothing": ":",
    "tool": ":",
}
"""How each kind of value is made."""


def _words(count: int) -> list[str]:
    rng = random.Random(1)
    letters = "abcdefghijklmnopqrstuvw"
    return ["".join(rng.choices(letters, k=9)) for _ in range(count)]


def files() -> dict[str, bytes]:
    """What the scripts read, below /data."""
    words = _words(20_000)
    choice = "|".join(words).encode()
    return {
        "choice": choice,
        "basic": choice.replace(b"|", b"\\|"),
        "stars": "|".join(f"{word[:6]}.*{word[6:]}" for word in words[:10_000]).encode(),
        "list": "\n".join(words).encode() + b"\n",
        "starlist": "\n".join(f"{word[:6]}.*{word[6:]}" for word in words[:10_000]).encode() + b"\n",
        "awk": b"/" + choice + b"/ { n++ } END { print n }\n",
        "sed": b"s/" + choice.replace(b"|", b"\\|") + b"/x/g\n",
        "some": b"a line of text xyzzyxyz\n" * 2000 + words[7].encode() + b"\n",
        "line": (b"0123456789" * 100 + b" ") * (MIB // 1001) + b"\n",
        "fields": b"abc def, " * 20_000 + b"\n",
        "bare": b"x" * MIB,
        "lines": b"one line of a file of many\n" * 20_000,
        "rows": b"".join(b"%s %d %d\n" % (word.encode(), i * 7919 % 1000, i) for i, word in enumerate(_words(20_000))),
        "json": b'["' + b"x" * MIB + b'"]\n',
        "nulls": bytes(MIB),
    }


# ------------------------------------------------------------------------------------------------------------ places

OPERATORS: Final = (
    "", ":-b", ":+c", ":?", "#0", "##*1", "#*0", "%0", "%%1*", "/0/1", "//0/1", "//[^0]", "//1/22", "/#0/1", "/%0/1",
    "^", "^^", ",", ",,", "~~", "@Q", "@E", "@P", "@A", "@a", "@u", "@U", "@L", "@K", ":5", ":5:9000000", ": -5",
)  # fmt: skip
FILES: Final = ("line", "bare")

BODIES: Final = {
    "lines": ("0123456789\n", 20_000),
    "onelong": ("0", 1_000_000),
    "variables": ("01234 $v 56789\n", 20_000),
    "tabs": ("\t0123456789\n", 20_000),
}
"""What is in a here-document, and how often."""


@dataclass(frozen=True)
class Script:
    kind: str
    text: str

    @property
    def name(self) -> str:
        return f"[{self.kind}] {self.text}"

    @property
    def before(self) -> str:
        return BEFORE.get(self.kind, "v=1")

    @property
    def whole(self) -> str:
        """What runs."""
        text = self.text.replace("⏎", "\n")
        if self.kind in BODIES:
            piece, times = BODIES[self.kind]
            return text.replace("BODY", piece * times)
        return text if self.kind not in ("tool", "pattern", "stars") else f"{{ {text}\n}} > /dev/null"


def scripts() -> Iterator[Script]:
    kinds: list[str] = []
    for row in (Path(__file__).parent / "holds.txt").read_text().splitlines():
        if row.startswith("= "):
            kinds = row[2:].split()
        elif row and not row.startswith("# "):
            every = [row.replace("OP", op) for op in OPERATORS] if "OP}" in row else [row]
            every = [text.replace("FILE", f"/data/{name}") for text in every for name in FILES]
            yield from (Script(kind, text) for kind in kinds for text in dict.fromkeys(every))


# --------------------------------------------------------------------------------------------------------- measuring


class World:
    """The files, and a workspace over a copy of them for every try."""

    def __init__(self) -> None:
        self._ram = RAMResource()

    async def prepare(self) -> None:
        for name, data in files().items():
            await self._ram.write(parse(f"/{name}"), data)

    async def open(self, script: Script) -> Workspace:
        ws = Workspace({"/data": self._ram.fork()})
        # What is imported on the first call is not at stake: a small try comes first.
        words = " ".join(sorted({word for word in script.text[:300].split() if word.isalnum()}))
        await ws.execute(
            f"[[ a =~ b ]]; printf %q x; : ${{x//a}}; for c in {words}; do $c --help; done", stdin=b"", timeout=1
        )
        await ws.execute(f"exec 2> /dev/null; {script.before}", stdin=b"")
        return ws


def rest() -> None:
    """Nothing is known from the try before, and Python's collector has nothing to do while something is measured."""
    gc.unfreeze()
    for one in gc.get_objects():
        if isinstance(one, _lru_cache_wrapper) and one.__module__.startswith(("ramet.patterns", "ramet.commands")):
            one.cache_clear()
    gc.collect()
    gc.freeze()
    gc.disable()


async def bounded(work: Awaitable[object], seconds: float) -> None:
    try:
        await asyncio.wait_for(asyncio.ensure_future(work), seconds)
    except TimeoutError:
        return


async def held(world: World, script: Script) -> float:
    """The longest hold of the best try."""
    best = float("inf")
    for _ in range(TRIES):
        best = min(best, await _held_once(world, script, time.process_time))
        if best <= HOLD:
            break
    return best


async def _held_once(world: World, script: Script, clock: Callable[[], float]) -> float:
    ws = await world.open(script)
    rest()
    worst = await longest_hold(bounded(ws.execute(script.whole, stdin=b""), LONGEST), clock)
    await ws.close()
    return worst


@dataclass
class Ending:
    """How a script ended that was cancelled."""

    late: float = 0.0
    after: float = 0.0
    """Seconds of work that went on when nobody waited any more."""
    broken: str = ""


async def cancelled(world: World, script: Script, moment: float, way: int) -> Ending:
    """Cancels a script: its task, by an event, or by a time limit."""
    ws = await world.open(script)
    rest()
    stop = asyncio.Event()
    timeout = moment if way == 2 else None
    task = asyncio.ensure_future(ws.execute(script.whole, stdin=b"", cancel=stop, timeout=timeout))
    await asyncio.wait((task,), timeout=moment)
    found = Ending()
    if not task.done():
        lateness = Lateness()
        if way == 0:
            task.cancel()
        elif way == 1:
            stop.set()
        await asyncio.wait((task,), timeout=60)
        found.late = lateness()
        if not task.done():
            found.broken = "does not end"
            return found
        start = time.process_time()
        await asyncio.sleep(0.05)
        found.after = time.process_time() - start
    if not task.cancelled():
        task.exception()
    try:
        answer = await asyncio.wait_for(
            asyncio.ensure_future(ws.execute('set +xv; exec 2>&1; q=5; echo "$((q+1))"; echo b | cat')), 30
        )
    except BaseException as error:
        found.broken = repr(error)
    else:
        if (answer.exit_code, answer.stdout) != (0, b"6\nb\n"):
            found.broken = f"then: {answer.exit_code} {answer.stdout[:80]!r}"
    await ws.close()
    return found


async def _holds(wanted: list[Script]) -> int:
    world, over, worst = World(), 0, 0.0
    await world.prepare()
    for number, script in enumerate(wanted, 1):
        print(f"  {number} of {len(wanted)} ...", end="\r", file=sys.stderr)
        hold = await held(world, script)
        worst = max(worst, hold)
        if hold > HOLD:
            over += 1
            own = await _held_once(world, script, time.thread_time)
            print(f"{hold * 1000:8.1f} ms ({own * 1000:.1f} by the loop itself)  {script.name}", flush=True)
    print(f"{len(wanted)} scripts, {over} over {HOLD * 1000:g} ms, worst {worst * 1000:.1f} ms, {_memory()}")
    return int(over > 0)


async def _cancels(wanted: list[Script]) -> int:
    world, over, worst, rng = World(), 0, 0.0, random.Random(3)
    await world.prepare()
    for number, script in enumerate(wanted, 1):
        print(f"  {number} of {len(wanted)} ...", end="\r", file=sys.stderr)
        ws = await world.open(script)
        start = time.monotonic()
        await bounded(ws.execute(script.whole, stdin=b""), LONGEST)
        spent = time.monotonic() - start
        await ws.close()
        wrong = Ending()
        for way in range(MOMENTS):
            moment = rng.uniform(0, min(spent, LONGEST))
            found = Ending(late=1e9)
            for _ in range(TRIES):
                again = await cancelled(world, script, moment, way)
                found = Ending(min(found.late, again.late), again.after, found.broken or again.broken)
                if found.late <= CANCEL:
                    break
            wrong = Ending(max(wrong.late, found.late), max(wrong.after, found.after), wrong.broken or found.broken)
        worst = max(worst, wrong.late)
        if wrong.late > CANCEL or wrong.after > CANCEL / 2 or wrong.broken:
            over += 1
            went_on = f" then {wrong.after * 1000:.0f} ms more" if wrong.after > CANCEL / 2 else ""
            print(f"{wrong.late * 1000:8.1f} ms{went_on}  {script.name}  {wrong.broken}", flush=True)
    print(
        f"{len(wanted)} scripts, {over} over {CANCEL * 1000:g} ms or broken, worst {worst * 1000:.1f} ms, {_memory()}"
    )
    return int(over > 0)


def _memory() -> str:
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB at most"


def main(which: str, parts: list[str]) -> int:
    wanted = [script for script in scripts() if not parts or any(part in script.name for part in parts)]
    return asyncio.run(_holds(wanted) if which == "holds" else _cancels(wanted))
