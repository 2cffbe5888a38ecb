"""Programs that try to leave their box: each row is one way out, and what must come of it.

All of it runs inside the bounds of a box with small limits.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.workspace.native.conftest import SECONDS, need, reachable

from ramet.backends.local.disk import DiskResource
from ramet.backends.local.ram import RAMResource
from ramet.core.paths import parse
from ramet.native.options import Native, NativeLimits
from ramet.native.server import PROGRAM
from ramet.workspace.mounts import MountForm, MountMode
from ramet.workspace.result import IOResult
from ramet.workspace.workspace import Workspace

SMALL = Native(NativeLimits(memory_bytes=256 << 20, processes=64, file_bytes=4 << 20, open_files=256))
SECRET = f"secret-{secrets.token_hex(16)}"


@pytest.fixture
def secret_file(native: Native) -> Iterator[str]:
    """A file of the host that every user may read."""
    with tempfile.NamedTemporaryFile("w", prefix="ramet-secret-") as file:
        os.chmod(file.name, 0o644)
        file.write(SECRET)
        file.flush()
        yield file.name


def run(text: str, native: Native = SMALL) -> IOResult:
    async def steps() -> IOResult:
        async with Workspace(native=native) as ws:
            return await ws.execute(text, native=True, timeout=SECONDS)

    return asyncio.run(steps())


def python(source: str, native: Native = SMALL) -> IOResult:
    need("python3")
    return run(f"python3 - <<'END'\n{source}\nEND\n", native)


@pytest.mark.parametrize(
    "way",
    [
        "cat {path}", "cat /proc/1/root{path}", "cat /proc/self/root{path}", "cat /../..{path}",
        "ln -s / /l; cat /l{path}", "ln -s /proc/1/root /l; cat /l{path}", "cat /oldroot{path} /newroot{path}",
        "cd /proc/1/cwd; cat .{path}", "find / -xdev -name 'ramet-secret-*' | xargs -r cat",
    ],
)  # fmt: skip
def test_files_of_the_host_are_not_there(secret_file: str, way: str) -> None:
    result = run(way.format(path=secret_file))
    assert SECRET.encode() not in result.stdout


def test_links_do_not_lead_in_process_commands_out(secret_file: str) -> None:
    """The tree is written by programs and read by Ramet, which sees the host."""

    async def steps() -> bytes:
        async with Workspace(native=SMALL) as ws:
            links = f"ln -s {secret_file} /a; ln -s /proc/self/root /b; mkdir /c; ln -s ../../../../../../.. /c/d"
            await ws.execute(links, native=True, timeout=SECONDS)
            tries = f"cat /a; cat /b{secret_file}; cat /c/d{secret_file}; cp /a /e; tar cf - /a | cat; grep -r . /a"
            return (await ws.execute(tries, timeout=SECONDS)).stdout

    assert SECRET.encode() not in asyncio.run(steps())


@pytest.mark.parametrize("path", ["/root", "/home", "/var", "/run", "/etc/shadow", "/etc/ssh", "/sys/kernel", "/boot"])
def test_directories_of_the_host_are_not_there(native: Native, path: str) -> None:
    result = run(f"find {path} -mindepth 1 2> /dev/null | grep -v '^/home/user$' | head -5")
    assert result.stdout == b""


def test_processes_of_the_host_are_not_there(native: Native) -> None:
    result = run("for p in /proc/[0-9]*; do echo ${p#/proc/}; done")
    numbers = [int(word) for word in result.stdout.split()]
    assert 0 < len(numbers) < 12 and max(numbers) < 100
    assert run(f"kill -9 {os.getpid()}; kill -0 {os.getppid()}").exit_code != 0


REFUSED = {
    "a user namespace": "unshare -Ur true",
    "a mount namespace": "unshare -m true",
    "a mount": "mount -t tmpfs none /tmp",
    "a bind mount": "mount --bind /tmp /usr",
    "chroot": "chroot / true",
    "entering a namespace": "nsenter -t 1 -m true",
    "a device node": "mknod /tmp/d b 8 0",
    "writing to /usr": "touch /usr/bin/x",
    "writing to /etc": "touch /etc/x",
    "writing to sysctl": "echo 1 > /proc/sys/kernel/core_pattern",
    "sysrq": "echo h > /proc/sysrq-trigger",
    "another user": "setpriv --reuid 0 true",
    "a raw disk": "head -c 1 /dev/vda /dev/sda /dev/nvme0n1 /dev/mem",
    "the kernel log": "dmesg",
    "a cgroup": "mkdir /sys/fs/cgroup/x",
    "the host's name": "hostname other",
}


@pytest.mark.parametrize("way", REFUSED.values(), ids=REFUSED.keys())
def test_refused(native: Native, way: str) -> None:
    assert run(way).exit_code != 0


def test_no_capability_and_a_filter(native: Native) -> None:
    result = run("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; id -u; id -G")
    words = result.stdout.decode().split()
    assert {words[at + 1] for at, word in enumerate(words) if word.startswith("Cap")} == {"0" * 16}
    assert words[words.index("NoNewPrivs:") + 1] == "1" and words[words.index("Seccomp:") + 1] == "2"
    assert words[-2:] == ["1000", "1000"]


def test_setuid_programs_gain_nothing(native: Native) -> None:
    result = run("cp /usr/bin/id /tmp/id; chmod u+s /tmp/id; /tmp/id -u; su -c id < /dev/null; sudo -n id; true")
    assert result.stdout.split() == [b"1000"]


SETUID = """
import os
def attempt(work):
    try:
        work()
        print("done")
    except OSError as error:
        print(error.strerror)
