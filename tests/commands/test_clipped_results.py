"""Clipped results: a command that cannot give all of its answer refuses, and never shortens it with status 0."""

from __future__ import annotations

import asyncio

import pytest

from ramet import IOResult, Limits, Workspace

SMALL = Limits(string_bytes=1 << 16, width_chars=1 << 10, expansion_words=1000, output_bytes=1 << 16)
BEYOND = {
    "bc: digits after the point": "bc <<< 'scale=200000; scale'",
    "bc: digits of a quotient": "bc <<< 'scale=100001; length(1/3)'",
    "bc: digits of a power": "bc <<< 'length(10^300000)'",
    "jq: a repeated string": "jq -n '\"a\" * 100000 | length'",
    "jq: a joined string": 'jq -n \'[range(100000) | "a"] | join("") | length\'',
    "jq: an index": "jq -n '[1] | .[2147483648] = 1 | length'",
    "awk: a width": "awk 'BEGIN { print length(sprintf(\"%5000d\", 1)) }'",
    "awk: a field": "awk 'BEGIN { $5000000000 = 1; print NF }'",
    "printf: a width": "printf %5000d 1 | wc -c; exit ${PIPESTATUS[0]}",
    "a variable": "printf -v x %1000s; for _ in {1..100}; do y+=$x; done; echo ${#y}",
    "a command substitution": "x=$(head -c 100000 /dev/zero | tr '\\0' a) && echo ${#x}",
    "words of a brace expansion": "set -- {1..2000}; echo $#",
    "captured output": "head -c 100000 /dev/zero",
    "sqlite3: a value": "sqlite3 :memory: 'select length(zeroblob(100000))'",
    "cut: an offset": "cut -c 1-99999999999999999999 <<< abc",
    "xxd: columns": "xxd -c 100000 <<< a",
}


def run(script: str) -> IOResult:
    async def act() -> IOResult:
        async with Workspace(limits=SMALL) as ws:
            return await ws.execute(script)

    return asyncio.run(act())


@pytest.mark.parametrize("name", BEYOND)
def test_what_does_not_fit_is_refused(name: str) -> None:
    refused = run(BEYOND[name])
    assert refused.exit_code != 0, f"an answer that may be cut: {refused.text[:80]!r}"
    assert refused.error_text
