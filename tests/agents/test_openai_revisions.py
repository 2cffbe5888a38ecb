"""Sandboxes and the store: snapshots of any backend as revisions, pointers, native mounts, and tools for the model."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents.sandbox")

from agents.sandbox import Manifest
from agents.sandbox.entries import Dir, File, GitRepo, InContainerMountStrategy, RcloneMountPattern, S3Mount
from agents.sandbox.errors import (
    GitCloneError,
    SnapshotNotRestorableError,
    SnapshotPersistError,
    WorkspaceArchiveWriteError,
)
from agents.sandbox.snapshot import SnapshotBase
from tests.agents.openai_local import BWRAP, LocalClient

from ramet.agents.openai_agents import (
    Edit,
    Mounts,
    RametSandboxClient,
    RametSandboxClientOptions,
    RametSnapshot,
    RametSnapshotSpec,
    gitrepo,
    open_sandboxes,
)
from ramet.agents.openai_agents.checkpoints import MAGIC, Pointer
from ramet.backends.local.disk import DiskResource
from ramet.backends.local.ram import RAMResource
from ramet.backends.objects.s3 import S3Resource
from ramet.workspace.workspace import Workspace

Use = Callable[[Any], Awaitable[None]]


def in_session(use: Use, manifest: Manifest | None = None, client: Any = None, **options: Any) -> None:
    async def run() -> None:
        chosen = client or RametSandboxClient()
        session = await chosen.create(manifest=manifest, **options)
        async with session:
            await use(session)
        await chosen.delete(session)

    asyncio.run(run())


async def get(session: Any, path: str) -> bytes:
    content: bytes = (await session.read(Path(path))).read()
    return content


CLIENTS = [
    RametSandboxClient,
    pytest.param(LocalClient, marks=pytest.mark.skipif(BWRAP is None, reason="bubblewrap is not installed")),
]


@pytest.mark.parametrize("second", CLIENTS)
@pytest.mark.parametrize("first", CLIENTS)
def test_a_workspace_goes_on_in_another_backend(first: Any, second: Any, tmp_path: Path) -> None:
    spec = RametSnapshotSpec(store=str(tmp_path / "store"), workspace="runs")

    async def run() -> None:
        for client, command in (
            (first(), "mkdir d; echo 1 > d/f; chmod 755 d/f; ln -s d/f l; ln d/f hard; ln -s /etc/passwd out"),
            (second(), "test -f d/f && echo 2 >> l && cat hard > copy"),
        ):
            session = await client.create(snapshot=spec)
            async with session:
                assert (await session.exec(command)).exit_code == 0
            await client.delete(session)
        snapshot = session.state.snapshot
        assert [revision.seq for revision in snapshot.log()] == [2, 1]
        changed = {difference.path for difference in snapshot.diff()}
        assert {"/d/f", "/copy"} <= changed
        assert {difference.path for difference in snapshot.diff("runs@1", "head")} == changed

    asyncio.run(run())


def test_snapshots_are_registered_and_travel_with_the_state(tmp_path: Path) -> None:
    async def run() -> None:
        client = RametSandboxClient()
        session = await client.create(snapshot=RametSnapshotSpec(store=str(tmp_path)))
        snapshot = session.state.snapshot
        assert SnapshotBase.parse(json.loads(snapshot.model_dump_json())) == snapshot
        assert not await snapshot.restorable()
        with pytest.raises(SnapshotNotRestorableError):
            await snapshot.restore()
        async with session:
            await session.exec("echo kept > f; echo '#!/bin/sh' > run; chmod +x run")
        payload = client.serialize_session_state(session.state)
        await client.delete(session)
        state = RametSandboxClient().deserialize_session_state(dict(payload))
        again = await RametSandboxClient().resume(state)
        async with again:
            assert await get(again, "f") == b"kept\n"
            assert (await again.exec("test -x run")).exit_code == 0
        assert isinstance(snapshot, RametSnapshot)
        assert len(snapshot.log()) == 1
        assert snapshot.log()[0].message == "echo kept > f; echo '#!/bin/sh' > run; chmod +x run"

    asyncio.run(run())


def test_forks_go_their_own_way(tmp_path: Path) -> None:
    async def run() -> None:
        client = RametSandboxClient()
        session = await client.create(snapshot=RametSnapshotSpec(store=str(tmp_path), workspace="base"))
        async with session:
            await session.exec("echo start > f")
        for number in (1, 2):
            base = session.state.snapshot
            assert isinstance(base, RametSnapshot)
            fork = base.fork(f"way-{number}")
            tried = await client.create(snapshot=fork)
            async with tried:
                await tried.exec(f"echo {number} >> f")
            assert [d.path for d in fork.diff()] == ["/f"]
        again = await client.create(snapshot=RametSnapshotSpec(store=str(tmp_path), workspace="base"))
        async with again:
            assert await get(again, "f") == b"start\n"

    asyncio.run(run())


def test_a_damaged_archive_adds_no_revision(tmp_path: Path) -> None:
    async def run() -> None:
        snapshot = RametSnapshot(id="x", store=str(tmp_path), workspace="w")
        for raw in (b"no archive", MAGIC + b"{}", Pointer("memory:other", "w", "head").encode()):
            with pytest.raises(SnapshotPersistError):
                await snapshot.persist(io.BytesIO(raw))
        assert not await snapshot.restorable()

    asyncio.run(run())


def test_a_pointer_stands_for_the_workspace(tmp_path: Path) -> None:
    manifest = Manifest(entries={"scratch": Dir(ephemeral=True), "keep": File(content=b"k")})
    options = RametSandboxClientOptions(checkpoint_store=str(tmp_path))

    async def use(session: Any) -> None:
        await session.exec("echo x > scratch/x; ln keep hard; ln -s /workspace/keep abs")
        raw = (await session.persist_workspace()).read()
        assert raw.startswith(MAGIC)
        assert (await session.persist_workspace()).read() == raw
        await session.exec("rm -r *; echo other > other")
        await session.hydrate_workspace(io.BytesIO(raw))
        assert (await session.exec("ls; cat abs; echo more >> hard; cat keep")).stdout == b"abs\nhard\nkeep\nkkmore\n"
        assert (await session.persist_workspace()).read() != raw
        for bad in (MAGIC, MAGIC + b"[]", Pointer(str(tmp_path), "nope", "head").encode()):
            with pytest.raises(WorkspaceArchiveWriteError):
                await session.hydrate_workspace(io.BytesIO(bad))
        assert await get(session, "keep") == b"kmore\n"

    in_session(use, manifest, options=options)


def test_what_is_skipped_does_not_change_the_fingerprint() -> None:
    async def use(session: Any) -> None:
        inner = session._inner
        first = await inner._compute_and_cache_snapshot_fingerprint()
        await session.exec("echo x > scratch/x")
        assert await inner._compute_and_cache_snapshot_fingerprint() == first
        await session.exec("echo x > y")
        assert await inner._compute_and_cache_snapshot_fingerprint() != first

    in_session(use, Manifest(entries={"scratch": Dir(ephemeral=True)}))


# ------------------------------------------------------------------------------------------------ entries


def test_a_bucket_is_mounted_without_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = RAMResource()
    asked = []

    def made(entry: Any) -> RAMResource:
        asked.append(entry.bucket)
        return bucket

    monkeypatch.setattr(open_sandboxes, "native_resource", made)
    mount = S3Mount(bucket="data", mount_strategy=InContainerMountStrategy(pattern=RcloneMountPattern()))
    manifest = Manifest(entries={"cloud": mount, "keep": File(content=b"k")})

    async def use(session: Any) -> None:
        assert asked == ["data"]
        assert (await session.exec("ls; echo no > cloud/f")).stdout == b"cloud\nkeep\n"
        capability = Mounts()
        capability.bind(session)
        told = await capability.instructions(manifest)
        assert told is not None and "`/workspace/cloud`: ram files, read-only" in told
        archive = (await session.persist_workspace()).read()
        assert b"./keep" in archive and b"./cloud" not in archive

    in_session(use, manifest)


def test_the_resource_of_a_bucket_has_its_settings() -> None:
    strategy = InContainerMountStrategy(pattern=RcloneMountPattern())
    from ramet.agents.openai_agents.mounts import native_resource

    entry = S3Mount(
        bucket="b", prefix="p", region="eu-west-1", access_key_id="k", secret_access_key="s", mount_strategy=strategy
    )
    found = native_resource(entry)
    assert isinstance(found, S3Resource)
    config: Any = found.config
    assert (config.bucket, config.prefix, config.region, config.anonymous) == ("b", "p", "eu-west-1", False)


def test_resources_of_the_client_are_in_every_session() -> None:
    shared = RAMResource()
    client = RametSandboxClient(mounts={"/data": (shared, "read")})

    async def use(session: Any) -> None:
        assert (await session.exec("ls -d /data; touch /data/x")).exit_code == 1

    in_session(use, client=client)


@pytest.mark.parametrize("where", ["memory", "memory of its own", "disk", "disk of its own"])
def test_sessions_work_in_a_workspace_that_is_given(where: str, tmp_path: Path) -> None:
    """The document's own sample: `client = ...Client(workspace)`, a checkpoint, and a fresh session that takes it."""

    def made(name: str) -> Workspace:
        resource: Any = RAMResource() if "memory" in where else DiskResource(tmp_path / name, create=True)
        return Workspace({"/workspace" if "own" in where else "/": resource})

    async def test() -> None:
        workspace = made("one")
        await workspace.execute("mkdir -p /workspace/d; echo before > /workspace/d/f; ln -s d /workspace/l")
        client = RametSandboxClient(workspace)
        session, other = await client.create(), await client.create()
        assert (await session.exec("cat d/f; echo after > g; pwd")).stdout == b"before\n/workspace\n"
        assert await get(other, "g") == b"after\n", "they share it"
        snapshot = await session.persist_workspace()
        fresh_session = await RametSandboxClient(made("two")).create()
        await fresh_session.exec("echo stays > h")
        await fresh_session.hydrate_workspace(snapshot)
        assert await get(fresh_session, "l/f") == b"before\n" and await get(fresh_session, "h") == b"stays\n"
        async with session:
            inner: Any = session._inner
            first = await inner.checkpoint(str(tmp_path / "store"), "w")
            await session.exec("rm -r d; echo new > new")
            assert (await inner.checkpoint(str(tmp_path / "store"), "w")).revision != first.revision
            await inner._take_up(first.encode())
            assert (await session.exec("cat l/f; ls")).stdout == b"before\nd\ng\nl\n"
        await client.delete(session)
        assert (await workspace.execute("cat /workspace/g")).text == "after\n", "whoever gave it keeps it"
        assert await get(other, "g") == b"after\n"
        assert [one.session_id for one in workspace.list_sessions()] == ["default"]

    asyncio.run(test())