attempt(lambda: os.chmod("f", 0o4755))
attempt(lambda: os.fchmod(os.open("f", os.O_RDONLY), 0o4755))
attempt(lambda: os.open("g", os.O_CREAT | os.O_WRONLY, 0o4755))
attempt(lambda: os.open(".", os.O_TMPFILE | os.O_WRONLY, 0o4755))
attempt(lambda: os.mknod("m", 0o104755))
attempt(lambda: os.chmod("f", 0o2755))
attempt(lambda: os.open("h", os.O_CREAT | os.O_WRONLY, 0o755))
attempt(lambda: os.open("f", os.O_RDONLY, 0o4755))
"""


def test_no_file_lends_out_its_owner(native: Native, tmp_path: Path) -> None:
    """In a directory of the host a setuid file would give Ramet's user to every user of the host."""
    need("python3")
    mounts: dict[str, MountForm] = {"/": RAMResource()}
    if reachable(str(tmp_path)):
        mounts["/work"] = DiskResource(tmp_path)

    async def steps() -> IOResult:
        async with Workspace(mounts, native=SMALL) as ws:
            cwd = max(mounts)
            return await ws.execute(f"cd {cwd}; : > f; python3 -c '{SETUID}'", native=True, timeout=SECONDS)

    result = asyncio.run(steps())
    assert result.stdout.splitlines() == [b"Operation not permitted"] * 5 + [b"done"] * 3, result
    assert not any(os.stat(path).st_mode & 0o4000 for path in tmp_path.iterdir())


SYSCALLS = """
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
numbers = {"x86_64": {"ptrace": 101, "bpf": 321, "keyctl": 250, "userfaultfd": 323, "io_uring_setup": 425,
    "perf_event_open": 298, "unshare": 272, "setns": 308, "process_vm_readv": 310, "open_by_handle_at": 304,
    "fsopen": 430, "pidfd_getfd": 438, "kexec_load": 246}}.get(platform.machine(), {})
for name, number in numbers.items():
    ctypes.set_errno(0)
    result = libc.syscall(number, 0, 0, 0, 0, 0)
    print(name, result, ctypes.get_errno())
libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0) if platform.machine() == "x86_64" else None
print("clone", ctypes.get_errno())
"""


def test_system_calls_that_reach_out_are_refused(native: Native) -> None:
    rows = [line.split() for line in python(SYSCALLS).stdout.decode().splitlines()]
    assert rows and all(row[-1] == "1" for row in rows), rows


def test_the_network_is_loopback_only(native: Native) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        result = python(
            "import socket\n"
            f"for where in (('127.0.0.1', {port}), ('192.0.2.1', 80), ('8.8.8.8', 53)):\n"
            "    try: socket.create_connection(where, 2); print('connected', where)\n"
            "    except OSError as e: print('refused')\n"
            "print(len(socket.if_nameindex()))\n"
        )
    assert result.stdout.decode().split() == ["refused"] * 3 + ["1"]


def test_abstract_sockets_of_the_host_are_not_there(native: Native) -> None:
    name = f"ramet-{secrets.token_hex(8)}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0{name}")
        server.listen()
        result = python(f"import socket; socket.socket(socket.AF_UNIX).connect('\\0{name}')")
    assert result.exit_code != 0 and b"refused" in result.stderr.lower()


