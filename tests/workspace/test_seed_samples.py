"""The published samples of workspaces and snapshots, with only the import names changed."""

from __future__ import annotations

import asyncio
import copy
import io
import json
import tarfile
from pathlib import Path

import pytest

from ramet import DiskResource, IOResult, MountMode, RAMResource, Workspace
from ramet.core.resource import Description
from ramet.workspace.snapshot.archive import read_tar, split_manifest_and_blobs, write_tar
from ramet.workspace.snapshot.state import to_state_dict


class S3Like(RAMResource):
    """A resource whose description carries redacted credentials, as remote ones have it."""

    def __init__(self, key: str = "AKIAVERYSECRET") -> None:
        super().__init__()
        self.key = key

    def describe(self) -> Description:
        config: dict[str, object] = {
            "bucket": "my-bucket",
            "region": "us-east-1",
            "aws_secret_access_key": "<REDACTED>",
        }
        return Description("s3", config, ("aws_secret_access_key",), True)


def run(ws: Workspace, command: str, **options: object) -> IOResult:
    async def act() -> IOResult:
        return await ws.execute(command, **options)  # type: ignore[arg-type]

    return asyncio.run(act())


def test_common_shape() -> None:
    s3 = S3Like()
    ws = Workspace({
        "/": (RAMResource(), MountMode.WRITE),
        "/s3": (s3, MountMode.READ),
    })  # fmt: skip
    assert run(ws, "echo x > /f && cat /f").text == "x\n"
    refused = run(ws, "echo x > /s3/f")
    assert refused.exit_code == 1 and "Read-only file system" in refused.error_text


def test_three_methods(tmp_path: Path) -> None:
    ws = Workspace({"/": RAMResource(), "/s3": S3Like()})
    run(ws, "echo data > /f; cd /tmp; export WHO=me")
    ws.snapshot(tmp_path / "snap.tar")
    ws.snapshot(str(tmp_path / "snap.tar.gz"), compress="gz")
    buf = io.BytesIO()
    ws.snapshot(buf)
    buf.seek(0)
    for source in (tmp_path / "snap.tar", tmp_path / "snap.tar.gz", buf):
        new_ws = Workspace.load(source, resources={"/s3": S3Like()})
        assert run(new_ws, "cat /f; pwd; echo $WHO").text == "data\n/tmp\nme\n"
    forked = ws.copy()
    deep = copy.deepcopy(ws)
    for twin in (forked, deep):
        run(twin, "echo changed > /f")
    assert run(ws, "cat /f").text == "data\n"
    with pytest.raises(NotImplementedError, match=r"ws\.copy\(\).*copy\.deepcopy\(ws\)"):
        copy.copy(ws)


def test_layout_of_the_tar(tmp_path: Path) -> None:
    (tmp_path / "root" / "data").mkdir(parents=True)
    (tmp_path / "root" / "data" / "a.txt").write_text("A")
    ws = Workspace({"/": RAMResource(), "/disk": DiskResource(tmp_path / "root", create=True)})
    run(ws, "echo one > /one")
    ws.snapshot(tmp_path / "snap.tar")
    with tarfile.open(tmp_path / "snap.tar") as tar:
        names = tar.getnames()
        manifest = json.load(tar.extractfile("manifest.json"))  # type: ignore[arg-type]
        tar.extractall(tmp_path / "somewhere", filter="data")
    assert "mounts/0/files/0.bin" in names and "mounts/1/files/data/a.txt" in names
    assert manifest["version"] == 1
    assert manifest["mounts"][0]["files"]["/one"] == {"__file": "mounts/0/files/0.bin"}
    assert (tmp_path / "somewhere/mounts/1/files/data/a.txt").read_text() == "A"


def test_missing_overrides_are_named_all_at_once(tmp_path: Path) -> None:
    ws = Workspace({"/": RAMResource(), "/s3": S3Like(), "/gdrive": S3Like()})
    ws.snapshot(tmp_path / "snap.tar")
    with pytest.raises(ValueError) as caught:
        Workspace.load(tmp_path / "snap.tar")
    assert str(caught.value) == (
        "Workspace.load: resources= must include overrides for: ['/s3', '/gdrive']. These mounts were saved with "
        "redacted creds or transient connection state and need fresh resources."
    )


def test_mounts_are_numbered_as_they_were_given_and_stay_so(tmp_path: Path) -> None:
    ws = Workspace({"/z": RAMResource(), "/a": RAMResource(), "/": RAMResource()}).copy()
    ws.mount("/b", RAMResource())
    for _ in range(2):
        ws.snapshot(tmp_path / "snap.tar")
        opened = read_tar(tmp_path / "snap.tar")
        opened.close()
        assert [mount["prefix"] for mount in opened.manifest["mounts"]] == ["/", "/z", "/a", "/b"]
        ws = Workspace.load(tmp_path / "snap.tar")


def test_credentials_are_redacted_by_a_sentinel(tmp_path: Path) -> None:
    ws = Workspace({"/": RAMResource(), "/s3": S3Like()})
    ws.snapshot(tmp_path / "snap.tar")
    opened = read_tar(tmp_path / "snap.tar")
    mount = opened.manifest["mounts"][1]
    opened.close()
    assert mount["type"] == "s3" and mount["needs_override"] is True
    assert mount["redacted_fields"] == ["aws_secret_access_key"]
    assert mount["config"]["aws_secret_access_key"] == "<REDACTED>"
    assert b"AKIAVERYSECRET" not in (tmp_path / "snap.tar").read_bytes()


def test_copy_shares_remote_resources_and_separates_local_ones(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    remote = S3Like()
    remote.fork = None  # type: ignore[assignment,method-assign]
    ws = Workspace({"/": RAMResource(), "/disk": DiskResource(tmp_path / "d", create=True)})
    twin = ws.copy()
    run(twin, "echo x > /disk/f; echo y > /g")
    assert run(ws, "ls /disk /g 2>&1").text == "ls: cannot access '/g': No such file or directory\n/disk:\n"


def test_a_snapshot_is_built_from_public_parts(tmp_path: Path) -> None:
    ws = Workspace()
    run(ws, "echo hand made > /f")
    bundle = split_manifest_and_blobs(to_state_dict(ws))
    write_tar(tmp_path / "made.tar", bundle)
    assert run(Workspace.load(tmp_path / "made.tar"), "cat /f").text == "hand made\n"


def test_a_later_version_of_ours_is_refused_by_its_number(tmp_path: Path) -> None:
    bundle = split_manifest_and_blobs({**to_state_dict(Workspace()), "version": 2})
    write_tar(tmp_path / "made.tar", bundle)
    with pytest.raises(ValueError, match="version 2; only version 1"):
        Workspace.load(tmp_path / "made.tar")


def test_a_sandbox_connector_can_map_its_sessions() -> None:
    """What the connector thread asks for: a session per id, per-call cwd and env, cancellation apart from timeouts."""

    async def act() -> None:
        ws = Workspace()
        ws.create_session("flue-1")
        assert (await ws.execute("FOO=bar printenv FOO")).text == "bar\n"
        assert (await ws.execute("FOO=bar echo $FOO")).text == "\n"
        result = await ws.execute("echo $FOO; pwd", session_id="flue-1", cwd="/tmp", env={"FOO": "per call"})
        assert result.text == "per call\n/tmp\n"
        assert (await ws.execute("echo [$FOO]; pwd", session_id="flue-1")).text == "[]\n/\n"
        await ws.close_session("flue-1")

    asyncio.run(act())