def test_a_repository_is_fetched_by_the_machines_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    origin = tmp_path / "origin"
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    subprocess.run(["git", "init", "-q", "-b", "main", str(origin)], check=True)
    (origin / "sub").mkdir()
    (origin / "sub" / "f").write_text("content")
    subprocess.run(["git", "-C", str(origin), "add", "."], check=True)
    subprocess.run(["git", "-C", str(origin), *identity, "commit", "-q", "-m", "m"], check=True)
    monkeypatch.setattr(gitrepo, "url_of", lambda entry: f"file://{tmp_path}/{entry.repo}")
    monkeypatch.setattr(gitrepo, "PROTOCOLS", "file")
    manifest = Manifest(
        entries={
            "all": GitRepo(repo="origin", ref="main"),
            "part": GitRepo(repo="origin", ref="main", subpath="sub"),
        }
    )

    async def use(session: Any) -> None:
        assert await get(session, "all/sub/f") == b"content"
        assert (await session.exec("ls -A part all")).stdout == b"all:\n.git\nsub\n\npart:\nf\n"

    in_session(use, manifest)

    async def fails() -> None:
        session = await RametSandboxClient().create(manifest=Manifest(entries={"x": GitRepo(repo="nope", ref="main")}))
        with pytest.raises(GitCloneError):
            await session.start()

    asyncio.run(fails())


