"""What goes wrong on real machines: nothing to build a box with, no room, odd names, very many files."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.workspace.native.confined import run_in_sandbox
from tests.workspace.native.conftest import NATIVE, SECONDS, box_directory, need

from ramet import Store
from ramet.native.options import Native

FILES = int(os.environ.get("RAMET_TEST_TREE_FILES", "20000"))
"""Files of the large tree; a million by hand."""
OPENS = """
import asyncio
from ramet import Store, Workspace
from ramet.core.errors import RametError
from ramet.native.options import Native

async def main():
    place = "{place}"
    boxes = {boxes!r} or place + "/boxes"
    try:
        async with Workspace(native=Native(directory=boxes)):
            print("opened")
    except RametError as error:
        print(error.code, "|", error.cause, "|", error.remediation)
    store = Store(place + "/store")
    store.create("app")
    async with store.open("app") as ws:
        await ws.execute("echo kept > /f")
    async with store.open("app") as ws:
        print((await ws.execute("cat /f; python3 -c 1")).text)

asyncio.run(main())
"""


def opens(*options: str, boxes: str = "") -> list[str]:
    with box_directory() as place:
        os.chmod(place, 0o777)
        done = run_in_sandbox(OPENS.replace("{boxes!r}", repr(boxes)).replace("{place}", place), *options)
    assert done.returncode == 0, done
    return done.stdout.splitlines()


def test_a_machine_without_user_namespaces(native: Native) -> None:
    said, kept, *_ = opens("--disable-userns")
    assert said.startswith("native_unavailable | cannot build the box: user namespaces are not allowed here")
    assert "sysctl user.max_user_namespaces=10000" in said and kept == "kept"


def test_a_directory_on_which_no_overlay_can_lie(native: Native) -> None:
    said, kept, *_ = opens("--overlay-src", "/usr/share", "--tmp-overlay", "/opt", boxes="/opt/boxes")
    assert said.startswith("native_unavailable | cannot build the box: an overlay cannot be made in /opt/boxes")
    assert "Native(directory=...)" in said and kept == "kept"


def test_a_container_that_hides_proc(native: Native) -> None:
    said, kept, *_ = opens("--proc", "/proc", "--ro-bind", "/dev/null", "/proc/filesystems")
    assert "/proc cannot be mounted" in said and "systempaths=unconfined" in said and kept == "kept"


def test_root_of_a_container(native: Native) -> None:
    """It may be an ordinary user outside; else its programs would be root themselves."""
    said, kept, *_ = opens("--uid", "0", "--gid", "0", "--cap-add", "ALL")
    wanted = "native_unavailable | cannot run native programs as root" if os.geteuid() == 0 else "opened"
    assert said.startswith(wanted) and kept == "kept"


def test_a_full_disk_loses_nothing(native: Native) -> None:
    source = """
import asyncio
from ramet import Store, Workspace
from ramet.core.errors import RametError
from ramet.native.options import Native

async def main():
    native = Native(directory="/opt/boxes")
    store = Store("/var/tmp/{store}")
    store.create("app")
    async with store.open("app", native=native) as ws:
        await ws.execute("echo kept > /a", native=True)
        for real in (True, False):
            full = await ws.execute("head -c 9000000 /dev/zero > /big; echo $?; echo x > /c; echo $?", native=real)
            print(full.text.split(), full.stderr.count(b"No space left on device"))
        try:
            Workspace(native=native)
        except RametError as error:
            print(error.code, "|", error.cause, "|", error.remediation)
        print((await ws.execute("cat /a; rm /big; echo new > /c; cat /c", native=True)).text.split())
    async with store.open("app", native=native) as ws:
        print((await ws.execute("cat /a /c; ls /", native=True)).text.split()[:2])

asyncio.run(main())
"""
    with box_directory() as place:
        os.chmod(place, 0o777)
        source = source.replace("{store}", f"{os.path.basename(place)}/store")
        done = run_in_sandbox(source, "--size", "4000000", "--tmpfs", "/opt")
        assert done.returncode == 0, done
        lines = done.stdout.splitlines()
    assert lines[0] == lines[1] == "['1', '1'] 2"
    assert lines[2].startswith("native_unavailable | cannot prepare native programs: No space left on device")
    assert "Make room" in lines[2] and lines[3:] == ["['kept', 'new']", "['kept', 'new']"]


def test_what_a_program_closes_to_its_owner_is_committed(native: Native) -> None:
    """As an ordinary user, who cannot read it either."""
    source = """
import asyncio
from ramet import Store
from ramet.native.options import Native
CLOSE = "mkdir -p d/e; echo kept > d/e/f; echo mine > secret; chmod 0 secret d/e d"
async def main():
    native = Native(directory="{place}/boxes")
    store = Store("{place}/store")
    store.create("app")
    async with store.open("app", native=native) as ws:
        await ws.execute(CLOSE, native=True)
    async with store.open("app", native=native) as ws:
        print((await ws.execute("cat d/e/f secret; chmod 0 secret d/e d", native=True)).text.split())
