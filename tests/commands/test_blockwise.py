"""What is found does not depend on where the blocks of the input end, and long work leaves the event loop its turns."""

from __future__ import annotations

import asyncio
import random
import re
import time
from itertools import product

import pytest
from tests.commands.test_streaming import CWD, call, make

from ramet.core import ops
from ramet.core.streams import BytesReader

BINARY = b"\0\1abc\0defgh\xff\xfeijklm\nnopq\tr\0\0s\0t\0u\0v\0w\0\0\0end of it"


def cut(data: bytes, size: int) -> BytesReader:
    return BytesReader(*(data[at : at + size] for at in range(0, len(data), size)))


@pytest.mark.parametrize(
    ("options", "unit"),
    [
        (["-n4"], rb"[\t -~]"),
        (["-n1"], rb"[\t -~]"),
        (["-n3", "-w"], rb"[\t-\r -~]"),
        (["-eS", "-n2"], rb"[\t -~\x80-\xff]"),
        (["-el", "-n2"], rb"[\t -~]\0"),
        (["-eb", "-n3"], rb"\0[\t -~]"),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_strings_finds_the_same_in_blocks_of_any_size(options: list[str], unit: bytes, size: int) -> None:
    length = int(next(word for word in options if word.startswith("-n"))[2:])
    wanted = b"".join(
        b"%7d %s\n" % (found.start(), found[0].replace(b"\0", b""))
        for found in re.finditer(b"(?:%s){%d,}" % (unit, length), BINARY)
    )

    async def act() -> tuple[int, bytes, bytes]:
        return await call(await make({}), ["strings", "-td", *options], cut(BINARY, size))

    assert asyncio.run(act()) == (0, wanted, b"")


@pytest.mark.parametrize(("lines", "options"), list(product([0, 1, 5, 30_000], [[], ["-n3"], ["-n20000"]])))
def test_shuf_gives_each_line_at_most_once(lines: int, options: list[str]) -> None:
    data = b"".join(b"%d\n" % n for n in range(lines))
    wanted = min(lines, int(options[0][2:]) if options else lines)

    async def act() -> bytes:
        return (await call(await make({}), ["shuf", *options], cut(data, 4096)))[1]

    out = asyncio.run(act()).split()
    assert len(out) == len(set(out)) == wanted
    assert set(out) <= set(data.split())


@pytest.mark.parametrize("command", [["sort"], ["sort", "-n"], ["shuf"], ["diff", "a", "b"], ["xz", "-1"]])
def test_other_work_goes_on_meanwhile(command: list[str]) -> None:
    """Between two turns of the event loop its thread does a small part of the work, in processor time."""
    rng = random.Random(3)
    data = b"".join(b"%d\n" % rng.randrange(1 << 40) for _ in range(300_000))
    longest = 0.0

    async def measure_turns() -> None:
        nonlocal longest
        last = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            longest, last = max(longest, now - last), now

    async def act() -> float:
        fs = await make({"a": data, "b": data[:1000] + b"new\n" + data[1000:]})
        task = asyncio.create_task(measure_turns())
        began = time.process_time()
        await call(fs, command, cut(data, 65536))
        task.cancel()
        return time.process_time() - began

    assert asyncio.run(act()) > 4 * longest


def chunks(data: bytes, count: int, lines: bool) -> list[bytes]:
    step = len(data) // count
    if not lines:
        ends = [*(i * step for i in range(count)), len(data)]
        return [data[ends[i] : ends[i + 1]] for i in range(count)]
    out, start = [], 0
    for i in range(1, count + 1):
        found = data.find(b"\n", i * step - 1) + 1 if i * step else 0
        end = len(data) if i == count or (i * step and not found) else max(start, found)
        out.append(data[start:end])
        start = end
    return out


TEXTS = [b"", b"a", b"a\nb\n", b"1\n22\n333\n4444\n55555\n", b"x" * 40 + b"\ny\n", b"\n" * 7, b"no end" * 5]


@pytest.mark.parametrize(("data", "count", "lines", "size"), list(product(TEXTS, [1, 3, 8], [False, True], [1, 4, 99])))
def test_split_into_a_number_of_chunks(data: bytes, count: int, lines: bool, size: int) -> None:
    async def act() -> list[bytes]:
        fs = await make({})
        assert (await call(fs, ["split", "-n", f"{'l/' if lines else ''}{count}"], cut(data, size)))[0] == 0
        return [await ops.read_bytes(fs, CWD / name) for name, _ in await ops.scan_sorted(fs, CWD)]

    assert asyncio.run(act()) == chunks(data, count, lines)
