"""The sandbox backend against the real SDK: its manifest, snapshots, wrappers and errors, and its own local backend."""

from __future__ import annotations

import asyncio
import io
import tarfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents.sandbox")

from agents.sandbox import Manifest, User
from agents.sandbox.entries import Dir, File, LocalDir, LocalFile
from agents.sandbox.errors import (
    ExecNonZeroError,
    ExecTimeoutError,
    ExecTransportError,
    ExposedPortUnavailableError,
    InvalidManifestPathError,
    PtySessionNotFoundError,
    WorkspaceArchiveReadError,
    WorkspaceArchiveWriteError,
    WorkspaceReadNotFoundError,
    WorkspaceRootNotFoundError,
    WorkspaceWriteTypeError,
)
from agents.sandbox.files import EntryKind
from agents.sandbox.manifest import Environment
from agents.sandbox.sandboxes.unix_local import UnixLocalSandboxClient
from agents.sandbox.session import SandboxSessionState
from agents.sandbox.session.base_sandbox_session import BaseSandboxSession
from agents.sandbox.session.sandbox_client import BaseSandboxClientOptions
from agents.sandbox.snapshot import LocalSnapshotSpec
from agents.sandbox.workspace_paths import SandboxPathGrant

from ramet.agents.openai_agents import (
    RametSandboxClient,
    RametSandboxClientOptions,
    RametSandboxSession,
    RametSandboxSessionState,
    archive,
)

Use = Callable[[Any], Awaitable[None]]
Act = Callable[[], Awaitable[Any]]


def in_session(use: Use, manifest: Manifest | None = None, **options: Any) -> None:
    """Run `use` with a started session of a fresh client."""

    async def run() -> None:
        client = RametSandboxClient()
        session = await client.create(manifest=manifest, **options)
        async with session:
            await use(session)
        await client.delete(session)

    asyncio.run(run())


async def put(session: Any, path: str, data: bytes) -> None:
    await session.write(Path(path), io.BytesIO(data))


async def get(session: Any, path: str) -> bytes:
    content: bytes = (await session.read(Path(path))).read()
    return content


def tar_of(*members: tuple[tarfile.TarInfo, bytes]) -> io.BytesIO:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for member, data in members:
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    out.seek(0)
    return out


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, mode
    return info


# ------------------------------------------------------------------------------------------------- lifecycle


def test_the_types_are_registered_under_one_name() -> None:
    assert RametSandboxClient.backend_id == "ramet"
    assert RametSandboxSessionState.model_fields["type"].default == "ramet"
    parsed = BaseSandboxClientOptions.parse({"type": "ramet", "exposed_ports": [80]})
    assert parsed == RametSandboxClientOptions(exposed_ports=(80,))


def test_running_is_true_between_start_and_shutdown() -> None:
    async def run() -> None:
        client = RametSandboxClient()
        session = await client.create()
        seen = [await session.running()]
        await session.start()
        seen.append(await session.running())
        await session.stop()
        seen.append(await session.running())
        await session.shutdown()
        seen.append(await session.running())
        assert seen == [False, True, True, False]

    asyncio.run(run())


def test_sessions_of_one_client_share_nothing() -> None:
    async def run() -> None:
        client, manifest = RametSandboxClient(), Manifest()
        one, two = await client.create(manifest=manifest), await client.create(manifest=manifest)
        async with one, two:
            await put(one, "only-here", b"1")
            assert (await two.exec("ls -A /workspace /tmp")).stdout == b"/tmp:\n\n/workspace:\n"
            assert one.state.manifest is not two.state.manifest

    asyncio.run(run())


