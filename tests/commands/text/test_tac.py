"""tac reads backwards in blocks: wherever a block ends, records come out whole, from files and from pipes."""

from __future__ import annotations

import asyncio
from itertools import product

import pytest
from tests.commands.test_streaming import call, make

from ramet.commands.text import tac
from ramet.core.streams import BytesReader

INPUTS = [
    b"",
    b"\n",
    b"a",
    b"a\n",
    b"a\nb",
    b"one\ntwo\nthree\n",
    b"\n\nx\n\n",
    b"a long line without an end" * 3,
    b"x\n" * 9,
]


def turned(data: bytes, before: bool) -> bytes:
    pieces = data.split(b"\n")
    if before:
        records = [pieces[0], *(b"\n" + piece for piece in pieces[1:])]
    else:
        records = [piece + b"\n" for piece in pieces[:-1]] + [pieces[-1]]
    return b"".join(reversed(records))


@pytest.mark.parametrize(("data", "before", "size"), list(product(INPUTS, [False, True], [1, 2, 5, 1000])))
def test_records_come_out_whole(data: bytes, before: bool, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tac, "_BLOCK", size)
    monkeypatch.setattr(tac, "_IN_MEMORY", 4)
    options = ["-b"] if before else []

    async def both() -> tuple[bytes, bytes]:
        fs = await make({"f": data})
        piped = await call(fs, ["tac", *options], BytesReader(data[:3], data[3:]))
        return (await call(fs, ["tac", *options, "f"]))[1], piped[1]

    assert asyncio.run(both()) == (turned(data, before), turned(data, before))
