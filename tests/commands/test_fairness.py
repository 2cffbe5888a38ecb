"""No command holds up the event loop, whatever the shape of what it reads; measured in the loop's own time."""

from __future__ import annotations

import asyncio
import functools
import random

import pytest
from tests.holding import longest_hold

from ramet import RAMResource, Workspace
from ramet.core.paths import parse

ROWS = 15_000


@functools.cache
def files() -> dict[str, bytes]:
    rng = random.Random(7)
    rows = [f"10.0.{i % 250}.{i % 7} {i * 7919 % 100_000} [15/Nov] GET /item/{i} HTTP/1.1 200" for i in range(ROWS)]
    other = [row if i % 500 else f"changed {row}" for i, row in enumerate(rows)]
    text = ["\n".join(some).encode() + b"\n" for some in (rows, other, sorted(rows), sorted(other))]
    return {
        **dict(zip(("text", "text2", "sorted", "sorted2"), text, strict=True)),
        "one": b"abc def, " * 150_000,
        "tiny": b"".join(b"%d\n" % (i % 100) for i in range(100_000)),
        "bin": rng.randbytes(1 << 20),
        "pairs": b"".join(b"n%d n%d\n" % (i, i + 1) for i in range(30_000)),
        "json": b"".join(b'{"id":%d,"tags":["a","b"],"v":%d.50}\n' % (i, i) for i in range(20_000)),
        "array": b"[" + b",".join(b'{"id":%d,"v":[%d.5]}' % (i, i) for i in range(30_000)) + b"]\n",
    }


SCRIPTS = [
    "diff text text2", "diff -y text text2", "diff -u sorted sorted2", "cmp -l text text2", "comm sorted sorted2",
    "join sorted sorted2", "paste text text2", "paste -s text", "column -t text", "csplit text 10000 20000",
    "zip -q - text", "xxd bin", "xxd -p bin | xxd -r -p", "xxd bin | xxd -r", "od -c bin", "hexdump -C bin",
    "strings bin", "base64 bin | base64 -d", "fold -w 30 text", "fold -s -w 30 text", "fold -w 30 one", "fmt text",
    "unexpand -a text", "expand one", "rev text", "tac text", "nl tiny", "cat -n tiny", "cat -A bin", "tsort pairs",
    "shuf text", "sort -V text", "sort -t' ' -k2,2n -k1,1 text", "uniq -c tiny", "tr a-z A-Z < one",
    "head -20000 tiny | factor", "pr text", "numfmt --to=iec < pairs --invalid=ignore", "grep -n 2 tiny",
    "xargs echo < tiny", "grep -o '[0-9]*' text",
    "sed 's/[0-9]/#/g' text", "sed 'N;P;D' tiny", "awk '{a[$1]++} END{for(k in a) print k}' text", "wc -mL bin",
    "awk '{gsub(/[0-9]/,\"#\")} 1' text", "jq . array", "jq -c '.[]' array", "jq -s 'group_by(.tags)' json",
    "jq -c 'select(.id > 5)' json", "split -l 100 text", "cut -d' ' -f2 text", "tar c text | tar t", "gzip -c bin",
]  # fmt: skip


async def held_by(script: str) -> float:
    ram = RAMResource()
    ws = Workspace({"/data": ram})
    for name, data in files().items():
        await ram.write(parse(f"/{name}"), data)
    # What is imported on the first call is not at stake.
    await ws.execute(f"head -c 99 text > t; for f in *; do cp t /tmp/$f; done; cd /tmp; {script}", cwd="/data")
    worst = await longest_hold(ws.execute(f"{{ {script}; }} > /dev/null", cwd="/data"))
    await ws.close()
    return worst


@pytest.mark.parametrize("script", SCRIPTS)
def test_no_command_holds_up_the_loop(script: str) -> None:
    # The mark is 20 ms; a loaded machine may need another look, a command that holds the loop fails all of them.
    for _ in range(3):
        held = asyncio.run(held_by(script))
        if held < 0.04:
            break
    assert held < 0.04