def test_a_live_session_is_resumed_with_its_files_until_it_is_deleted() -> None:
    async def run() -> None:
        client = RametSandboxClient()
        session = await client.create(manifest=Manifest(entries={"seed": File(content=b"seed")}))
        async with session:
            await put(session, "kept", b"1")
            await put(session, "seed", b"changed")
        payload = client.serialize_session_state(session.state)
        again = await RametSandboxClient().resume(client.deserialize_session_state(payload))
        async with again:
            assert await get(again, "kept") == b"1"
            assert await get(again, "seed") == b"changed"
        await client.delete(again)
        with pytest.raises(WorkspaceRootNotFoundError):
            await session.exec("true")
        anew = await client.resume(client.deserialize_session_state(payload))
        async with anew:
            assert [entry.path for entry in await anew.ls(".")] == ["/workspace/seed"]
        await client.delete(anew)

    asyncio.run(run())


def test_only_its_own_states_and_sessions_are_accepted() -> None:
    async def run() -> None:
        other = await UnixLocalSandboxClient().create()
        with pytest.raises(TypeError):
            await RametSandboxClient().resume(other.state)
        with pytest.raises(TypeError):
            await RametSandboxClient().delete(other)
        await UnixLocalSandboxClient().delete(other)

    asyncio.run(run())


def test_what_a_call_leaves_in_the_background_goes_on_until_the_sandbox_ends() -> None:
    async def use(session: Any) -> None:
        await session.exec("mkfifo gate; { read x < gate; echo $x > done; } & exec sleep 1000 &")
        live = session._inner._here()
        assert live.lingering == [1]
        await session.exec("echo opened > gate; until [ -s done ]; do :; done; cat done")
        assert (await session.exec("cat done; kill %1 2> /dev/null; true")).stdout == b"opened\n"
        assert live.lingering == [1], "the other one still runs"

    in_session(use)


def test_without_real_programs_ports_are_refused_with_the_sdks_error() -> None:
    async def use(session: Any) -> None:
        for port in (80, 81):
            with pytest.raises(ExposedPortUnavailableError):
                await session.resolve_exposed_port(port)

    in_session(use, options=RametSandboxClientOptions(exposed_ports=(80,)))


# ------------------------------------------------------------------------------------------------- executing

COMMANDS: list[tuple[tuple[str, ...], bool | list[str], bytes, int]] = [
    (("echo $PWD $HOME $GREETING",), True, b"/workspace /workspace hello\n", 0),
    (("echo a; exit 3",), True, b"a\n", 3),
    (("echo", "a b", "$HOME"), True, b"a b $HOME\n", 0),
    (("echo", "it's", "$HOME;", "if"), False, b"it's $HOME; if\n", 0),
    (("sh", "-c", 'echo "$0:$1"', "x", "y z"), False, b"x:y z\n", 0),
    (("[[ ab == a* ]] && echo yes",), ["bash", "-lc"], b"yes\n", 0),
    (("printf", "\\377"), False, b"\xff", 0),
    (("no-such-command",), True, b"", 127),
]


@pytest.mark.parametrize(("command", "shell", "stdout", "exit_code"), COMMANDS)
def test_exec(command: tuple[str, ...], shell: bool | list[str], stdout: bytes, exit_code: int) -> None:
    async def use(session: Any) -> None:
        result = await session.exec(*command, shell=shell)
        assert (result.stdout, result.exit_code) == (stdout, exit_code)

    in_session(use, Manifest(environment=Environment(value={"GREETING": "hello"})))


def test_commands_do_not_leak_into_each_other_and_run_side_by_side() -> None:
    async def use(session: Any) -> None:
        await session.exec("cd /; X=1; export X")
        assert (await session.exec("echo $PWD $X")).stdout == b"/workspace\n"
        results = await asyncio.gather(*(session.exec(f"sleep 0.05; echo {n}") for n in range(5)))
        assert [result.stdout for result in results] == [b"%d\n" % n for n in range(5)]

    in_session(use)


@pytest.mark.parametrize("command", ["sleep 60", "while :; do :; done", "sleep 60 | cat"])
def test_a_timeout_is_the_sdks(command: str) -> None:
    async def use(session: Any) -> None:
        with pytest.raises(ExecTimeoutError) as raised:
            await session.exec(command, timeout=0.05)
        assert raised.value.timeout_s == 0.05
        assert (await session.exec("echo alive")).stdout == b"alive\n"

    in_session(use)