# -------------------------------------------------------------------------------------------------- tools

EDITS = [
    (("new/f", "", "hello\n", False), "created new/f", b"hello\n"),
    (("f", "two", "2", False), "changed f", b"one 2 one"),
    (("f", "one", "1", True), "replaced 2 in f", b"1 two 1"),
    (("f", "one", "1", False), "error: `old` occurs 2 times in f", b"one two one"),
    (("f", "three", "3", False), "error: `old` is not in f", b"one two one"),
    (("f", "", "x", False), "error: f exists", b"one two one"),
    (("../out", "a", "b", False), "error: cannot read ../out", None),
    (("gone", "a", "b", False), "error: no file gone", None),
]


@pytest.mark.parametrize(("given", "said", "content"), EDITS)
def test_edit(given: tuple[str, str, str, bool], said: str, content: bytes | None) -> None:
    async def use(session: Any) -> None:
        await session.write(Path("f"), io.BytesIO(b"one two one"))
        capability = Edit()
        capability.bind(session)
        tool: Any = capability.tools()[0]
        arguments = json.dumps(dict(zip(("path", "old", "new", "all"), given, strict=True)))
        answer = await tool.on_invoke_tool(None, arguments)
        assert answer.startswith(said)
        if content is not None:
            assert await get(session, given[0]) == content
        assert (await tool.on_invoke_tool(None, "{")).startswith("error: path, old")

    in_session(use)