asyncio.run(main())
"""
    with box_directory() as place:
        os.chmod(place, 0o777)
        done = run_in_sandbox(source.replace("{place}", place))
    assert done.stdout.splitlines() == ["['kept', 'mine']"], done


NAMES = r"""
printf one > $'bad\xff'; mkdir $'two\nlines'; printf two > $'two\nlines/f'
perl -e 'open F, ">p\xfe"; print F 3; mkdir "n\nl\xfc"; open G, ">n\nl\xfc/g"; print G 4'
mv $'bad\xff' $'moved\xfd'
"""


def test_names_that_are_no_utf_8_and_have_newlines(native: Native, tmp_path: Path) -> None:
    need("perl")
    expected = {b"moved\xfd": b"one", b"two\nlines/f": b"two", b"p\xfe": b"3", b"n\nl\xfc/g": b"4"}

    async def steps() -> tuple[bytes, list[str]]:
        store = Store(tmp_path / "store")
        store.create("app", native=True)
        async with store.open("app", native=NATIVE) as ws:
            done = await ws.execute(f"mkdir /d; cd /d; {NAMES}", timeout=SECONDS)
            assert done.exit_code == 0 and not done.stderr, done
        async with store.open("app", native=NATIVE) as ws:
            cat = r"cd /; cat $'d/moved\xfd' $'d/two\nlines/f'; perl -e 'print <STDIN>' < $'d/p\xfe'; "
            cat += r"cat $'d/n\nl\xfc/g'"
            found = (await ws.execute(cat, timeout=SECONDS)).stdout
            natively = (await ws.execute(cat, native=True, timeout=SECONDS)).stdout
            assert natively == found
            await ws.execute(r"printf more >> $'/d/p\xfe'", timeout=SECONDS)
        ref = store["app"]
        changed = [str(change.path) for change in ref.diff(ref.log()[1].name, ref.log()[0].name)]
        ref.checkout(tmp_path / "out")
        return found, changed

    found, changed = asyncio.run(steps())
    assert found == b"onetwo34" and "/d/p\udcfe" in changed
    out = os.fsencode(tmp_path / "out")
    for name, content in {**expected, b"p\xfe": b"3more"}.items():
        with open(out + b"/d/" + name, "rb") as file:
            assert file.read() == content


@pytest.mark.parametrize(
    ("make", "run", "status", "why"),
    [
        ("echo > x", "./x", 126, "Permission denied"), ("mkdir x", "./x", 126, "Is a directory"),
        ("printf '\\177ELF\\0junk' > x; chmod +x x", "./x", 126, "Exec format error"),
        ("printf '#!/no/such\\n' > x; chmod +x x", "./x", 127, "required file not found"),
        (":", "./x", 127, "No such file or directory"),
        ("printf '#!/usr/bin/env perl\\nprint 1' > x", "./x", 126, "Permission denied"),
    ],
)  # fmt: skip
def test_programs_that_cannot_be_executed(
    native: Native, tmp_path: Path, make: str, run: str, status: int, why: str
) -> None:
    from ramet.workspace.workspace import Workspace

    async def steps() -> list[tuple[int, bytes]]:
        async with Workspace(native=NATIVE) as ws:
            await ws.execute(make, native=True, timeout=SECONDS)
            done = [await ws.execute(run, native=how, timeout=SECONDS) for how in (None, True)]
            return [(one.exit_code, one.stderr) for one in done]

    for exit_code, stderr in asyncio.run(steps()):
        assert exit_code == status and why.encode() in stderr, stderr


def test_a_very_large_tree(native: Native) -> None:
    """Made by a program, looked at, committed, opened again, changed a little and committed again."""
    need("perl")
    make = f"perl -e 'for $n (0..{FILES - 1}) {{ mkdir q(d).($n / 1000 | 0) unless $n % 1000; "
    make += "open F, q(>d).($n / 1000 | 0).qq(/f$n); print F $n }'"
    took: dict[str, float] = {}

    async def steps(place: str) -> None:
        store = Store(f"{place}/store")
        store.create("big")
        memory = NATIVE.limits.memory_bytes + FILES * 8192  # on a tmpfs its files count
        options = Native(replace(NATIVE.limits, memory_bytes=memory), directory=f"{place}/boxes")
        began = time.perf_counter()

        def lap(what: str) -> None:
            nonlocal began
            took[what], began = round(time.perf_counter() - began, 2), time.perf_counter()

        async with store.open("big", native=options) as ws:
            assert (await ws.execute(make, timeout=3600)).exit_code == 0
            lap("make")
            await ws.commit("all")
            lap("commit")
        lap("close")
        async with store.open("big", native=options) as ws:
            lap("open")
            count = (await ws.execute("find /d[0-9]* -type f | wc -l", native=True, timeout=3600)).stdout
            lap("find")
            assert int(count) == FILES
            await ws.execute(f"echo new > d0/f1; rm d{(FILES - 1) // 1000}/f{FILES - 1}", native=True, timeout=SECONDS)
            lap("change")
            made = await ws.commit("some")
            assert made is not None
            lap("commit again")
        ref = store["big"]
        changed = {str(change.path) for change in ref.diff(ref.log()[1].name, ref.log()[0].name)}
        assert changed == {"/d0/f1", f"/d{(FILES - 1) // 1000}/f{FILES - 1}"}

    with box_directory() as place:
        where = os.environ.get("RAMET_TEST_TREE_PLACE", place)
        asyncio.run(steps(where))
    print(FILES, took)