def test_another_user_is_refused() -> None:
    async def use(session: Any) -> None:
        await put(session, "f", b"")
        acts: list[Act] = [
            lambda: session.exec("true", user="root"),
            lambda: session.read(Path("f"), user="root"),
            lambda: session.write(Path("f"), io.BytesIO(b"x"), user="root"),
            lambda: session.ls(".", user="root"),
            lambda: session.rm("f", user="root"),
            lambda: session.mkdir("d", user="root"),
        ]
        for act in acts:
            with pytest.raises(ExecTransportError, match="cannot act as 'root'"):
                await act()
        assert (await session.exec("id -un", user="user")).stdout == b"user\n"
        assert await get(session, "f") == b""

    in_session(use)


# ------------------------------------------------------------------------------------------------- terminals


def test_a_short_command_ends_within_its_first_call() -> None:
    async def use(session: Any) -> None:
        assert session.supports_pty()
        update = await session.pty_exec_start("echo out; echo err >&2; exit 4", yield_time_s=5)
        assert (update.process_id, update.exit_code) == (None, 4)
        assert sorted(update.output.split()) == [b"err", b"out"]

    in_session(use)


async def until(session: Any, update: Any, text: bytes) -> bytes:
    """What a command says until it has said `text`."""
    said: bytes = update.output
    while text not in said and update.process_id is not None:
        update = await session.pty_write_stdin(session_id=update.process_id, chars="", yield_time_s=0.25)
        said += update.output
    return said


def test_a_terminal_gives_output_as_it_appears_and_takes_input() -> None:
    async def use(session: Any) -> None:
        started = await session.pty_exec_start("echo ready; read x; echo got $x", tty=True, yield_time_s=0.25)
        assert (await until(session, started, b"ready\n"), started.exit_code) == (b"ready\n", None)
        ended = await session.pty_write_stdin(session_id=started.process_id, chars="5\n", yield_time_s=5)
        assert (ended.output, ended.exit_code, ended.process_id) == (b"5\ngot 5\n", 0, None)
        with pytest.raises(PtySessionNotFoundError):
            await session.pty_write_stdin(session_id=started.process_id, chars="")

    in_session(use)


def test_a_shell_in_a_terminal_keeps_its_state() -> None:
    async def use(session: Any) -> None:
        shell = await session.pty_exec_start("bash", tty=True, yield_time_s=0.25)
        for line in ("cd /tmp", "x=1", "echo $x $PWD"):
            update = await session.pty_write_stdin(session_id=shell.process_id, chars=line + "\n", yield_time_s=0.25)
        assert (await until(session, update, b"1 /tmp\n")).endswith(b"\n1 /tmp\n")
        ended = await session.pty_write_stdin(session_id=shell.process_id, chars="exit 6\n", yield_time_s=5)
        assert ended.exit_code == 6

    in_session(use)


@pytest.mark.parametrize(("chars", "exit_code"), [("\x03", 130), ("\x04", 0)])
def test_control_characters(chars: str, exit_code: int) -> None:
    async def use(session: Any) -> None:
        started = await session.pty_exec_start("cat", tty=True, yield_time_s=0.25)
        ended = await session.pty_write_stdin(session_id=started.process_id, chars=chars, yield_time_s=5)
        assert (ended.exit_code, ended.process_id) == (exit_code, None)

    in_session(use)


def test_without_a_terminal_there_is_no_input_and_stopping_ends_all() -> None:
    async def use(session: Any) -> None:
        started = await session.pty_exec_start("sleep 60", yield_time_s=0.25)
        with pytest.raises(RuntimeError, match="stdin is not available for this process"):
            await session.pty_write_stdin(session_id=started.process_id, chars="x")
        await session.stop()
        with pytest.raises(PtySessionNotFoundError):
            await session.pty_write_stdin(session_id=started.process_id, chars="")

    in_session(use)


# ----------------------------------------------------------------------------------------------------- files


