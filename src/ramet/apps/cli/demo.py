"""The whole idea in a few seconds: mounts, a shell, branches, snapshot and load, all in a temporary directory."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from ramet import DiskResource, MountMode, RAMResource, Workspace

console = Console(highlight=False)


async def show(ws: Workspace, command: str) -> None:
    """Run a command the way a person would see it in a terminal."""
    console.print(f"[bold green]$[/] [bold]{escape(command)}[/]", soft_wrap=True)
    result = await ws.execute(command)
    for text, style in ((result.text, ""), (result.error_text, "red")):
        if text:
            console.print(text.rstrip("\n"), style=style, markup=False, soft_wrap=True)


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder) / "logs"
        logs.mkdir()
        for day in range(1, 4):
            (logs / f"day{day}.log").write_text(
                "".join(f"GET /page{i % 7} {200 if i % 5 else 500}\n" for i in range(50))
            )
        console.rule("[bold]one tree: memory at /, a directory at /logs, read-only")
        ws = Workspace({"/": RAMResource(), "/logs": (DiskResource(logs), MountMode.READ)})
        await show(ws, "ls -l /logs")
        await show(
            ws, "grep -h ' 500' /logs/*.log | awk '{print $2}' | sort | uniq -c | sort -rn | tee /errors.txt | head -3"
        )
        await show(ws, "echo nope > /logs/day1.log")
        console.rule("[bold]sessions, functions, arrays: a real shell")
        await show(
            ws, 'declare -A seen; for f in /logs/*.log; do seen[${f##*/}]=$(wc -l < "$f"); done; declare -p seen'
        )
        console.rule("[bold]three branches, the best one is kept")
        async with ws.speculate(3) as tries:
            for number, branch in enumerate(tries):
                await branch.execute(f"head -{number + 1} /errors.txt > /best.txt")
            tries.keep(tries[1])
        await show(ws, "cat /best.txt")
        console.rule("[bold]snapshot, and life goes on elsewhere")
        start = time.perf_counter()
        ws.snapshot(Path(folder) / "state.tar")
        again = Workspace.load(Path(folder) / "state.tar")
        console.print(f"saved and loaded in {(time.perf_counter() - start) * 1000:.1f} ms: {again!r}", markup=False)
        await show(again, 'echo "${#seen[@]} files were seen before"; cat /best.txt')
        await again.close()
        await ws.close()
