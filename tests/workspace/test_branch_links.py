"""Branches know hard links and say each change once."""

from __future__ import annotations

import asyncio
from pathlib import Path as LocalPath

import pytest

from ramet import DiskResource, RAMResource, Workspace


@pytest.mark.parametrize("kind", ["ram", "disk"])
def test_names_of_one_file_stay_one_file(kind: str, tmp_path: LocalPath) -> None:
    async def act() -> None:
        ws = Workspace({"/w": RAMResource() if kind == "ram" else DiskResource(tmp_path)})
        await ws.execute("cd /w; echo old > a; ln a b; mkdir s; ln a s/c")
        branch = ws.branch()
        seen = await branch.execute("cd /w; echo new > a; cat b s/c; ln b d; echo more >> d; cat s/c; stat -c %h a d")
        assert seen.text == "new\nnew\nnew\nmore\n4\n4\n"
        assert (await ws.execute("cat /w/a; stat -c %h /w/b")).text == "old\n3\n"
        assert (await branch.commit()).ok
        after = await ws.execute("cd /w; cat s/c; stat -c %h a b s/c d; [ a -ef d ] && [ b -ef s/c ] && echo one")
        assert after.text == "new\nmore\n4\n4\n4\n4\none\n"

    asyncio.run(act())


def test_a_directory_made_anew_is_listed_once() -> None:
    async def act() -> None:
        ws = Workspace()
        await ws.execute("mkdir -p /d/s; echo 1 > /d/x; echo 2 > /d/s/y; echo 3 > /d/file")
        branch = ws.branch()
        await branch.execute("rm -r /d; mkdir /d; echo 4 > /d/x; mkdir /d/file")
        changes = [(str(change.path), change.what) for change in await branch.diff()]
        assert changes == [
            ("/d/file", "added"), ("/d/file", "removed"), ("/d/s", "removed"), ("/d/s/y", "removed"),
            ("/d/x", "modified"),
        ]  # fmt: skip
        assert (await branch.commit()).ok
        assert (await ws.execute("cd /d; find . | sort; cat x")).text == ".\n./file\n./x\n4\n"

    asyncio.run(act())