def test_files_are_read_and_written_without_a_command() -> None:
    async def use(session: Any) -> None:
        await put(session, "deep/er/f.bin", b"\0\xff")
        assert await get(session, "/workspace/deep/er/f.bin") == b"\0\xff"
        assert (await session.exec("wc -c < deep/er/f.bin")).stdout.strip() == b"2"
        await session.exec("chmod 750 deep/er/f.bin")
        await put(session, "deep/er/f.bin", b"new")
        (entry,) = await session.ls("deep/er")
        assert (entry.path, entry.kind, entry.size) == ("/workspace/deep/er/f.bin", EntryKind.FILE, 3)
        assert str(entry.permissions) == "-rwxr-x---"
        await session.rm("deep/er/f.bin")
        await session.rm("deep", recursive=True)
        await session.rm("deep", recursive=True)
        assert await session.ls(".") == []

    in_session(use)


def test_errors_are_the_sdks_own() -> None:
    async def use(session: Any) -> None:
        await put(session, "d/f", b"")
        refused: list[tuple[type[Exception], Act]] = [
            (WorkspaceReadNotFoundError, lambda: session.read(Path("nope"))),
            (WorkspaceArchiveReadError, lambda: session.read(Path("d"))),
            (WorkspaceArchiveWriteError, lambda: session.write(Path("d"), io.BytesIO(b""))),
            (WorkspaceArchiveWriteError, lambda: session.write(Path("d/f/g"), io.BytesIO(b""))),
            (WorkspaceWriteTypeError, lambda: session.write(Path("t"), io.StringIO("text"))),
            (WorkspaceArchiveWriteError, lambda: session.mkdir("x/y")),
            (WorkspaceArchiveWriteError, lambda: session.mkdir("d/f")),
            (WorkspaceArchiveWriteError, lambda: session.rm("d")),
            (ExecNonZeroError, lambda: session.rm("nope")),
            (ExecNonZeroError, lambda: session.ls("nope")),
        ]
        for error, act in refused:
            with pytest.raises(error):
                await act()
        await session.mkdir("d")
        await session.mkdir("x/y", parents=True)
        await session.exec("ln -s loop loop")
        with pytest.raises(WorkspaceArchiveReadError):
            await session.read(Path("loop"))
        await session.rm("loop")

    in_session(use)


def every_way_to(session: Any, path: str) -> list[Act]:
    return [
        lambda: session.read(Path(path)),
        lambda: session.write(Path(path), io.BytesIO(b"x")),
        lambda: session.ls(path),
        lambda: session.mkdir(path),
        lambda: session.rm(path, recursive=True),
    ]


def test_no_path_leads_out_of_the_workspace() -> None:
    async def use(session: Any) -> None:
        await session.exec(
            "mkdir /secret; echo s > /secret/f; ln -s /secret out; ln -s /secret/f leaf; ln -s /gone/x lost"
        )
        for path in ("../secret/f", "/secret/f", "out/f", "leaf", "lost"):
            for act in every_way_to(session, path):
                with pytest.raises(InvalidManifestPathError):
                    await act()
        assert (await session.exec("cat /secret/f; ls /secret")).stdout == b"s\nf\n"
        await session.exec("mkdir real; ln -s real inside; ln -s /workspace/real absolute")
        await put(session, "inside/f", b"1")
        assert await get(session, "absolute/f") == b"1"
        await session.rm("inside")
        assert await get(session, "real/f") == b"1"

    in_session(use)


@pytest.mark.skipif(not hasattr(BaseSandboxSession, "mv"), reason="this version of the SDK moves files by command")
def test_moving_comparing_and_creating() -> None:
    async def use(session: Any) -> None:
        await put(session, "a", b"1")
        await session.exec("ln a hard; ln -s a soft; mkdir d")
        assert await session.same_file("a", "hard")
        assert await session.same_file("a", "soft")
        assert not await session.same_file("a", "soft", follow_symlinks=False)
        assert not await session.same_file("a", "nope")
        await session.mv("a", "b")
        assert await get(session, "b") == b"1"
        await session.exec("ln -s loop loop")
        for source, destination in (("d", "e"), ("b", "d"), ("nope", "x"), ("b", "loop/x")):
            with pytest.raises(ExecNonZeroError):
                await session.mv(source, destination)
        await session._write_new_file(Path("new/f"), io.BytesIO(b"n"))
        with pytest.raises(FileExistsError):
            await session._write_new_file(Path("new/f"), io.BytesIO(b"m"))
        assert await session.read_bounded(Path("new/f"), max_bytes=5) == b"n"
        with pytest.raises(WorkspaceReadNotFoundError):
            await session.read_bounded(Path("nope"), max_bytes=5)

    in_session(use)


