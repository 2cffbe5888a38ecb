"""Mounts that are neither memory nor a directory, as native programs see them: FUSE, answered from the workspace."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator

import pytest
from tests.workspace.native.conftest import NATIVE, SECONDS, need

from ramet.backends.local.ram import RAMResource
from ramet.core.errors import fail, unavailable
from ramet.core.paths import Path, parse
from ramet.core.resource import Cap, Data, How
from ramet.core.stat import Stat
from ramet.layers.passthrough import Passthrough
from ramet.native.fuse import connection
from ramet.native.fuse.messages import Op
from ramet.native.fuse.verbs import VERBS
from ramet.native.options import Native
from ramet.workspace.mounts import MountForm, MountMode
from ramet.workspace.policy import Policy
from ramet.workspace.result import IOResult
from ramet.workspace.workspace import Workspace

MIB = 1 << 20


class Bucket(Passthrough):
    """A remote resource: whole writes, ranged reads, no handles. It counts what it gives."""

    transparent = False

    def __init__(self, caps: Cap = Cap.WRITE | Cap.RANGES | Cap.DIRS, *, rendered: bool = False) -> None:
        super().__init__(RAMResource())
        self._caps, self._rendered = caps, rendered
        self.given = 0
        self.writes: list[tuple[str, How]] = []
        self.refusal: OSError | None = None
        self.largest_block = 0

    @property
    def caps(self) -> Cap:
        return self._caps

    def _shown(self, stat: Stat) -> Stat:
        return stat._replace(size=None) if self._rendered and stat.is_file else stat

    async def stat(self, path: Path) -> Stat:
        return self._shown(await self.inner.stat(path))

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        async for name, stat in self.inner.scan(path):
            yield name, self._shown(stat)

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        async for block in self.inner.read(path, start, stop):
            for at in range(0, len(block), MIB):
                part = block[at : at + MIB]
                self.given += len(part)
                yield part
                await asyncio.sleep(0)

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        if self.refusal is not None and data != b"":
            raise self.refusal
        self.writes.append((str(path), how))
        if not isinstance(data, bytes):
            parts = [block async for block in data]
            self.largest_block = max([self.largest_block, *map(len, parts)])
            data = b"".join(parts)
        return await self.inner.write(path, data, how, at=at, if_version=if_version)


class Huge(Bucket):
    """One file of a gigabyte, made while it is read."""

    SIZE = 1 << 30

    async def stat(self, path: Path) -> Stat:
        stat = await self.inner.stat(path)
        return stat._replace(size=self.SIZE) if stat.is_file else stat

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        at, end = start, self.SIZE if stop is None else min(stop, self.SIZE)
        while at < end:
            size = min(MIB, end - at)
            self.given += size
            at += size
            yield b"x" * size
            await asyncio.sleep(0)


class Stuck(Bucket):
    """Reads never return."""

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        yield b""
        await asyncio.Event().wait()


def workspace(native: Native, mounts: dict[str, MountForm], policy: object = None) -> Workspace:
    return Workspace(mounts, native=native, policy=policy)  # type: ignore[arg-type]


async def real(ws: Workspace, text: str, session: str = "default") -> IOResult:
    return await ws.execute(text, session, native=True, timeout=SECONDS)


async def put(bucket: Bucket, text: str, data: bytes) -> None:
    await bucket.inner.write(parse(text), data)


def test_programs_read_write_list_move_and_remove(native: Native) -> None:
    bucket = Bucket()

    async def steps() -> None:
        await put(bucket, "/a", b"one\ntwo\n")
        async with workspace(native, {"/s3": bucket}) as ws:
            done = await real(
                ws, "cat /s3/a; mkdir -p /s3/d/e; echo new > /s3/d/e/f; cp /s3/a /s3/d/g; mv /s3/d/g /s3/h; rm /s3/a;"
                "cd /s3/d; ls -R /s3; ln -s x /s3/l; cat e/f; tail -c 4 ../h; truncate -s 2 /s3/h; cat /s3/h; rm -r e",
            )  # fmt: skip
            assert b"symbolic link '/s3/l': Operation not permitted" in done.stderr
            expected = "one\ntwo\n/s3:\nd\nh\n\n/s3/d:\ne\n\n/s3/d/e:\nf\nnew\ntwo\non"
            assert (done.stdout.decode(), done.exit_code) == (expected, 0)
            inside = await ws.execute("ls /s3 /s3/d; cat /s3/h")
            assert inside.stdout == b"/s3:\nd\nh\n\n/s3/d:\non"

    asyncio.run(steps())


def test_records_have_paths_and_bytes_and_the_session_that_ran_the_program(native: Native) -> None:
    bucket = Bucket()

    async def steps() -> None:
        for name in ("/a", "/b"):  # of one file, the kernel would give the one what the other has read
            await put(bucket, name, b"12345")
        async with workspace(native, {"/s3": bucket}) as ws:
            ws.create_session("other")
            first, second = await asyncio.gather(
                real(ws, "cat /s3/a > /s3/mine; sleep 0.1; cat /s3/a > /dev/null"),
                real(ws, "(setsid sh -c 'sleep 0.05; cat /s3/b /s3/b > /s3/theirs'); sleep 0.1", "other"),
            )
            assert first.exit_code == second.exit_code == 0
            by_session = {record.session_id: record for record in ws.history.after(0)}
            one, two = by_session["default"], by_session["other"]
            assert (one.paths_written, two.paths_written) == (("/s3/mine",), ("/s3/theirs",))
            assert (first.bytes_read["/s3"], first.bytes_written["/s3"]) == (10, 5)
            assert (second.bytes_read["/s3"], second.bytes_written["/s3"]) == (10, 10)

    asyncio.run(steps())


def test_policies_decide_for_programs_too(native: Native) -> None:
    bucket = Bucket()
    rules = {
        "hide": [{"path": "/s3/hidden/**"}],
        "deny": [{"path": "/s3/keys/*", "reason": "keys stay here"}, {"path": "/s3/fixed", "access": "write"}],
    }

    async def steps() -> None:
        for name in ("hidden", "keys"):
            await bucket.inner.mkdir(parse(f"/{name}"))
            await put(bucket, f"/{name}/k", b"secret")
        await put(bucket, "/fixed", b"readable")
        async with workspace(native, {"/s3": bucket}, rules) as ws:
            done = await real(
                ws, "ls /s3; cat /s3/hidden/k; cat /s3/keys/k; echo x >> /s3/fixed; mv /s3/keys /s3/k; cat /s3/fixed",
            )  # fmt: skip
            assert done.stdout == b"fixed\nkeys\nreadable"
            assert b"hidden/k: No such file" in done.stderr and b"secret" not in done.stdout + done.stderr
            assert b"keys stay here" in done.stderr

    asyncio.run(steps())


def test_a_program_asks_where_the_policy_says_so(native: Native) -> None:
    bucket = Bucket()
    asked: list[str] = []

    async def steps() -> None:
        policy = Policy.from_dict({"ask": [{"path": "/s3/a", "access": "write"}]})

        async def answer(request: object) -> bool:
            asked.append(request.subject)  # type: ignore[attr-defined]
            return True

        policy.answer = answer
        async with workspace(native, {"/s3": bucket}, policy) as ws:
            assert (await real(ws, "echo x > /s3/a; cat /s3/a")).stdout == b"x\n"
            assert set(asked) == {"/s3/a"}

    asyncio.run(steps())


def test_a_read_only_mount_answers_erofs(native: Native) -> None:
    bucket = Bucket()

    async def steps() -> None:
        await put(bucket, "/a", b"text")
        async with workspace(native, {"/s3": (bucket, MountMode.READ)}) as ws:
            done = await real(ws, "echo x > /s3/b; rm -f /s3/a; mkdir /s3/d; cat /s3/a")
            assert done.stdout == b"text" and done.stderr.count(b"Read-only file system") == 3
            assert bucket.writes == []

    asyncio.run(steps())


def test_files_of_unknown_size_are_read_whole(native: Native) -> None:
    need("grep", "perl")
    bucket = Bucket(rendered=True)

    async def steps() -> None:
        await put(bucket, "/page.md", b"line\n" * 5000 + b"needle\n")
        async with workspace(native, {"/notion": bucket}) as ws:
            done = await real(
                ws, "cat /notion/page.md | wc -l; grep -c needle /notion/page.md; cp /notion/page.md /c; wc -c < /c;"
                "perl -ne 'END { print \"$.\\n\" }' /notion/page.md; echo end >> /notion/page.md; tail -1 /notion/*",
            )  # fmt: skip
            assert done.stdout.split() == [b"5001", b"1", b"25007", b"5001", b"end"]

    asyncio.run(steps())


def test_the_head_of_a_large_file_does_not_fetch_it(native: Native) -> None:
    need("dd")
    bucket = Huge()

    async def steps() -> None:
        await put(bucket, "/big", b"")
        async with workspace(native, {"/s3": bucket}) as ws:
            assert (await real(ws, "head -c 10 /s3/big")).stdout == b"x" * 10
            assert bucket.given <= 16 * MIB
            before = bucket.given
            done = await real(ws, "dd if=/s3/big bs=1k skip=900000 count=2 status=none | wc -c")
            assert done.stdout.strip() == b"2048" and bucket.given - before <= 16 * MIB

    asyncio.run(steps())


def test_a_large_write_is_one_upload_in_blocks(native: Native) -> None:
    need("dd")
    bucket = Bucket()
    before = spools()

    async def steps() -> None:
        async with workspace(native, {"/s3": bucket}) as ws:
            done = await real(
                ws, "dd if=/dev/zero of=/s3/big bs=1M count=64 status=none; stat -c %s /s3/big; cat /s3/*|cksum"
            )
            assert done.stdout.split()[0] == b"67108864"
            assert bucket.writes == [("/big", How.REPLACE)] * 2
            assert bucket.largest_block <= 4 * MIB
            assert spools() == before

    asyncio.run(steps())


def spools() -> int:
    """Files without a name that this process has open in the directory of boxes."""
    found = 0
    for fd in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
        found += target.startswith("/var/tmp/ramet") and "(deleted)" in target
    return found


def test_appends_and_edits_in_place(native: Native) -> None:
    need("perl", "sed")
    bucket = Bucket()

    async def steps() -> None:
        await put(bucket, "/log", b"1\n")
        async with workspace(native, {"/s3": bucket}) as ws:
            assert (await real(ws, "echo 2 >> /s3/log; echo 3 >> /s3/log; cat /s3/log")).stdout == b"1\n2\n3\n"
            assert {how for _, how in bucket.writes} <= {How.APPEND, How.REPLACE}
            edit = 'open F, "+<", "/s3/log"; seek F, 2, 0; print F "TWO"; close F or die; open G, "/s3/log"; print <G>'
            assert (await real(ws, f"perl -e '{edit}'; cat /s3/log")).stdout == b"1\nTWO\n" * 2
            assert (await real(ws, "sed -i s/TWO/two/ /s3/log; cat /s3/log; ls /s3")).stdout == b"1\ntwo\nlog\n"
            # What one program has written and not closed, another one sees.
            both = 'open F, ">", "/s3/n"; syswrite F, "open"; print -s "/s3/n"; print `cat /s3/n`'
            assert (await real(ws, f"perl -e '{both}'")).stdout == b"4open"

    asyncio.run(steps())


def test_a_failed_upload_is_reported(native: Native) -> None:
    need("perl")
    bucket = Bucket()

    async def steps() -> None:
        async with workspace(native, {"/s3": bucket}) as ws:
            bucket.refusal = fail(errno.EDQUOT, None, "the bucket is full")
            done = await real(ws, 'perl -e \'open F, ">/s3/a"; print F "x"; close F or print "E$!"\'; cat /s3/a')
            assert done.stdout == b"EDisk quota exceeded"
            assert b"cannot store /s3/a: the bucket is full" in done.stderr
            bucket.refusal = unavailable(None, "503 from the bucket")
            done = await real(ws, "cat /etc/hostname > /s3/a; echo $?")
            assert b"503 from the bucket" in done.stderr and done.stderr.count(b"cannot store") == 1

    asyncio.run(steps())


def test_a_late_mount_gets_a_file_once_with_its_content(native: Native) -> None:
    bucket = Bucket(Cap.WRITE | Cap.RANGES | Cap.DIRS | Cap.ON_CLOSE)

    async def steps() -> None:
        async with workspace(native, {"/mail": bucket}) as ws:
            twice = 'open F, ">", "/mail/a"; syswrite F, "one\n"; print `ls /mail; cat /mail/a`; syswrite F, "two\n"'
            done = await real(ws, f"perl -e '{twice}'; cat /mail/a")
            assert done.stdout == b"a\none\none\ntwo\n" and done.exit_code == 0
            assert (
                await real(ws, "cp /etc/hostname /mail/b; mv /mail/b /mail/c; rm /mail/a; ls /mail")
            ).stdout == b"c\n"
            assert [path for path, _ in bucket.writes] == ["/a", "/b", "/c"]

    asyncio.run(steps())


def test_timeouts_and_signals_end_a_read_that_never_returns(native: Native) -> None:
    bucket = Stuck()

    async def steps() -> None:
        await put(bucket, "/a", b"x" * 100)
        async with workspace(native, {"/s3": bucket, "/ok": Bucket()}) as ws:
            assert (await real(ws, "timeout 0.2 cat /s3/a")).exit_code == 124
            late = await ws.execute("cat /s3/a", native=True, timeout=0.3)
            assert (late.exit_code, late.timed_out) == (124, True)
            ws.create_session("other")
            waiting = asyncio.ensure_future(real(ws, "echo > /tmp/on; cat /s3/a"))
            await ws.execute("until test -e /tmp/on; do sleep 0.01; done", "other", timeout=SECONDS)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert (await real(ws, "echo y > /ok/f; cat /ok/f")).stdout == b"y\n"

    asyncio.run(asyncio.wait_for(steps(), 2 * SECONDS))


def test_mounts_in_mounts_and_mounts_that_come_later(native: Native) -> None:
    outer, inner, later = Bucket(), Bucket(), Bucket()

    async def steps() -> None:
        for bucket, text in ((outer, b"outer"), (inner, b"inner"), (later, b"later")):
            await put(bucket, "/f", text)
        async with workspace(native, {"/r": outer, "/r/in": inner, "/r/ram": RAMResource(), "/a/b/c": later}) as ws:
            done = await real(ws, "cat /r/f /r/in/f /a/b/c/f; echo x > /r/ram/g; ls /r; mv /r/f /r/in/moved; ls /r/in")
            assert done.stdout == b"outerinnerlater" + b"f\nin\nram\n" + b"f\nmoved\n"
            assert (await ws.execute("cat /r/ram/g")).stdout == b"x\n"
            ws.mount("/late", later)
            assert (await real(ws, "cat /late/f")).stdout == b"later"
            await ws.unmount("/late")
            assert b"No such file" in (await real(ws, "cat /late/f")).stderr

    asyncio.run(steps())


def test_programs_and_commands_in_process_share_the_mount_in_one_pipeline(native: Native) -> None:
    need("perl")
    bucket = Bucket()

    async def steps() -> None:
        async with workspace(native, {"/s3": bucket}) as ws:
            text = (
                "for i in 1 2 3; do echo $i >> /s3/f; perl -ne 'print' /s3/f; done; perl -e 'unlink \"/s3/f\"'; ls /s3"
            )
            assert (await ws.execute(text, timeout=SECONDS)).stdout.split() == [b"1", b"1", b"2", b"1", b"2", b"3"]
            here = await ws.execute("cd /s3; echo in > x; perl -pe 's/in/out/' x > y; cat y", timeout=SECONDS)
            assert here.stdout == b"out\n"

    asyncio.run(steps())


def test_without_the_device_the_first_program_says_so(native: Native, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ramet.native.fuse.DEVICE", "/dev/no-such-device")

    async def steps() -> None:
        async with workspace(native, {"/s3": Bucket(), "/": RAMResource()}) as ws:
            first, second = await real(ws, "echo 1; ls /s3"), await real(ws, "echo 2")
            assert first.stdout == b"1\n" and second.stderr == b""
            assert b"/s3 (Bucket): cannot open /dev/no-such-device: No such file" in first.stderr
            assert b"--device /dev/fuse" in first.stderr
            assert (await ws.execute("ls /s3")).exit_code == 0

    asyncio.run(steps())


KILLED = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from tests.workspace.native.test_remote_mounts import Bucket
from ramet.workspace.workspace import Workspace

async def main():
    async with Workspace({"/s3": Bucket()}, native=True) as ws:
        await ws.execute("sleep 1000 < /s3 & while :; do date > /s3/f; done", native=True)

print("ready", flush=True)
asyncio.run(main())
"""


