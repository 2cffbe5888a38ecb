"""Scripts that run over whole blocks do what they do line by line, at the ends of files too."""

from __future__ import annotations

import asyncio

import pytest
from tests.commands.test_streaming import call, make

MANY = b"".join(b"%d %s x x\n" % (n, b"cart" if n % 3 else b"checkout") for n in range(3000))
FILES = {
    "many": MANY,
    "unfinished": b"a x x\nb\nc x",
    "wide": "größe x\nx ß x".encode(),
    "invalid": b"\xff x x\nx\xfe",
    "empty": b"",
    "blank": b"\n\nx",
}
SCRIPTS = [
    "s/x/y/",
    "s/x/y/g",
    "s/c[a-z]*/<&>/",
    "s/x//",
    "/x/d",
    "/x/!d",
    "/^$/d",
    "/c.r/d",
    "s/x/y/;/y/d",
    "/a/d;s/x//",
]
QUIET = ["/x/p", "/x/!p", "/[ab]/p"]


@pytest.mark.parametrize(
    "words", [*([name] for name in FILES), ["unfinished", "many"], ["blank", "unfinished", "wide"]]
)
@pytest.mark.parametrize("script", [*SCRIPTS, *QUIET])
def test_blocks_and_lines_agree(script: str, words: list[str]) -> None:
    options = ["-n"] if script in QUIET else []

    async def both() -> tuple[tuple[int, bytes, bytes], tuple[int, bytes, bytes]]:
        fs = await make(FILES)
        # A label that nothing jumps to changes nothing and needs a cycle for each line.
        by_line = await call(fs, ["sed", *options, "-e", ":l", "-e", script, *words])
        return await call(fs, ["sed", *options, script, *words]), by_line

    by_block, by_line = asyncio.run(both())
    assert by_block == by_line
