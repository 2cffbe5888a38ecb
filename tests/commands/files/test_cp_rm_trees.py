"""Copying and removing many files at once is what copying and removing each of them is."""

from __future__ import annotations

import asyncio

import pytest

from ramet import RAMResource, Workspace
from ramet.core.limits import Limits

TREE = (
    "mkdir -p /w/t/sub; cd /w; for i in {1..600}; do echo $i > t/f$i; done;"
    "ln -s f1 t/link; ln t/f2 t/hard; mkfifo t/pipe; "
)
CASES = {
    "content, modes and kinds": (
        "chmod 755 t/f3; chmod 4711 t/f4; chmod 640 t/f5; cp -r t c; diff -r --no-dereference -x pipe t c;"
        "ls c | wc -l;"
        "stat -c '%a %F %h' c/f1 c/f3 c/f4 c/f5 c/hard c/link c/pipe",
        "604\n644 regular file 1\n755 regular file 1\n711 regular file 1\n640 regular file 1\n644 regular file 1\n"
        "777 symbolic link 1\n644 fifo 1\n",
    ),
    "times": (
        "touch -d @1000 t/f1; cp -rp t c; stat -c %Y c/f1; cp -r t d; [ d/f1 -nt c/f1 ] && echo new",
        "1000\nnew\n",
    ),
    "a copy is another file": ("cp -r t c; echo x > c/f1; cat t/f1; rm t/f2; cat t/hard c/hard", "1\n2\n2\n"),
    "what may not be read": (
        "chmod 000 t/f7; cp -r t c; echo $?; ls c | wc -l; cat c/f8",
        "cp: cannot open 't/f7' for reading: Permission denied\n1\n603\n8\n",
    ),
    "into what is there": ("mkdir c; rm t/pipe; cp -r t c; cp -r t c; ls c/t | wc -l; cat c/t/f600", "603\n600\n"),
    "removal": ("rm -r t; echo $?; ls", "0\n"),
    "removal while open": ("exec 3< t/f9; rm -r t; cat <&3; ls", "9\n"),
    "a directory that may not change": (
        "chmod 555 t; rm -rf t 2>&1 | sort | head -1; ls t | wc -l; chmod 755 t; rm -rf t; ls",
        "rm: cannot remove 't/f1': Permission denied\n604\n",
    ),
    "a directory that may not be searched": ("chmod 444 t; cp -r t c 2>&1 | head -1 | wc -l; chmod 755 t", "1\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_left(name: str) -> None:
    script, expected = CASES[name]

    async def run() -> bytes:
        ws = Workspace()
        done = await ws.execute("exec 2>&1; " + TREE + script)
        await ws.close()
        return bytes(done.stdout)

    assert asyncio.run(run()).decode() == expected


def test_a_quota_holds_and_is_reported() -> None:
    async def run() -> tuple[bytes, bytes]:
        ws = Workspace({"/data": RAMResource(quota=1500)})
        done = await ws.execute("cd /data; mkdir t; for i in {1..9}; do head -c 100 /dev/zero > t/f$i; done; cp -r t c")
        left = await ws.execute("ls /data/c | wc -l; rm -r /data/c; cp /data/t/f1 /data/again; ls /data")
        await ws.close()
        return done.stderr, left.stdout

    errors, left = asyncio.run(run())
    assert errors.count(b"No space left on device") == 3
    assert left == b"6\nagain\nt\n"


def test_every_file_is_in_the_history() -> None:
    async def run() -> list[tuple[str, str]]:
        ws = Workspace(limits=Limits())
        await ws.execute("mkdir t; for i in {1..300}; do : > t/f$i; done; cp -r t c; rm -r c")
        noted = [(op.verb, op.path) for op in ws.history.operations()]
        await ws.close()
        return noted

    noted = asyncio.run(run())
    for verb in ("copy", "remove"):
        assert len({path for known, path in noted if known == verb and "/c/f" in path}) == 300