def test_a_kill_leaves_no_mount(native: Native) -> None:
    assert native is NATIVE
    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
    process = subprocess.Popen([sys.executable, "-c", KILLED, here], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    deadline = time.monotonic() + SECONDS
    while not (boxed := _in_box_of(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert boxed
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    while any(os.path.exists(f"/proc/{pid}") for pid in boxed) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(os.path.exists(f"/proc/{pid}") for pid in boxed)
    with open("/proc/self/mounts") as file:
        assert " /s3 fuse" not in file.read()


def _in_box_of(pid: int) -> list[int]:
    """Processes below a process that see the mount."""
    found, todo = [], [pid]
    while todo:
        try:
            with open(f"/proc/{todo[-1]}/task/{todo.pop()}/children") as file:
                todo += (children := [int(one) for one in file.read().split()])
        except OSError:
            continue
        for child in children:
            try:
                with open(f"/proc/{child}/mounts") as file:
                    found += [child] if " /s3 fuse" in file.read() else []
            except OSError:
                continue
    return found


LOW = {"deny": [{"path": "/s3/secret", "access": "read", "session": "low"}]}


def test_a_draft_of_another_session_is_not_read(native: Native) -> None:
    """A program makes a file that is stored when it is closed; the policy denies it to another session."""
    need("python3")
    hold = "import time\nf = open('/s3/secret', 'w')\nf.write('mine')\nf.flush()\nopen('/ready', 'w')\ntime.sleep(1000)"

    async def steps() -> tuple[IOResult, IOResult]:
        bucket = Bucket(Cap.WRITE | Cap.RANGES | Cap.DIRS | Cap.ON_CLOSE)
        async with workspace(native, {"/s3": bucket}, LOW) as ws:
            ws.create_session("low")
            await ws.execute(f'python3 -c "{hold}" & while ! test -e /ready; do sleep 0.01; done', timeout=SECONDS)
            return await real(ws, "cat /s3/secret", "low"), await real(ws, "cat /s3/secret")

    low, high = asyncio.run(steps())
    assert low.exit_code != 0 and low.stdout == b"" and high.stdout == b"mine", (low, high)


def test_a_daemon_below_many_others_is_not_taken_for_another_session(native: Native) -> None:
    deep = (
        "f() { if test $1 = 0; then touch /deep; while ! test -e /go; do sleep 0.01; done; cat /s3/secret > /got 2>&1; "
    )
    deep += "touch /done; else (f $(($1 - 1)); :); fi; }; (f 80 &) > /dev/null 2>&1; "
    deep += "while ! test -e /deep; do sleep 0.01; done"

    async def steps() -> IOResult:
        bucket = Bucket()
        await put(bucket, "/secret", b"mine")
        async with workspace(native, {"/s3": bucket}, LOW) as ws:
            ws.create_session("low")
            await real(ws, deep, "low")
            await real(ws, "cat /s3/secret; touch /go; while ! test -e /done; do sleep 0.01; done")
            return await ws.execute("cat /got")

    found = asyncio.run(steps())
    assert b"mine" not in found.stdout and b"denied" in found.stdout, found


def test_many_open_files_leave_ramet_its_descriptors(native: Native) -> None:
    need("python3")
    script = "import errno\nheld = []\nfor n in range(2000):\n    try: held.append(open(f'/s3/{n}', 'w'))\n"
    script += "    except OSError as e: print(errno.errorcode[e.errno]); break\nprint(len(held) > 100)"

    async def steps() -> tuple[IOResult, IOResult]:
        async with workspace(native, {"/s3": Bucket()}) as ws:
            first = await real(ws, f'python3 -c "{script}"')
            return first, await real(ws, "echo after > /s3/after; cat /s3/after")

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    try:
        first, after = asyncio.run(steps())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert first.stdout == b"ENFILE\nTrue\n", first
    assert after.stdout == b"after\n"


def test_requests_wait_when_ramet_holds_enough(native: Native, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many threads write at once to a mount that takes its time: their bytes stay in the kernel."""
    need("python3")
    most = 2 * MIB
    monkeypatch.setattr(connection, "MOST_HELD", most)
    held: list[int] = []
    full = asyncio.Event()
    start, write = connection.Connection._start, VERBS[Op.WRITE]

    def seen(self: connection.Connection, *words: object) -> None:
        start(self, *words)  # type: ignore[arg-type]
        held.append(self._held)
        if self._held > most:
            full.set()

    async def slowly(*words: object) -> bytes:
        await full.wait()
        return await write(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(connection.Connection, "_start", seen)
    monkeypatch.setitem(VERBS, Op.WRITE, slowly)
    script = "import threading\ndef put(n):\n    for _ in range(4):\n"
    script += "        open(f'/s3/{n}', 'wb', buffering=0).write(b'x' * (1 << 20))\n"
    script += "all = [threading.Thread(target=put, args=(n,)) for n in range(32)]\n"
    script += "[t.start() for t in all]\n[t.join() for t in all]"

    async def steps() -> IOResult:
        bucket = Bucket()
        async with workspace(native, {"/s3": bucket}) as ws:
            return await real(ws, f'python3 -c "{script}"; ls /s3 | wc -l')

    found = asyncio.run(steps())
    assert found.stdout == b"32\n", found
    assert most < max(held) < most + 2 * MIB


def test_a_policy_about_other_paths_leaves_remote_mounts_there(native: Native) -> None:
    """Their view is built while Ramet waits, which could not answer a question about them."""
    rules = {
        "hide": [{"path": "/secrets/**"}, {"path": "/s3/hidden"}],
        "deny": [{"path": "/work/**", "access": "write"}],
    }
    deny = {"default": "deny", "allow": [{"command": "**"}, {"path": "/s3/**"}, {"path": "/tmp/**"}]}

    async def steps(policy: object) -> IOResult:
        bucket = Bucket()
        await put(bucket, "/f", b"remote\n")
        await put(bucket, "/hidden", b"hidden\n")
        mounts: dict[str, MountForm] = {"/s3": bucket, "/s3/in": RAMResource(), "/work": RAMResource()}
        async with workspace(native, mounts, policy) as ws:
            return await real(ws, "cat /s3/f; ls /secrets; ls /s3; echo x > /work/f; echo y > /s3/in/g; cat /s3/in/g")

    found = asyncio.run(steps(rules))
    assert found.stdout == b"remote\nf\nin\ny\n" and b"/work/f: Read-only file system" in found.stderr, found
    found = asyncio.run(steps(deny))
    assert found.stdout == b"remote\nf\nhidden\nin\ny\n" and b"/work/f: No such file" in found.stderr, found
