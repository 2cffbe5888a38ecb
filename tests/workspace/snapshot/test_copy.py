"""A copied disk mount is the same tree, and another one."""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path as LocalPath

from ramet import DiskResource, Workspace


def test_a_copied_disk_keeps_links_modes_and_times(tmp_path: LocalPath) -> None:
    async def act() -> None:
        ws = Workspace({"/d": DiskResource(tmp_path)})
        await ws.execute(
            "cd /d; mkdir -p a/b; seq 300000 > a/big; ln a/big a/b/same; ln -s ../big a/b/soft; echo x > s"
        )
        await ws.execute("cd /d; chmod 640 s; touch -d @1000000000.5 s a a/b; ln -s nowhere dangling; chmod 500 a/b")
        os.mkfifo(tmp_path / "fifo")
        look = (
            "cd /d; find . ! -name fifo -printf '%p %y %m %n %T@ %s\\n' | sort; md5sum a/b/soft; [ a/big -ef a/b/same ]"
        )
        before = await ws.execute(look)
        twin = ws.copy()
        after = await twin.execute(look)
        assert (after.text, after.exit_code) == (before.text, 0)
        await twin.execute("cd /d; echo changed > a/big")
        assert (await ws.execute("head -1 /d/a/b/same")).text == "1\n"

    asyncio.run(act())


def test_the_directory_of_a_copy_goes_with_it(tmp_path: LocalPath) -> None:
    async def act() -> str:
        ws = Workspace({"/d": DiskResource(tmp_path)})
        twin = ws.copy()
        copied = next(mount.resource for mount in twin.mounts() if isinstance(mount.resource, DiskResource))
        assert (await twin.execute("touch /d/new")).exit_code == 0 and copied.root != str(tmp_path)
        return copied.root

    made = asyncio.run(act())
    gc.collect()
    assert not os.path.exists(made) and tmp_path.is_dir()


def test_a_copied_session_shares_nothing_that_is_written() -> None:
    script = 'a[1]=n; m[k]=n; v=n; f() { echo n; }; alias x=n; shift; export e=n; declare -i i; b+=(z); unset "c[0]"'
    look = 'echo "${a[*]} ${m[k]} $v $(f) ${BASH_ALIASES[x]} $# $e ${i@a} ${b[*]} ${c[*]}"; env | grep ^e='

    async def act() -> None:
        ws = Workspace()
        await ws.execute(
            "a=(1 2 3); declare -A m=([k]=v); v=o; f() { echo o; }; alias x=o; set -- p q; export e=o;"
            "declare -i i=1+1; b=(x y); c=(1 2); readonly -a r=(5 6); shopt -s expand_aliases"
        )
        before = (await ws.execute(look)).text
        twin, other = ws.copy(), ws.copy()
        assert (await twin.execute(look)).text == before
        await twin.execute(script)
        assert (await ws.execute(look)).text == (await other.execute(look)).text == before
        changed = (await twin.execute(look)).text
        assert changed.splitlines()[0] == "1 n 3 n n n n 1 n i x y z 2"
        await ws.execute(script)
        assert (await ws.execute(look)).text == changed
        assert (await other.execute(look)).text == before
        assert (await other.execute("r=(1)")).exit_code != 0

    asyncio.run(act())