def test_a_fork_bomb_stays_in_its_bounds(native: Native) -> None:
    """The call ends, and the next program of the box works."""

    async def steps() -> tuple[IOResult, IOResult]:
        async with Workspace(native=SMALL) as ws:
            bomb = await ws.execute("f() { f | f & }; f; sleep 1000", native=True, timeout=2.0)
            return bomb, await ws.execute("echo alive", native=True, timeout=SECONDS)

    bomb, after = asyncio.run(steps())
    assert bomb.exit_code == 124 and after.stdout == b"alive\n"


def test_a_memory_bomb_dies_and_the_box_lives(native: Native) -> None:
    need("python3")

    async def steps() -> tuple[IOResult, IOResult]:
        async with Workspace(native=SMALL) as ws:
            grow = "python3 -c 'x = []\nwhile True: x.append(bytearray(b\"x\" * (1 << 20)))'"
            return await ws.execute(grow, timeout=SECONDS), await ws.execute("perl -e 'print 1'", timeout=SECONDS)

    bomb, after = asyncio.run(steps())
    assert bomb.exit_code in (1, 137) and not bomb.timed_out
    assert after.stdout == b"1"


IN_MEMORY = {
    "files of /dev/shm": "n = 0\nwhile True: n += 1; open(f'/dev/shm/{n}', 'wb').write(block)",
    "files without a name": "while True: f = os.memfd_create('x'); os.write(f, block); held.append(f)",
    "shared mappings": "while True: m = mmap.mmap(-1, len(block)); m.write(block); held.append(m)",
    "files of /dev": "n = 0\nwhile True: n += 1; open(f'/dev/{n}', 'wb').write(block)",
}


@pytest.mark.parametrize("way", IN_MEMORY.values(), ids=IN_MEMORY.keys())
def test_memory_beside_the_programs_own_is_bounded(native: Native, way: str) -> None:
    """What outlives the program, too, leaves enough for the next one."""
    need("python3")
    source = f"import mmap, os, time\nheld = []\nblock = b'x' * (3 << 20)\n{way}"

    async def steps() -> tuple[IOResult, IOResult]:
        async with Workspace(native=SMALL) as ws:
            await ws.dispatch("write", "/bomb.py", source.encode())
            bomb = await ws.execute("python3 /bomb.py", timeout=SECONDS)
            # The kernel takes a moment to give back what the bomb had.
            return bomb, await ws.execute("until python3 -c 'print(1)'; do sleep 0.05; done", timeout=SECONDS)

    bomb, after = asyncio.run(steps())
    assert bomb.exit_code in (1, 137) and not bomb.timed_out, bomb
    assert after.stdout == b"1\n" and not after.timed_out, after


def test_a_file_cannot_fill_the_disk(native: Native) -> None:
    result = run("head -c 100000000 /dev/zero > /big; echo $?; stat -c %s /big")
    status, size = result.stdout.split()
    assert status != b"0" and int(size) <= 4 << 20


def test_killing_everything_ends_only_the_box(native: Native) -> None:
    async def steps() -> bytes:
        async with Workspace(native=SMALL) as ws:
            await ws.execute("echo kept > /f; kill -9 -1", native=True, timeout=SECONDS)
            return (await ws.execute("cat /f; perl -e 'print 2'", timeout=SECONDS)).stdout

    assert asyncio.run(steps()) == b"kept\n2"


