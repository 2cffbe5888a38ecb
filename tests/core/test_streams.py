"""Streams: exact consumption, back-pressure, broken pipes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.core.errors import LimitExceeded
from ramet.core.streams import (
    BytesReader,
    Capture,
    IteratorReader,
    Null,
    Reader,
    Tee,
    copy,
    line_blocks,
    lines,
    pipe,
)

BLOCKS = st.lists(st.binary(max_size=12).map(lambda b: b.replace(b"\x00", b"\n")), max_size=12)


async def _trickle(blocks: list[bytes]) -> AsyncIterator[bytes]:
    for block in blocks:
        await asyncio.sleep(0)
        yield block


def readers(blocks: list[bytes]) -> list[Reader]:
    return [BytesReader(*blocks), IteratorReader(_trickle(blocks))]


@given(BLOCKS)
def test_lines_are_the_lines(blocks: list[bytes]) -> None:
    whole = b"".join(blocks)
    expected = whole.split(b"\n")
    expected = [line + b"\n" for line in expected[:-1]] + ([expected[-1]] if expected[-1] else [])

    async def check() -> None:
        for make in (0, 1):
            assert [line async for line in lines(readers(blocks)[make])] == expected
            one_by_one = []
            reader = readers(blocks)[make]
            while line := await reader.readline():
                one_by_one.append(line)
            assert one_by_one == expected
            assert b"".join([block async for block in line_blocks(readers(blocks)[make])]) == whole

    asyncio.run(check())


@given(BLOCKS)
def test_readline_now_agrees_with_readline(blocks: list[bytes]) -> None:
    async def check() -> None:
        now, later = BytesReader(*blocks), BytesReader(*blocks)
        while line := await later.readline():
            assert now.readline_now() == line
        assert now.readline_now() == b""

    asyncio.run(check())


@given(BLOCKS, st.lists(st.integers(1, 9), max_size=10))
def test_every_byte_is_seen_once(blocks: list[bytes], sizes: list[int]) -> None:
    async def check() -> None:
        for reader in readers(blocks):
            seen = [await reader.readline()]
            for size in sizes:
                seen.append(await reader.read(size))
                assert len(seen[-1]) <= size
            reader.unread(seen.pop())
            seen.append(await reader.read_all())
            assert b"".join(seen) == b"".join(blocks)

    asyncio.run(check())


def test_a_pipe_holds_back_the_writer() -> None:
    async def check() -> None:
        reader, writer = pipe(capacity=10)
        writer.write(b"x" * 10)
        assert writer.full
        waiting = asyncio.ensure_future(writer.drain())
        await asyncio.sleep(0)
        assert not waiting.done()
        assert await reader.read(4) == b"xxxx"
        await waiting
        await writer.close()
        assert await reader.read_all() == b"x" * 6

    asyncio.run(check())


def test_a_closed_reader_breaks_the_pipe() -> None:
    async def check() -> None:
        reader, writer = pipe(capacity=1)
        writer.write(b"xx")
        waiting = asyncio.ensure_future(writer.drain())
        await asyncio.sleep(0)
        await reader.close()
        with pytest.raises(BrokenPipeError):
            await waiting
        with pytest.raises(BrokenPipeError):
            writer.write(b"y")

    asyncio.run(check())


def test_two_readers_of_one_pipe_share_it() -> None:
    async def check() -> None:
        reader, writer = pipe()
        first, second = asyncio.ensure_future(reader.readline()), asyncio.ensure_future(reader.readline())
        await asyncio.sleep(0)
        writer.write(b"one\n")
        writer.write(b"two\n")
        await writer.close()
        assert {await first, await second} == {b"one\n", b"two\n"}

    asyncio.run(check())


def test_capture_is_bounded_loudly() -> None:
    capture = Capture(limit=3)
    capture.write(b"abc")
    with pytest.raises(LimitExceeded):
        capture.write(b"d")
    with pytest.raises(LimitExceeded):
        capture.write(b"e")
    assert capture.getvalue() == b"abc" and len(capture) == 5


def test_tee_null_and_copy() -> None:
    async def check() -> None:
        a, b = Capture(), Capture()
        assert await copy(BytesReader(b"12", b"34"), Tee([a, b, Null()])) == 4
        assert a.getvalue() == b.getvalue() == b"1234"
        assert await Null().read() == b""

    asyncio.run(check())


def test_how_output_begins_is_known_without_putting_it_together() -> None:
    out = Capture()
    assert out.head(3) == b""
    for part in (b"ab", b"", b"cde", b"f"):
        out.write(part)
    assert [out.head(size) for size in (0, 1, 2, 3, 5, 9)] == [b"", b"a", b"ab", b"abc", b"abcde", b"abcdef"]
    assert len(out.parts) == 4
