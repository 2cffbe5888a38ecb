"""Snapshots: exact, streaming, atomic, and safe to load from anywhere."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import os
import random
import signal
import subprocess
import sys
import tarfile
import time
import tracemalloc
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from ramet import DiskResource, IOResult, RametError, RAMResource, Workspace
from ramet.backends.local.buffers import Blocks
from ramet.core.paths import ROOT, parse
from ramet.core.stat import Attrs, Kind
from ramet.workspace.snapshot.archive import CHECKSUMS, MANIFEST


def run(ws: Workspace, command: str, **options: Any) -> IOResult:
    async def act() -> IOResult:
        return await ws.execute(command, **options)

    return asyncio.run(act())


def roundtrip(ws: Workspace, **options: Any) -> Workspace:
    buffer = io.BytesIO()
    ws.snapshot(buffer)
    buffer.seek(0)
    return Workspace.load(buffer, **options)


RICH = r"""
mkdir -p /a/b/empty '/a/with space' /ü
printf 'x\0y\377' > /a/bin; : > /a/zero; echo text > '/a/with space/f'
chmod 750 /a/bin; chmod 700 /a/b; touch -d '2001-02-03 04:05:06' /a/zero
ln -s ../a/bin /a/b/link; ln -s /no/where /dangling; ln /a/bin /hard
printf 'n' > $'/new\nline'; printf 'raw' > $'/\xff\xfe'
"""


def test_a_tree_comes_back_exactly() -> None:
    ram = RAMResource()
    ws = Workspace({"/": ram})
    assert run(ws, RICH).exit_code == 0
    again = roundtrip(ws)
    loaded = again.mounts()[0].resource
    assert isinstance(loaded, RAMResource)
    assert loaded.digest(ROOT) == ram.digest(ROOT)
    assert [(n, s.mtime_ns, s.mode, s.nlink) for n, s in sorted(chain.from_iterable(loaded.scan_now(parse("/a"))))] == [
        (n, s.mtime_ns, s.mode, s.nlink) for n, s in sorted(chain.from_iterable(ram.scan_now(parse("/a"))))
    ]
    assert run(again, "echo more >> /hard; tail -c 5 /a/bin").text == "more\n"


def test_a_disk_comes_back_exactly(tmp_path: Path) -> None:
    ws = Workspace({"/": DiskResource(tmp_path / "one", create=True)})
    assert run(ws, RICH.replace("ln /a/bin /hard", "")).exit_code == 0
    again = roundtrip(ws, resources={"/": DiskResource(tmp_path / "two", create=True)})
    listing = (
        "cd /; find . -type f -printf '%p %m %s %T@\\n' | sort; find . -type l -printf '%p %l\\n' | sort; cat /a/bin"
    )
    assert run(again, listing).stdout == run(ws, listing).stdout
    assert again.restored.ok
    assert (tmp_path / "two" / "a" / "zero").stat().st_mtime == (tmp_path / "one" / "a" / "zero").stat().st_mtime


SHELL = r"""
x=1; declare -i n=5; declare -r fixed=yes; declare -a arr=([2]=two [7]='se ven'); declare -A map=([k]=v ['a b']=c)
declare -n ref=x; export EXP='multi
line'; greet() { echo "hello $1" | cat; }; alias ll='ls -l'; shopt -s extglob nullglob; set -o pipefail -u
trap 'echo bye' EXIT; umask 077; mkdir -p /d; cd /d; pushd / > /dev/null; set -- one 'two three'
"""
PROBE = r"""
echo "$x $n $fixed ${arr[*]} ${!arr[*]} ${map[k]} ${map[a b]} $ref $EXP"; greet me; alias ll; shopt extglob nullglob
set -o | grep -E 'pipefail|nounset'; trap -p EXIT; umask; dirs; echo $#: "$2"; n=n+2; echo $n; declare -p arr map ref
"""


def test_a_shell_comes_back_exactly() -> None:
    ws = Workspace()
    run(ws, SHELL)
    expected = run(ws.copy(), PROBE)
    assert expected.exit_code == 0 and expected.stderr == b""
    assert run(roundtrip(ws), PROBE).stdout == expected.stdout
    assert run(ws, PROBE).stdout == expected.stdout


def test_sessions_history_and_finished_jobs_come_back() -> None:
    async def act() -> None:
        ws = Workspace()
        ws.create_session("other", cwd="/tmp", env={"A": "1"})
        await ws.execute("false", agent_id="me")
        await ws.execute("true & wait; sleep 60 &", session_id="other")
        again = roundtrip(ws)
        assert {s.session_id for s in again.list_sessions()} == {"default", "other"}
        assert (await again.execute("pwd; echo $A", session_id="other")).text == "/tmp\n1\n"
        assert [(r.command, r.exit_code, r.agent_id) for r in again.history][:1] == [("false", 1, "me")]
        assert again.history.next_number == 4
        assert [(j["command"], j["status"]) for j in again.finished_jobs] == [("true", "COMPLETED")]
        await ws.close()

    asyncio.run(act())


def test_settings_and_cache_come_back() -> None:
    from ramet.layers.memory_cache import Entry

    ws = Workspace()
    ws.cached_files.put(parse("/s3/f"), Entry(b"cached bytes", "etag", 60.0, 123.0))
    again = roundtrip(ws)
    assert dict(again.cached_files.entries) == {"/s3/f": Entry(b"cached bytes", "etag", 60.0, 123.0)}


def test_what_cannot_be_saved_is_reported(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    ws = Workspace({"/": RAMResource(), "/d": DiskResource(tmp_path)})
    again = roundtrip(ws)
    assert again.restored.problems == ["not in the snapshot: /pipe: a fifo cannot be saved"]
    with pytest.raises(RametError, match="fifo"):
        roundtrip(ws, strict=True)


def test_named_pipes_are_kept() -> None:
    ram = RAMResource()
    asyncio.run(ram.mkfifo(parse("/p")))
    ram.setattr_now(parse("/p"), Attrs(mode=0o600))
    again = roundtrip(Workspace({"/": ram}))
    assert again.restored.ok
    stat = asyncio.run(again.fs.stat(parse("/p")))
    assert (stat.kind, stat.mode) == (Kind.FIFO, 0o600)


def test_memory_does_not_grow_with_the_content(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with open(root / "big", "wb") as file:
        file.truncate(200 << 20)
    ws = Workspace({"/": RAMResource(), "/d": DiskResource(root)})
    target = DiskResource(tmp_path / "again", create=True)
    tracemalloc.start()
    ws.snapshot(tmp_path / "snap.tar")
    Workspace.load(tmp_path / "snap.tar", resources={"/d": target})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 << 20
    assert (tmp_path / "again" / "big").stat().st_size == 200 << 20


KILLED = """
import sys, asyncio
from ramet import Workspace, RAMResource
from ramet.backends.local.buffers import Blocks
from ramet.core.paths import parse
ram = RAMResource()
for i in range(40):
    ram.put_now(parse(f"/{i}"), Blocks(bytes([65 + int(sys.argv[2])]) * 50_000))