def test_the_environment_of_ramet_is_not_inside(native: Native, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAMET_TEST_TOKEN", SECRET)
    result = run("env; cat /proc/*/environ /proc/*/cmdline 2> /dev/null")
    assert SECRET.encode() not in result.stdout


def test_many_files_together_cannot_fill_the_disk(native: Native) -> None:
    most = 8 << 20
    bounded = Native(NativeLimits(memory_bytes=256 << 20, processes=64, file_bytes=1 << 20, disk_bytes=most))
    write = "i=0; while :; do i=$((i + 1)); head -c 1000000 /dev/zero > /f$i; sleep 0.01; done"

    async def steps() -> tuple[IOResult, IOResult]:
        async with Workspace(native=bounded) as ws:
            filled = await ws.execute(write, native=True, timeout=SECONDS)
            await ws.execute("rm /f*")
            return filled, await ws.execute("echo alive", native=True, timeout=SECONDS)

    filled, after = asyncio.run(steps())
    assert filled.exit_code == 137 and b"native.disk_bytes" in filled.stderr and not filled.timed_out
    assert after.stdout == b"alive\n"


def test_empty_files_cannot_take_every_inode(native: Native) -> None:
    need("perl")
    bounded = Native(NativeLimits(memory_bytes=256 << 20, processes=64, disk_bytes=8 << 20))
    filled = run("mkdir /d; perl -e 'for (;;) { open F, q(>/d/f).$n++; select undef, undef, undef, 0.0002 }'", bounded)
    assert filled.exit_code == 137 and b"native.disk_bytes" in filled.stderr and not filled.timed_out, filled


def test_a_tree_deeper_than_any_path_can_be_closed(native: Native) -> None:
    need("python3")
    dig = "import os\nfor _ in range(3000): os.mkdir('x' * 50); os.chdir('x' * 50)"

    async def steps() -> tuple[IOResult, str]:
        async with Workspace(native=SMALL) as ws:
            found = await ws.execute(f"cd /tmp; python3 - <<'END'\n{dig}\nEND\necho $?", timeout=SECONDS)
            assert ws.programs is not None
            return found, ws.programs._runtime.layout.root

    found, root = asyncio.run(steps())
    assert found.stdout == b"0\n" and not os.path.exists(root)


def test_read_only_mounts_stay_so_whatever_a_program_is_given(native: Native, tmp_path: Path) -> None:
    """A descriptor must not be a way to open the file again for writing."""
    need("python3")
    folder = tmp_path / "fixed"
    folder.mkdir()
    (folder / "f").write_text("kept")
    ram = RAMResource()
    asyncio.run(ram.write(parse("/f"), b"kept"))
    again = "import os; print(os.read(0, 9)); os.write(os.open('/proc/self/fd/0', os.O_RDWR), b'lost')"
    mounts: dict[str, MountForm] = {"/ram": (ram, MountMode.READ)}
    if reachable(str(folder)):
        mounts["/disk"] = DiskResource(folder), MountMode.READ

    async def steps() -> None:
        async with Workspace(mounts, native=SMALL) as ws:
            for path in (f"{prefix}/f" for prefix in mounts):
                found = await ws.execute(f'python3 -c "{again}" < {path}', timeout=SECONDS)
                assert found.stdout == b"b'kept'\n"
                assert (await ws.execute(f"cat {path}")).stdout == b"kept"
                assert (await ws.execute(f"echo lost > {path}", native=True, timeout=SECONDS)).exit_code != 0
                assert (await ws.execute(f"rm -f {path}", native=True, timeout=SECONDS)).exit_code != 0

    asyncio.run(steps())
    assert (folder / "f").read_text() == "kept"


def test_descriptors_that_a_program_gets_lead_nowhere(secret_file: str) -> None:
    need("python3")
    tries = (
        "import os\n"
        "for fd in map(int, os.listdir('/proc/self/fd')):\n"
        f"    for path in ('..', '../../../../../..{secret_file}', '{secret_file}'):\n"
        "        try: os.open(path, os.O_RDONLY, dir_fd=fd) if path[0] != '/' else None\n"
        "        except OSError: continue\n"
        "        print('out', fd, os.readlink(f'/proc/self/fd/{fd}')) if path[0] != '/' else None\n"
        f"print(os.path.exists('{secret_file}'), os.path.exists('/proc/self/fd/0/../{secret_file}'))\n"
    )

    async def steps() -> bytes:
        async with Workspace(native=SMALL) as ws:
            await ws.dispatch("write", "/t.py", tries.encode())
            await ws.execute("echo x > /f; exec 7< /f 8> /g", timeout=SECONDS)
            return (await ws.execute("echo x | python3 /t.py 3< / > /o | cat; cat /o", timeout=SECONDS)).stdout

    assert asyncio.run(steps()) == b"False False\n"


def test_what_starts_programs_imports_nothing_from_the_workspace(native: Native) -> None:
    """Modules of the tree, at every path where Python and Ramet keep theirs outside, beside each way to start one."""
    places = ["/", "/helper", "/work", os.path.dirname(PROGRAM), os.path.dirname(os.path.dirname(PROGRAM))]
    places += [path for path in sys.path if path.startswith("/")] + [f"{os.path.dirname(os.__file__)}/encodings"]
    names = ["__init__", "__main__", "sitecustomize", "protocol", "worker", "socket", "array", "idna", "locale", "io"]
    modules = [f"{place}/{name}.py" for place in places for name in names]
    plant = "for f in " + " ".join(map(shlex.quote, modules)) + "; do mkdir -p ${f%/*} && "
    plant += "echo \"open('/imported', 'a').write(__name__)\" > $f; done 2> /dev/null; test -s /protocol.py"

    async def steps() -> list[str]:
        async with Workspace(native=SMALL) as ws:

            async def run(text: str) -> str:
                return (await ws.execute(text, native=True, timeout=SECONDS)).text

            await run(f"mkdir -p /work; {plant} && touch /planted")
            said = [
                await run("cat /planted && export PYTHONPATH=/ PYTHONHOME=/ PYTHONSTARTUP=/io.py; cd /work; echo ran")
            ]
            said.append(
                await run("cd /work; echo 'echo $0' > plain; chmod +x plain; ./plain; ./missing; ulimit -n 99; ls")
            )
            await run("kill -9 -1")
            said.append(await run("mkdir /gone; cd /gone; rmdir /gone; env -i /bin/echo again; kill -USR1 $$"))
            return [*said, await run("cat /imported || echo nothing")]

    first, plain, again, found = asyncio.run(steps())
    assert first == "ran\n" and "plain" in plain and again == "again\n"
    assert found.startswith("nothing"), found


def test_what_watches_programs_cannot_be_looked_into(native: Native) -> None:
    """The zygote and the workers run as the same user, with sockets that lead to Ramet."""
    look = "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline | grep -q 'h[e]lper/__main__.py' && "
    look += (
        "{ echo found; ls $p/fd $p/root/ $p/cwd/ $p/map_files; cat $p/mem $p/environ $p/maps; } 2> /dev/null; done; :"
    )
    result = run(look)
    assert result.stdout and set(result.stdout.split()) == {b"found"}


def test_nothing_leads_to_other_cgroups(native: Native) -> None:
    tries = "cut -d: -f3 /proc/self/cgroup | sort -u; mount -t cgroup2 none /tmp; mount -t cgroup -o pids none /tmp; "
    tries += "find / -xdev -name cgroup.procs 2> /dev/null; echo $$ > /sys/fs/cgroup/cgroup.procs; ls /sys"
    assert run(tries).stdout.split() == [b"/"]


def test_descriptors_pass_between_programs_and_lead_nowhere_else(native: Native, secret_file: str) -> None:
    source = f"""
import array, os, socket
one, other = socket.socketpair()
if os.fork() == 0:
    socket.send_fds(other, [b"x"], [os.open(path, os.O_PATH) for path in ("/", "/proc/1", "/proc/self/root", "/usr")])
    os._exit(0)
_, fds, _, _ = socket.recv_fds(one, 1, 9)
print(len(fds))
for fd in fds:
    for path in ("{secret_file}", "../../../..{secret_file}", "root{secret_file}", "cwd{secret_file}"):
        try:
            print(os.read(os.open(path if path[0] != "/" else path[1:], os.O_RDONLY, dir_fd=fd), 99))
        except OSError:
            pass
"""
    assert python(source).stdout == b"4\n"


SWAP = """
import os, sys, time
os.makedirs("/swap/real/deep", exist_ok=True)
open("/swap/real/deep/ramet-mine", "w").close()
os.symlink(sys.argv[1], "/swap/link")
open("/swap/ready", "w").close()
while True:
    os.symlink("real", "/swap/d")
    os.unlink("/swap/d")
    os.rename("/swap/real", "/swap/d")
    os.rename("/swap/d", "/swap/real")
    os.rename("/swap/link", "/swap/d")
    os.rename("/swap/d", "/swap/link")
"""


def test_a_directory_that_turns_into_a_link_does_not_lead_out(native: Native, secret_file: str) -> None:
    """A daemon exchanges a directory with links to the host's, while commands and looks at the tree walk through it."""
    need("python3")
    folder, name = os.path.split(secret_file)

    async def steps() -> tuple[bytes, list[str]]:
        async with Workspace(native=SMALL) as ws:
            await ws.dispatch("write", "/swap.py", SWAP.encode())
            start = f"mkdir /swap; (python3 /swap.py {folder} > /dev/null 2>&1 &); "
            start += "while ! test -e /swap/ready; do sleep 0.01; done"
            assert (await ws.execute(start, timeout=SECONDS)).exit_code == 0
            tries = (
                f"for n in {{1..150}}; do cat /swap/d/{name}; cp -r /swap/d /copy; ls -R /swap/d; grep -r . /swap/d; "
            )
            tries += f"find /swap -name 'ramet-s*'; cat < /swap/d/{name}; rm -rf /copy; done 2> /dev/null; cat /copy/*"
            seen = (await ws.execute(tries, timeout=SECONDS)).stdout
            for _ in range(50):
                await ws.execute("perl -e 1", timeout=SECONDS)
            paths = [path for record in ws.history for path in (*record.paths_written, *record.paths_removed)]
            return seen, [*map(str, paths)]

    seen, paths = asyncio.run(steps())
    assert SECRET.encode() not in seen and name.encode() not in seen
    assert not any(name in path for path in paths)
