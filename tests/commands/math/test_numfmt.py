"""numfmt's quick way with ordinary numbers gives what its careful way does, which `--debug` asks for."""

from __future__ import annotations

import asyncio
import functools
import random

import pytest

from ramet import Workspace


@functools.cache
def inputs() -> str:
    rng = random.Random(11)
    edges = [
        base**power * factor + change
        for base in (1000, 1024)
        for power in range(1, 5)
        for factor in (1, 2, 9, 10, 99, 100, 999, 1000, 1023)
        for change in (-1, 0, 1)
    ]
    numbers = [*map(str, edges), *(str(rng.randrange(10 ** rng.randrange(1, 20))) for _ in range(80))]
    numbers += [f"{rng.randrange(2000)}.{rng.randrange(1000)}{rng.choice('KMGTPEZY')}" for _ in range(80)]
    numbers += [f"{rng.randrange(2000)}{rng.choice('KMGTPEZYx')}{rng.choice(['', 'i'])}" for _ in range(80)]
    numbers += ["0", "00", "007", "-5", "1.5", "", "x", "9.99K", "99.95K", "999Y", "99Y", "123456789012345678"]
    return "".join(f"{n} 1024 rest\n{n}:2048\n  {n}\n{n}\ttab  {n}\n" for n in numbers)


@pytest.mark.parametrize("to", ["none", "si", "iec", "iec-i"])
@pytest.mark.parametrize("from_", ["none", "auto", "si", "iec", "iec-i"])
@pytest.mark.parametrize("more", ["", "--field=2", "--field=-", "-d: --field=2", "-d:", "--padding=9", "--header=3"])
def test_quick_and_careful_agree(to: str, from_: str, more: str) -> None:
    async def both() -> list[bytes]:
        ws = Workspace()
        script = f"numfmt --to={to} --from={from_} {more} --invalid=ignore"
        results = [await ws.execute(script + extra, stdin=inputs().encode()) for extra in ("", " --debug")]
        await ws.close()
        return [result.stdout for result in results]

    quick, careful = asyncio.run(both())
    assert quick == careful