ws = Workspace({"/": ram})
print("ready", flush=True)
while True:
    ws.snapshot(sys.argv[1])
"""


def test_a_kill_leaves_the_old_snapshot_or_the_new_one(tmp_path: Path) -> None:
    target = tmp_path / "snap.tar"
    rng = random.Random(3)
    for turn in range(int(os.environ.get("RAMET_KILLS", "12"))):
        child = subprocess.Popen([sys.executable, "-c", KILLED, str(target), str(turn % 3)], stdout=subprocess.PIPE)
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        while not target.exists():
            time.sleep(0.001)
        for _ in range(rng.randrange(2000)):
            pass
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        assert len(run(Workspace.load(target), "cat /*").stdout) == 40 * 50_000


# ------------------------------------------------------------------------------------------------------ hostile


def good_tar() -> bytes:
    ws = Workspace()
    run(ws, "mkdir /d; echo one > /d/1; echo two > /2; ln -s 2 /l")
    buffer = io.BytesIO()
    ws.snapshot(buffer)
    return buffer.getvalue()


def rebuilt(change: Any, members: Any = None) -> bytes:
    """A snapshot whose manifest was changed by someone else."""
    source = tarfile.open(fileobj=io.BytesIO(good_tar()))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as target:
        for member in source.getmembers():
            data = source.extractfile(member).read()  # type: ignore[union-attr]
            if member.name == MANIFEST:
                manifest = json.loads(data)
                changed = change(manifest)
                data = json.dumps(manifest if changed is None else changed).encode()
                member.size = len(data)
            if member.name != CHECKSUMS:
                target.addfile(member, io.BytesIO(data))
        if members is not None:
            members(target)
    return out.getvalue()


def mount(**changes: Any) -> Any:
    return lambda manifest: manifest["mounts"][0].update(changes)


def point_to(path: Any) -> Any:
    return lambda manifest: manifest["mounts"][0]["files"].update({"/2": {"__file": path}})


def add(kind: bytes, name: str = "extra", **attributes: Any) -> Any:
    def act(target: tarfile.TarFile) -> None:
        info = tarfile.TarInfo(name)
        info.type = kind
        for key, value in attributes.items():
            setattr(info, key, value)
        target.addfile(info)

    return act


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


HOSTILE: dict[str, Any] = {
    "empty": b"",
    "garbage": b"not a tar at all" * 100,
    "zeros": bytes(10240),
    "no manifest": tarfile.open(fileobj=io.BytesIO(), mode="w"),
    "wrong version": rebuilt(lambda m: m.update(version=2)),
    "no version": rebuilt(lambda m: m.pop("version")),
    "manifest is a list": rebuilt(lambda m: [1, 2]),
    "mounts is a string": rebuilt(lambda m: m.update(mounts="x")),
    "mounts has numbers": rebuilt(lambda m: m.update(mounts=[1])),
    "twice at one prefix": rebuilt(lambda m: m["mounts"].append(dict(m["mounts"][0]))),
    "relative prefix": rebuilt(mount(prefix="x")),
    "prefix is a number": rebuilt(mount(prefix=5)),
    "unknown type": rebuilt(mount(type="os.system")),
    "dotted class": rebuilt(mount(type="subprocess.Popen", config={"args": ["touch", "/tmp/owned"]})),
    "absolute blob": rebuilt(point_to("/etc/passwd")),
    "traversing blob": rebuilt(point_to("../../etc/passwd")),
    "inner traversing blob": rebuilt(point_to("mounts/../../x")),
    "empty blob": rebuilt(point_to("")),
    "nul blob": rebuilt(point_to("a\0b")),
    "number blob": rebuilt(point_to(7)),
    "missing blob": rebuilt(point_to("mounts/0/files/99.bin")),
    "blob is a link": rebuilt(point_to("extra"), add(tarfile.SYMTYPE, linkname="/etc/passwd")),
    "blob is a hard link": rebuilt(point_to("extra"), add(tarfile.LNKTYPE, linkname=MANIFEST)),
    "blob is a device": rebuilt(point_to("extra"), add(tarfile.CHRTYPE, devmajor=1, devminor=5)),
    "blob is a fifo": rebuilt(point_to("extra"), add(tarfile.FIFOTYPE)),
    "blob is a directory": rebuilt(point_to("extra"), add(tarfile.DIRTYPE)),
    "duplicate member": rebuilt(lambda m: None, add(tarfile.REGTYPE, "mounts/0/files/0.bin")),
    "files is a list": rebuilt(mount(files=[1])),
    "file is text": rebuilt(mount(files={"/x": "text"})),
    "file at the root": rebuilt(lambda m: m["mounts"][0]["files"].update({"/": m["mounts"][0]["files"]["/2"]})),
    "dirs has numbers": rebuilt(mount(dirs=[1])),
    "link target is a number": rebuilt(mount(links={"/l": 3})),
    "attrs are wrong": rebuilt(mount(attrs={"/2": ["rw", 0]})),
    "attrs are huge": rebuilt(mount(attrs={"/2": [0o644, 10**30]})),
    "negative mode": rebuilt(mount(attrs={"/2": [-1, 0]})),
    "nul in a path": rebuilt(lambda m: m["mounts"][0]["files"].update({"/a\0b": m["mounts"][0]["files"]["/2"]})),
    "quota is text": rebuilt(mount(config={"quota": "lots"})),
    "sessions is a dict": rebuilt(lambda m: m.update(sessions={"a": 1})),
    "session without id": rebuilt(lambda m: m.update(sessions=[{}])),
    "session id is a path": rebuilt(lambda m: m.update(sessions=[{"session_id": "../x"}])),
    "variables are a list": rebuilt(lambda m: m["sessions"][0]["shell"].update(variables=[1])),
    "a variable is a number": rebuilt(lambda m: m["sessions"][0]["shell"].update(variables={"x": [5, 0]})),
    "umask is text": rebuilt(lambda m: m["sessions"][0]["shell"].update(umask="0")),
    "history is a number": rebuilt(lambda m: m.update(history=5)),
    "a record is empty": rebuilt(lambda m: m.update(history={"records": [{}]})),
    "cache is malformed": rebuilt(lambda m: m.update(cache={"entries": [{"path": "/x", "ttl": "soon"}]})),
    "deep nesting": rebuilt(lambda m: m.update(extra=_nested(200))),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_snapshots_are_a_value_error(name: str) -> None:
    data = HOSTILE[name]
    if not isinstance(data, bytes):
        data.close()
        data = data.fileobj.getvalue()
    with pytest.raises(ValueError):
        Workspace.load(io.BytesIO(data))
    with pytest.raises(ValueError):
        Workspace.load(io.BytesIO(gzip.compress(data)))


def test_every_truncation_and_any_flipped_byte_is_noticed() -> None:
    data = good_tar()
    end = data.rindex(b"checksums.json")
    for cut in range(0, end, 97):
        with pytest.raises(ValueError):
            Workspace.load(io.BytesIO(data[:cut]))
    rng = random.Random(5)
    for _ in range(300):
        at = rng.randrange(end)
        damaged = bytearray(data)
        damaged[at] ^= 1 << rng.randrange(8)
        try:
            again = Workspace.load(io.BytesIO(bytes(damaged)))
        except ValueError:
            continue
        # What is not noticed must be harmless: padding, or text of the manifest that is still valid.
        assert run(again, "cat /d/1 /2 2>&1; true").exit_code == 0


def test_a_bomb_is_refused_by_its_bound(tmp_path: Path) -> None:
    bomb = gzip.compress(bytes(50 << 20))
    with pytest.raises(RametError, match="max_bytes") as caught:
        Workspace.load(io.BytesIO(bomb), max_bytes=1 << 20)
    assert caught.value.code == "limit_exceeded"
    ram = RAMResource()
    ram.put_now(parse("/f"), Blocks(bytes(5 << 20)))
    Workspace({"/": ram}).snapshot(tmp_path / "s.tar.gz", compress="gz")
    assert (tmp_path / "s.tar.gz").stat().st_size < 1 << 20
    assert run(Workspace.load(tmp_path / "s.tar.gz", max_bytes=8 << 20), "wc -c < /f").text == f"{5 << 20}\n"


@pytest.mark.parametrize("files", (1, 9))
def test_a_plain_archive_is_refused_by_the_bytes_of_its_files_before_one_is_read(tmp_path: Path, files: int) -> None:
    ram = RAMResource()
    for number in range(files):
        ram.put_now(parse(f"/f{number}"), Blocks(bytes((9 << 20) // files)))
    plain = tmp_path / "s.tar"
    Workspace({"/": ram}).snapshot(plain)
    with pytest.raises(RametError, match="max_bytes=8388608") as caught:
        Workspace.load(plain, max_bytes=8 << 20)
    assert caught.value.code == "limit_exceeded"
    assert run(Workspace.load(plain, max_bytes=10 << 20), "cat /f* | wc -c").text == f"{(9 << 20) // files * files}\n"


def test_a_member_counts_for_every_file_that_it_is(tmp_path: Path) -> None:
    ram = RAMResource()
    ram.put_now(parse("/a"), Blocks(bytes(1 << 20)))
    ram.put_now(parse("/b"), Blocks(b"short"))
    plain = tmp_path / "s.tar"
    Workspace({"/": ram}).snapshot(plain)
    data = plain.read_bytes()
    assert data.count(b"files/1.bin") > 1 and b'"mounts/0/files/1.bin"' in data
    plain.write_bytes(data.replace(b'"mounts/0/files/1.bin"', b'"mounts/0/files/0.bin"', 1))
    with pytest.raises(RametError, match="max_bytes"):
        Workspace.load(plain, max_bytes=3 << 19)


def test_unknown_compression_and_missing_files_are_clear(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown compression"):
        Workspace().snapshot(tmp_path / "x", compress="rar")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        Workspace.load(tmp_path / "nothing.tar")
