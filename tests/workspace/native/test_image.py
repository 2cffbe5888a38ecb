"""Native programs of an image instead of the host's: what they see, and how a workspace remembers it."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.native.images import compress_zstd, make_root, tar_of, tar_with, write_layout
from tests.workspace.native.conftest import NATIVE, SECONDS, box_directory

from ramet import Store
from ramet.backends.local.ram import RAMResource
from ramet.core.errors import RametError
from ramet.core.paths import parse
from ramet.native.options import Native
from ramet.workspace.config import load_config
from ramet.workspace.result import IOResult
from ramet.workspace.workspace import Workspace


@pytest.fixture(scope="module")
def root() -> Iterator[Path]:
    with box_directory() as folder:
        if shutil.which("ldd") is None:
            pytest.skip("ldd is not installed")
        os.chmod(folder, 0o755)
        yield make_root(Path(folder, "root"))


def run(image: Path, *texts: str, native: bool | None = True) -> list[IOResult]:
    async def steps() -> list[IOResult]:
        async with Workspace(native=replace(NATIVE, image=str(image))) as ws:
            return [await ws.execute(text, native=native, timeout=SECONDS) for text in texts]

    return asyncio.run(steps())


def test_programs_come_from_the_image(native: Native, root: Path) -> None:
    script = "cat /etc/image; ls /usr/bin; id -u; cat /etc/passwd | head -n 1; /opt/tool/run a; "
    script += "cat < /usr/bin/leak; : > /usr/x"
    (found,) = run(root, script)
    assert found.stdout.decode().split() == [
        "from", "the", "image", "cat", "env", "head", "id", "leak", "ls", "1000",
        "root:x:0:0:root:/root:/usr/sbin/nologin", "tool", "a", "ramet",
    ]  # fmt: skip
    assert not (root / "usr/x").exists()


def test_the_shell_finds_what_the_image_has(native: Native, root: Path) -> None:
    text = "/opt/tool/run in | tr a-z A-Z; echo made > f; type python3; ls /; /usr/bin/env | grep -c ^HOME"
    (found,) = run(root, text, native=None)
    assert found.stdout == b"TOOL IN\nf\nhome\ntmp\n1\n" and b"python3: not found" in found.stderr, found


def test_the_first_process_of_an_image_leaves_no_dead_ones(native: Native, root: Path) -> None:
    look = "for p in /proc/[0-9]*; do read -r line < $p/stat; case $line in *') Z '*) echo dead;; esac; done; echo end"
    first, _, last = run(root, "(cat /dev/null &); (cat /dev/null &); echo ok", "cat /dev/null", look)
    assert (first.stdout, last.stdout) == (b"ok\n", b"end\n")


def test_a_shell_without_its_libraries(native: Native, root: Path, tmp_path: Path) -> None:
    with open(root / "bin/sh", "rb") as file:
        image = write_layout(tmp_path / "image", [tar_with([("bin/sh", file.read())], mode=0o755)])
    with pytest.raises(RametError, match="its /bin/sh cannot be started") as caught:
        run(image, "true")
    assert "libraries" in caught.value.remediation


def test_an_image_of_one_program_in_layers(native: Native, tmp_path: Path) -> None:
    """As the small images of registries are: all names are links to one file, and a layer removes one of them."""
    if not os.path.exists("/bin/busybox"):
        pytest.skip("busybox is not in /bin")
    with open("/bin/busybox", "rb") as file:
        busybox = tar_with([("bin/busybox", file.read())], mode=0o4755)
    names = tar_with([(f"bin/{name}", "-> busybox") for name in ("sh", "cat", "wc", "ps", "rm")])
    image = write_layout(tmp_path / "image", [busybox, names, tar_with([("bin/.wh.rm", b"")])], compress=compress_zstd)
    first, second = run(image, "echo a b | wc -w; ls /bin", "ps | wc -l")
    assert first.stdout == b"2\nbusybox\ncat\nps\nsh\nwc\n", first
    assert int(second.stdout) < 12


def test_variables_of_the_image(native: Native, root: Path, tmp_path: Path) -> None:
    env = ["FLAVOR=tiny", "PATH=/opt/tool:/usr/bin", "HOME=/root", "1BAD=x"]
    image = write_layout(tmp_path / "image", [tar_of(root)], env)
    (found,) = run(image, "run one; echo $HOME $PATH", native=None)
    lines = found.text.splitlines()
    assert lines[0] == "tool one tiny" and lines[1].startswith("/home/user /opt/tool:/usr/bin:/usr/local/sbin:"), found


def test_a_workspace_remembers_its_image(native: Native, root: Path, tmp_path: Path) -> None:
    async def steps() -> list[bytes]:
        store = Store(tmp_path / "store")
        store.create("app", native=replace(NATIVE, image=str(root)))
        found = []
        async with store.open("app") as ws:
            found.append((await ws.execute("cat /etc/image; echo kept > /f", native=True, timeout=SECONDS)).stdout)
        async with store.open("app", native=NATIVE) as ws:  # other bounds, the same image
            found.append((await ws.execute("cat /etc/image /f", native=True, timeout=SECONDS)).stdout)
        return found

    assert asyncio.run(steps()) == [b"from the image\n", b"from the image\nkept\n"]


def test_a_missing_image_loses_nothing(native: Native, root: Path, tmp_path: Path) -> None:
    image = tmp_path / "image.tar"
    image.write_bytes(tar_of(root))

    async def steps() -> tuple[bytes, IOResult, bytes]:
        store = Store(tmp_path / "store")
        store.create("app", native=replace(NATIVE, image=str(image)))
        async with store.open("app") as ws:
            await ws.execute("echo kept > /f", native=True, timeout=SECONDS)
        image.rename(tmp_path / "elsewhere.tar")
        async with store.open("app") as ws:
            inside = (await ws.execute("cat /f; echo more >> /f")).stdout
            missing = await ws.execute("python3 x.py")
        with pytest.raises(RametError, match="nothing is there"):
            async with store.open("app", native=True):
                pass
        (tmp_path / "elsewhere.tar").rename(image)
        async with store.open("app") as ws:
            return inside, missing, (await ws.execute("cat /f", native=True, timeout=SECONDS)).stdout

    inside, missing, after = asyncio.run(steps())
    assert inside == b"kept\n" and after == b"kept\nmore\n"
    assert b"image.tar: nothing is there" in missing.stderr and b"Name a root directory" in missing.stderr


def test_names_that_the_workspace_has_stay_its_own(native: Native, root: Path) -> None:
    async def steps() -> tuple[bytes, bytes]:
        ram = RAMResource()
        await ram.mkdir(parse("/opt"))
        await ram.write(parse("/opt/mine"), b"")
        async with Workspace({"/": ram}, native=replace(NATIVE, image=str(root))) as ws:
            found = await ws.execute("ls /opt", native=True, timeout=SECONDS)
            return found.stdout, (await ws.execute("ls /opt")).stdout

    assert asyncio.run(steps()) == (b"mine\n", b"mine\n")


def test_a_configuration_names_an_image(native: Native, root: Path, tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(f"native: {{image: {os.path.relpath(root, tmp_path)}}}\n")

    async def steps() -> bytes:
        async with load_config(tmp_path / "w.yaml").workspace() as ws:
            return (await ws.execute("cat /etc/image", native=True, timeout=SECONDS)).stdout

    assert asyncio.run(steps()) == b"from the image\n"


def test_a_client_cannot_name_an_image() -> None:
    ours = Native(image="/images/base")
    for asked in ("/etc", "/images/other"):
        with pytest.raises(RametError, match="cannot choose an image"):
            ours.asked({"image": asked})
        with pytest.raises(RametError, match="cannot choose an image"):
            Native().asked({"image": asked})
    assert ours.asked({"limits": {"processes": 5}}).image == "/images/base"


def test_the_command_line_names_an_image(native: Native, root: Path, tmp_path: Path) -> None:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "RAMET_STORE": str(tmp_path / "store"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }

    def ramet(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "ramet", *words]
        return subprocess.run(command, capture_output=True, text=True, cwd=root.parent, env=env, check=False)

    assert ramet("create", "app", "--native-image", "root").returncode == 0
    assert ramet("exec", "app", "/opt/tool/run kept").stdout == "tool kept\n"
    assert ramet("create", "plain").returncode == 0
    assert ramet("exec", "--native-image", str(root), "plain", "/opt/tool/run once").stdout == "tool once\n"
    missing = ramet("create", "third", "--native-image", "missing")
    assert missing.returncode != 0 and "cannot find the image missing" in missing.stderr
    assert "third" not in ramet("ls").stdout