def test_apply_patch_of_the_sdk() -> None:
    async def use(session: Any) -> None:
        await put(session, "f.txt", b"one\ntwo\n")
        await session.apply_patch({"type": "update_file", "path": "f.txt", "diff": "@@\n one\n-two\n+2\n"})
        await session.apply_patch({"type": "create_file", "path": "new/g.txt", "diff": "+hello\n"})
        assert (await get(session, "f.txt"), await get(session, "new/g.txt")) == (b"one\n2\n", b"hello")
        await session.apply_patch({"type": "delete_file", "path": "f.txt"})
        assert (await session.exec("ls")).stdout == b"new\n"

    in_session(use)


# ------------------------------------------------------------------------------------------------- manifests


def test_manifest_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "x").write_bytes(b"x")
    (tmp_path / "one").write_bytes(b"1")
    monkeypatch.chdir(tmp_path)
    manifest = Manifest(
        root="/home/agent/project",
        entries={
            "file": File(content=b"f"),
            "dir": Dir(children={"child": File(content=b"c")}),
            "local": LocalFile(src=Path("one")),
            "tree": LocalDir(src=Path("source")),
        },
    )

    async def use(session: Any) -> None:
        found = (await session.exec("pwd; find . -type f | sort")).stdout.split()
        assert found == [b"/home/agent/project", b"./dir/child", b"./file", b"./local", b"./tree/sub/x"]
        assert await get(session, "tree/sub/x") == b"x"

    in_session(use, manifest)


def test_accounts_are_refused() -> None:
    async def run() -> None:
        session = await RametSandboxClient().create(manifest=Manifest(users=[User(name="alice")]))
        with pytest.raises(ValueError, match="one user"):
            await session.start()
        assert not await session.running()

    asyncio.run(run())


# ------------------------------------------------------------------------------------------------- snapshots


async def content_of(session: Any) -> dict[str, tuple[str, int, str]]:
    """Type, permission bits and link target of every member of the portable archive, by name."""
    with tarfile.open(fileobj=await session.persist_workspace()) as tar:
        names = {info.name.removeprefix("./"): info for info in tar.getmembers() if info.name != "."}
    return {
        name: ("d" if info.isdir() else "l" if info.issym() else "f", info.mode & 0o111, info.linkname)
        for name, info in names.items()
    }


def test_persist_is_portable() -> None:
    manifest = Manifest(entries={"scratch": Dir(ephemeral=True), "keep": File(content=b"k")})

    async def use(session: Any) -> None:
        await session.exec(
            "echo x > scratch/x; mkdir -p d/e cache; echo '#!/bin/sh' > d/run; chmod 755 d/run; chmod 644 keep;"
            "ln -s ../keep d/rel; ln -s /workspace/keep d/abs; touch cache/c;"
            "ln -s /etc/passwd out; ln -s ../../etc d/climb"
        )
        session._inner.register_persist_workspace_skip_path("cache")
        assert await content_of(session) == {
            "d": ("d", 0o111, ""),
            "d/abs": ("l", 0o111, "../keep"),
            "d/e": ("d", 0o111, ""),
            "d/rel": ("l", 0o111, "../keep"),
            "d/run": ("f", 0o111, ""),
            "keep": ("f", 0, ""),
        }

    in_session(use, manifest)


