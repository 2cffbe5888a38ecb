"""`ramet demo`: mounts, shell, branches, store and snapshot in a temporary directory."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from ramet import DiskResource, MountMode, RAMResource, Store, Workspace

console = Console(highlight=False)


async def run_shown(ws: Workspace, command: str) -> None:
    """Run a command and print it with its output, as a terminal shows it."""
    console.print(f"[bold green]$[/] [bold]{escape(command)}[/]", soft_wrap=True)
    result = await ws.execute(command)
    for text, style in ((result.text, ""), (result.error_text, "red")):
        if text:
            console.print(text.rstrip("\n"), style=style, markup=False, soft_wrap=True)


async def history(place: Path) -> None:
    """Show a store: commit, fork, break, diff, revert."""
    console.rule("[bold]a store: every state is a revision, a fork copies nothing")
    store = Store(str(place))
    made = store.create("site")
    async with store.open("site") as ws:
        await run_shown(ws, "mkdir /src; seq 1000 > /src/data; echo v1 > /src/app")
        note("commit", (await ws.commit("first")).name)
    note("fork", made.fork(None, "try").name)
    async with store.open("try") as ws:
        await run_shown(ws, "rm /src/data; echo v2 > /src/app; echo new > /src/notes")
        note("commit", (await ws.commit("too much")).name)
    tried = store["try"]
    note("diff", ", ".join(f"{one.what} {one.path}" for one in tried.diff()))
    note("revert", tried.revert("1", paths=["/src/data"]).name + ", /src/data alone")
    note("log", ", ".join(f"{one.name} ({one.message})" for one in tried.log()))
    async with store.open("try") as ws:
        await run_shown(ws, "wc -l /src/data; cat /src/app /src/notes")


def note(verb: str, text: str) -> None:
    console.print(f"[bold cyan]{verb:<8}[/]{escape(text)}", soft_wrap=True)


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
        await run_shown(ws, "ls -l /logs")
        await run_shown(
            ws, "grep -h ' 500' /logs/*.log | awk '{print $2}' | sort | uniq -c | sort -rn | tee /errors.txt | head -3"
        )
        await run_shown(ws, "echo nope > /logs/day1.log")
        console.rule("[bold]sessions, functions, arrays: a real shell")
        await run_shown(
            ws, 'declare -A seen; for f in /logs/*.log; do seen[${f##*/}]=$(wc -l < "$f"); done; declare -p seen'
        )
        console.rule("[bold]three branches, the best one is kept")
        async with ws.speculate(3) as tries:
            for number, branch in enumerate(tries):
                await branch.execute(f"head -{number + 1} /errors.txt > /best.txt")
            tries.keep(tries[1])
        await run_shown(ws, "cat /best.txt")
        await history(Path(folder) / "store")
        console.rule("[bold]snapshot, and life goes on elsewhere")
        start = time.perf_counter()
        ws.snapshot(Path(folder) / "state.tar")
        again = Workspace.load(Path(folder) / "state.tar")
        note("saved", f"and loaded in {(time.perf_counter() - start) * 1000:.0f} ms: {again!r}")
        await run_shown(again, 'echo "${#seen[@]} files were seen before"; cat /best.txt')
        await again.close()
        await ws.close()


def demo() -> None:
    """Show what Ramet does in a few seconds, in a temporary directory."""
    asyncio.run(main())
