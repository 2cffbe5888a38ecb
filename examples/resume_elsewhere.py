"""Work begins in one process and goes on in another: the snapshot carries files, variables, functions and history."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

from ramet import Workspace


async def begin(snapshot: Path) -> None:
    async with Workspace(secrets={"API_TOKEN": "not in the snapshot"}) as ws:
        await ws.execute(
            "mkdir /work; cd /work; seq 10 > numbers; total=0; add() { total=$((total + $1)); }\n"
            "for n in $(head -5 numbers); do add $n; done; next=6"
        )
        ws.snapshot(snapshot)


async def resume(snapshot: Path) -> str:
    async with Workspace.load(snapshot, secrets={"API_TOKEN": "given again"}) as ws:
        result = await ws.execute(
            "while ((next <= 10)); do add $next; ((next++)); done; pwd; echo $total; echo ${#API_TOKEN}"
        )
        return result.check().text


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        snapshot = Path(folder) / "half-way.tar"
        asyncio.run(begin(snapshot))
        print(f"{snapshot.stat().st_size} bytes saved; resuming in another process")
        done = subprocess.run([sys.executable, __file__, str(snapshot)], capture_output=True, text=True, check=True)
        print(done.stdout, end="")
        assert done.stdout == "/work\n55\n11\n"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(asyncio.run(resume(Path(sys.argv[1]))), end="")
    else:
        main()