def test_an_unchanged_workspace_is_not_packed_again() -> None:
    async def use(session: Any) -> None:
        await put(session, "a", b"1")
        first = (await session.persist_workspace()).read()
        packed = session._inner._live.packed
        assert (await session.persist_workspace()).read() == first
        assert session._inner._live.packed is packed
        await put(session, "a", b"2")
        assert (await session.persist_workspace()).read() != first
        session._inner.register_persist_workspace_skip_path("a")
        assert await content_of(session) == {}

    in_session(use)


def test_archives_go_both_ways_between_us_and_unix_local() -> None:
    async def run() -> None:
        ours, theirs = await RametSandboxClient().create(), await UnixLocalSandboxClient().create()
        async with ours, theirs:
            await ours.exec("mkdir d; echo x > d/f; chmod 755 d/f; ln -s d/f l")
            await theirs.hydrate_workspace(await ours.persist_workspace())
            there = await content_of(theirs)
            here = await content_of(ours)
            assert {name: found[::2] for name, found in there.items()} == {n: found[::2] for n, found in here.items()}
            back = await RametSandboxClient().create()
            async with back:
                await back.hydrate_workspace(await theirs.persist_workspace())
                assert await content_of(back) == there
                assert await get(back, "l") == b"x\n"
        await UnixLocalSandboxClient().delete(theirs)

    asyncio.run(run())


BAD = [
    member("../up"),
    member("/abs"),
    member("a/../../b"),
    member("pipe", tarfile.FIFOTYPE),
    member("hard", tarfile.LNKTYPE, "good"),
    member("out", tarfile.SYMTYPE, "/etc"),
    member("climb", tarfile.SYMTYPE, "../x"),
    member("good"),
    member("good/below"),
    member("linked/f"),
    member("full"),
]


@pytest.mark.parametrize("bad", BAD, ids=lambda info: info.name)
def test_a_bad_member_is_found_before_a_file_is_touched(bad: tarfile.TarInfo) -> None:
    async def use(session: Any) -> None:
        await session.exec("mkdir real full; ln -s real linked; touch full/f; echo before > good")
        before = await content_of(session)
        with pytest.raises(WorkspaceArchiveWriteError):
            await session.hydrate_workspace(tar_of((member("good"), b"after"), (bad, b"")))
        assert await content_of(session) == before
        assert await get(session, "good") == b"before\n"

    in_session(use)


@pytest.mark.parametrize("raw", [b"", b"not a tar", b"\x1f\x8b\x08\0broken"])
def test_a_stream_that_is_no_archive_is_refused(raw: bytes) -> None:
    async def use(session: Any) -> None:
        with pytest.raises(WorkspaceArchiveWriteError):
            await session.hydrate_workspace(io.BytesIO(raw))

    in_session(use)


def test_a_snapshot_is_resumed_by_another_client(tmp_path: Path) -> None:
    async def run() -> None:
        client = RametSandboxClient()
        manifest = Manifest(entries={"seed": File(content=b"seed"), "temp": File(content=b"t", ephemeral=True)})
        session = await client.create(manifest=manifest, snapshot=LocalSnapshotSpec(base_path=tmp_path))
        async with session:
            await session.exec("rm seed temp; echo made > made; ln -s made link")
        payload = client.serialize_session_state(session.state)
        await client.delete(session)

        other = RametSandboxClient()
        state = other.deserialize_session_state(dict(payload))
        assert isinstance(state, SandboxSessionState)
        again = await other.resume(state)
        async with again:
            assert (await again.exec("ls; cat link")).stdout == b"link\nmade\ntemp\nmade\n"
        await other.delete(again)

    asyncio.run(run())


def test_live_files_that_match_the_snapshot_are_kept_and_others_restored(tmp_path: Path) -> None:
    async def run() -> None:
        client = RametSandboxClient()
        session = await client.create(snapshot=LocalSnapshotSpec(base_path=tmp_path))
        async with session:
            await put(session, "f", b"1")
        first = session._inner
        assert isinstance(first, RametSandboxSession)
        assert await first._can_skip_snapshot_restore_on_resume(is_running=False)
        await put(session, "f", b"drifted")
        assert not await first._can_skip_snapshot_restore_on_resume(is_running=False)
        again = await client.resume(session.state)
        async with again:
            assert await get(again, "f") == b"1"
        await client.delete(again)

    asyncio.run(run())


