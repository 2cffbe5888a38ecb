"""What streams takes no more memory the more goes through it: of megabytes only a fraction is ever held."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import AsyncIterator

import pytest

from ramet import Workspace
from ramet.core.streams import IteratorReader

LINES = b"".join(b"10.0.0.%d %d [15/Nov] GET /item/%d HTTP/1.1 200\n" % (i % 250, i, i) for i in range(1000))
NUMBERS = b"".join(b"%d\n" % (i << 20) for i in range(10_000))
BYTES = bytes(range(256)) * 256
JSON = b"".join(b'{"id":%d,"v":[%d.5],"text":"%s"}\n' % (i, i, b"text" * 50) for i in range(300))
STREAM, MOST = 9 << 20, 6 << 20

SCRIPTS = {
    LINES: [
        "awk '{print $2}'", "cat -n", "cat -A", "cut -c2-9", "cut -d' ' -f2",
        "envsubst", "expand", "fold -w 30", "fold -s -w 30", "grep -n item", "grep -v POST", "grep -o 'item/[0-9]*'",
        "head -n 100000000", "join - /dev/null", "comm --nocheck-order - /dev/null", "nl", "paste - -", "paste -s",
        "shuf -n 5",
        "rev", "sed 's/GET/PUT/'", "sed -n '/ 5 /p'", "sed 's/^/x/'", "strings", "tail -n 5", "tee /dev/null",
        "tr a-z A-Z", "unexpand -a", "uniq -c", "wc", "xargs true", "rg item -",
        "dos2unix", "unix2dos", "split --filter='cat > /dev/null' -b 1000000",
    ],
    NUMBERS: ["numfmt --to=iec", "uniq", "xargs -n 5000 true"],
    BYTES: [
        "base64", "base32", "basenc --base16", "basenc --z85", "base64 | base64 -d", "base32 | base32 -d", "cksum",
        "dd bs=4096 status=none", "gzip -1", "gzip -1 | gunzip", "hexdump -C", "hexdump -d", "iconv -f latin1 -t utf-8",
        "md5sum", "od", "od -c", "od -t x4z", "sha256sum", "sum", "sum -s", "tail -c 5", "xxd", "xxd -p", "xxd -i",
        "xxd -p | xxd -r -p", "zstd", "cmp - /dev/zero; true",
    ],
    JSON: ["jq -c .", "jq .id"],
}  # fmt: skip


def resident() -> int:
    """Bytes of memory that this process has."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


class Stream:
    """The same block again and again, and the most memory there was while it was read."""

    def __init__(self, block: bytes) -> None:
        self.block, self.most = block, 0

    async def blocks(self) -> AsyncIterator[bytes]:
        for _ in range(STREAM // len(self.block)):
            yield self.block
            self.most = max(self.most, resident())


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="nothing here tells the memory of a process")
@pytest.mark.parametrize(
    ("block", "script"), [(block, script) for block, scripts in SCRIPTS.items() for script in scripts]
)
def test_memory_does_not_grow_with_the_stream(block: bytes, script: str) -> None:
    async def growth() -> int:
        ws = Workspace()
        await ws.execute(f"{{ {script}; }} > /dev/null", stdin=block)
        gc.collect()
        before, stream = resident(), Stream(block)
        result = await ws.execute(f"{{ {script}; }} > /dev/null", stdin=IteratorReader(stream.blocks()))
        await ws.close()
        assert result.exit_code == 0
        return stream.most - before

    assert asyncio.run(growth()) < MOST
