"""A data pipeline over two mounts: raw logs on disk (read-only), results in memory, everyday tools in between."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from ramet import DiskResource, MountMode, RAMResource, Workspace


def make_logs(folder: Path) -> None:
    for day in (1, 2, 3):
        lines = [f"2026-11-0{day} user{i % 5} {'ERROR' if i % 7 == 0 else 'ok'} {i * day}" for i in range(100)]
        (folder / f"day{day}.log").write_text("\n".join(lines) + "\n")


async def main() -> str:
    with tempfile.TemporaryDirectory() as folder:
        make_logs(Path(folder))
        async with Workspace({
            "/raw": (DiskResource(folder), MountMode.READ),
            "/out": RAMResource(),
        }) as ws:  # fmt: skip
            script = r"""
            set -euo pipefail
            for log in /raw/*.log; do
                name=$(basename "$log" .log)
                grep ERROR "$log" | cut -d' ' -f2 | sort | uniq -c | sort -rn > "/out/$name.errors"
            done
            awk '{n[$2] += $1} END {for (u in n) print n[u], u}' /out/*.errors | sort -k1,1nr -k2 > /out/total
            tar -czf /out/results.tgz -C /out total day1.errors day2.errors day3.errors
            head -3 /out/total; tar -tzf /out/results.tgz | wc -l
            """
            result = (await ws.execute(script)).check()
            print(result.text, end="")
            print("read:", dict(result.bytes_read))
            return result.text


if __name__ == "__main__":
    assert asyncio.run(main()).endswith("4\n")