def test_only_what_has_changed_is_packed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    packed: list[str] = []
    make = archive._segment

    async def counted(fs: Any, root: Any, name: str, *rest: Any) -> Any:
        packed.append(name)
        return await make(fs, root, name, *rest)

    monkeypatch.setattr(archive, "_segment", counted)

    async def use(session: Any) -> None:
        await session.exec("mkdir -p a/b c/d e; for x in a a/b c c/d e; do echo $x > $x/f; done")
        await session.persist_workspace()
        assert sorted(packed) == ["", "a", "a/b", "c", "c/d", "e"]
        packed.clear()
        await session.exec("echo new > c/f; ln -s /workspace/e/../a/f c/l; rm -r e; mkdir e2")
        raw = (await session.persist_workspace()).read()
        assert sorted(packed) == ["", "c", "e2"]
        with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
            names = ["a", "a/b", "a/b/f", "a/f", "c", "c/d", "c/d/f", "c/f", "e2"]
            assert sorted(tar.getnames()) == [".", *(f"./{name}" for name in names)]
            found = tar.extractfile("./c/f")
            assert found is not None and found.read() == b"new\n"
        packed.clear()
        session.register_persist_workspace_skip_path("a")
        assert b"a/f" not in (await session.persist_workspace()).read()

    in_session(use)


def test_an_archive_may_come_as_a_stream_that_cannot_go_back() -> None:
    class Forward(io.RawIOBase):
        def __init__(self, data: bytes) -> None:
            self._data = io.BytesIO(data)

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            return self._data.readinto(buffer)

    async def use(session: Any) -> None:
        await session.hydrate_workspace(Forward(tar_of((member("x/y"), b"hi")).getvalue()))
        assert await get(session, "x/y") == b"hi"
        whole = tar_of((member("one"), b"1"), (member("large"), b"2" * 100_000)).getvalue()
        for cut in (700, 60_000):
            with pytest.raises(WorkspaceArchiveWriteError):
                await session.hydrate_workspace(io.BytesIO(whole[:cut]))
        assert (await session.exec("ls")).stdout == b"x\n"

    in_session(use)


def test_a_foreign_archive_sets_no_mode_that_gives_power() -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, kind in (("f", tarfile.REGTYPE), ("d", tarfile.DIRTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.mode = kind, 0o7777
            tar.addfile(info)

    async def act() -> None:
        client = RametSandboxClient()
        async with await client.create() as session:
            await session.hydrate_workspace(io.BytesIO(packed.getvalue()))
            shown = await session.exec("stat -c '%a %n' f d")
            assert shown.stdout == b"755 f\n755 d\n"
        await client.delete(session)

    asyncio.run(act())


def test_a_path_grant_reaches_the_machine_only_where_the_client_allows_it(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("of the machine")
    manifest = Manifest(extra_path_grants=(SandboxPathGrant(path=str(tmp_path)),))

    async def act() -> None:
        for client, there in ((RametSandboxClient(), False), (RametSandboxClient(allow_host_paths=True), True)):
            async with await client.create(manifest=manifest) as session:
                shown = await session.exec(f"cat {tmp_path}/f")
                assert (shown.stdout == b"of the machine") is there
            await client.delete(session)

    asyncio.run(act())


def test_the_fingerprint_that_was_computed_can_be_read() -> None:
    async def act() -> None:
        client = RametSandboxClient()
        async with await client.create() as session:
            inner = session._inner
            made = await inner._compute_and_cache_snapshot_fingerprint()
            assert await inner._read_cached_snapshot_fingerprint() == made
            await session.exec("echo x > x")
            assert await inner._compute_and_cache_snapshot_fingerprint() != made
            assert await inner._read_cached_snapshot_fingerprint() != made
        await client.delete(session)

    asyncio.run(act())
