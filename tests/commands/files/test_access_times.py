"""Times of access on mounts of several kinds: what sets one is heard, or says that it is not."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ramet import DiskResource, RAMResource, Workspace
from ramet.core.resource import Cap
from ramet.layers.passthrough import Passthrough
from ramet.workspace.result import IOResult


class Forgetful(Passthrough):
    """Keeps times of modification, and no others."""

    @property
    def caps(self) -> Cap:
        return self.inner.caps & ~Cap.ATIMES


def run(workspace: Workspace, script: str) -> IOResult:
    return asyncio.run(workspace.execute(script))


def test_tar_puts_back_the_times_of_what_it_reads(tmp_path: Path) -> None:
    workspace = Workspace({"/": DiskResource(tmp_path)})
    script = """
        echo hi > f; touch -d 2020-01-01 f; touch -a -d 2010-01-01 f
        tar --atime-preserve -cf a.tar f; stat -c '%X %Y' f
        cp -p f g; touch -a -d 2010-01-01 f; stat -c '%Y' g; mv f h; stat -c '%X' h
        ln -s h l; touch -h -a -d 2012-01-01 l; stat -c %X l h
    """
    done = run(workspace, script)
    lines = ["1262304000 1577836800", "1577836800", "1262304000", "1325376000", "1262304000"]
    assert (done.text.split("\n")[:-1], done.error_text) == (lines, "")


def test_times_cross_mounts(tmp_path: Path) -> None:
    workspace = Workspace({"/": RAMResource(), "/disk": DiskResource(tmp_path)})
    script = """
        touch -d 2020-01-01 f; touch -a -d 2010-01-01 f; mv f /disk; stat -c '%X %Y' /disk/f
        cp -a /disk g; stat -c %X g/f
    """
    assert run(workspace, script).text == "1262304000 1577836800\n1262304000\n"


def test_a_mount_without_them_says_so() -> None:
    workspace = Workspace({"/": Forgetful(RAMResource())})
    done = run(
        workspace,
        "touch -d 2020-01-01 f; stat -c '%X %Y' f; touch -a f; echo $?; touch -m -d 2021-01-01 f; stat -c %Y f",
    )
    assert done.text == "1577836800 1577836800\n1\n1609459200\n"
    assert done.error_text == "touch: setting times of 'f': Operation not supported\n"
