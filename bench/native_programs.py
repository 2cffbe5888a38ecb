"""What agents run in a native workspace beside the same programs on the bare disk, and boxes that only wait."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from bench.harness import Case, timed
from ramet.native.ingredients import ingredients
from ramet.workspace.stored.store import Store
from ramet.workspace.workspace import Workspace

BOXES = 50
GENERATOR: Final = """
set -e
mkdir work; cd work
git init -q repo; cd repo
mkdir src
module=$(for f in $(seq 40); do printf 'def f%s(x, y=None):\\n    return [x] if x > %s else (x, y)\\n\\n' $f $f; done)
for d in $(seq 100); do
  mkdir src/p$d
  for f in $(seq 100); do echo "$module# $d $f" > src/p$d/m$f.py; done
done
git add .; git -c user.name=n -c user.email=n@example.com commit -qm all; git repack -adq
cd ..
mkdir make; cd make
for f in $(seq 150); do echo "int f$f(int x) { return x * $f; }" > f$f.c; done
{ echo 'OBJECTS := $(patsubst %.c,%.o,$(wildcard *.c))'; echo 'all: $(OBJECTS)'; } > Makefile
printf '%%.o: %%.c\\n\\tcc -c -o $@ $<\\n' >> Makefile
cd ..
mkdir -p npm/lib; cd npm
echo '{"name": "lib", "version": "1.0.0"}' > lib/package.json
for f in $(seq 300); do echo "exports.f = $f" > lib/m$f.js; done
(cd lib && npm pack --silent --offline > /dev/null && mv lib-1.0.0.tgz ..)
echo '{"name": "app", "version": "1.0.0", "dependencies": {"lib": "file:lib-1.0.0.tgz"}}' > package.json
"""
PIP: Final = "pip install -q --no-index --no-deps"
NPM: Final = "d=$(mktemp -d npm.XXXXXX); cp work/npm/*.json work/npm/*.tgz $d; cd $d; npm install --offline --silent"
PROGRAMS: Final = (
    ("grep -r, 10,000 files", "grep -rc return work/repo/src > /dev/null", 1.5, 5),
    ("git status, 10,000 files", "git -C work/repo status --porcelain", 1.5, 5),
    ("git clone, 10,000 files", "git clone -q work/repo $(mktemp -du clone.XXXXXX)", 3.5, 3),
    ("compileall, 1,000 modules", "python3 -m compileall -qf $(ls -d work/repo/src/p1?)", 1.5, 3),
    ("make, 150 objects", "make -sB -C work/make", 1.5, 3),
    ("pip install of a wheel", f"{PIP} --target $(mktemp -du pip.XXXXXX) work/lib-1.0-py3-none-any.whl", 1.5, 3),
    ("npm install of a package", NPM, 1.5, 3),
)  # fmt: skip
ENVIRONMENT: Final = {
    "PATH": "/usr/local/bin:/usr/bin:/bin", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore",
    "LC_ALL": "C.UTF-8",
}  # fmt: skip


def cases() -> Iterator[Case]:
    missing = [one for one in ingredients() if one.required and not one.ok]
    if missing:
        print(f"SKIPPED: native: {missing[0].name}: {missing[0].detail}", file=sys.stderr)
        return
    folder = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="ramet-bench-"))
    loop = asyncio.new_event_loop()
    try:
        bare = folder / "bare"
        bare.mkdir()
        _bare(bare, GENERATOR)()
        _write_wheel(bare / "work")
        subprocess.run(["tar", "-cf", folder / "work.tar", "-C", bare, "work"], check=True)
        stack = AsyncExitStack()
        ws = loop.run_until_complete(_opened(stack, Store(folder / "store"), (folder / "work.tar").read_bytes()))
        for name, script, mark, repeat in PROGRAMS:
            yield Case(
                name, timed(_inside(loop, ws, script)), timed(_bare(bare, script)), "bare disk", mark, repeat=repeat
            )
        loop.run_until_complete(stack.aclose())
        memory = _Boxes(loop)
        yield Case(f"memory of each of {BOXES} idle boxes", memory, absolute_mark=3.0, repeat=1, unit="MB")
    finally:
        loop.close()
        shutil.rmtree(folder)


def _bare(folder: Path, script: str) -> Callable[[], object]:
    environment = {**ENVIRONMENT, "HOME": str(folder)}
    return lambda: subprocess.run(["bash", "-c", script], cwd=folder, env=environment, check=True)


def _inside(loop: asyncio.AbstractEventLoop, ws: Workspace, script: str) -> Callable[[], object]:
    def run() -> None:
        result = loop.run_until_complete(ws.execute(script, native=True, env=ENVIRONMENT))
        if result.exit_code:
            raise RuntimeError(f"{script}: {result.exit_code}: {result.stderr!r}")

    return run


async def _opened(stack: AsyncExitStack, store: Store, tar: bytes) -> Workspace:
    """Return a workspace whose revision holds what a tar does, opened anew as a user would find it."""
    store.create("app")
    async with store.open("app", native=True) as ws:
        result = await ws.execute("tar xf -", stdin=tar, native=True)
        assert result.exit_code == 0, result.stderr
    ws = await stack.enter_async_context(store.open("app", native=True))
    await ws.execute("git -C work/repo status", native=True)  # refreshes the index: inodes are new
    return ws


def _write_wheel(folder: Path) -> None:
    info = "lib-1.0.dist-info"
    files = {f"lib/m{number}.py": f"def f(x):\n    return x + {number}\n" for number in range(300)}
    files[f"{info}/METADATA"] = "Metadata-Version: 2.1\nName: lib\nVersion: 1.0\n"
    files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: bench\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(folder / "lib-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)


class _Boxes:
    """Opens workspaces with a box each, and returns the megabytes that one adds to this process and its children."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def __call__(self) -> float:
        return self._loop.run_until_complete(self._measure())

    async def _measure(self) -> float:
        async with Workspace(native=True) as first:
            await first.execute("true", native=True)
            before = _memory()
            boxes = [Workspace(native=True) for _ in range(BOXES)]
            try:
                for ws in boxes:
                    result = await ws.execute("echo works", native=True)
                    assert result.text == "works\n", result
                return (_memory() - before) / BOXES / 1024
            finally:
                for ws in boxes:
                    await ws.close()


def _memory() -> int:
    """Return the kilobytes that this process and all its descendants have, each shared page counted once."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                parent = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
            except FileNotFoundError:  # it has just ended
                continue
            parents.setdefault(parent, []).append(int(name))
    total, waiting = 0, [os.getpid()]
    while waiting:
        pid = waiting.pop()
        waiting += parents.get(pid, [])
        rolled = Path(f"/proc/{pid}/smaps_rollup").read_text()
        total += next(int(line.split()[1]) for line in rolled.splitlines() if line.startswith("Pss:"))
    return total
