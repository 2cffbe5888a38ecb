"""SSHResource keeps the contract of a resource against a real OpenSSH server."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("asyncssh")
if shutil.which("sshd", path="/usr/sbin:/usr/local/sbin") is None:
    pytest.skip("openssh-server is not installed", allow_module_level=True)

from tests.support.servers import SSHServer, ssh_server

from ramet import Workspace
from ramet.backends.remote.ssh import SSHConfig, SSHResource
from ramet.core import ops
from ramet.core.paths import parse
from ramet.testing import CHECKS, Check, run_check

P = parse


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SSHServer]:
    with ssh_server(tmp_path_factory.mktemp("ssh")) as running:
        yield running


def config(server: SSHServer, root: Path) -> SSHConfig:
    return SSHConfig(
        host="127.0.0.1", port=server.port, username=server.username, root=str(root),
        client_keys=(server.key,), known_hosts=server.known_hosts,
    )  # fmt: skip


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_contract(check: Check, server: SSHServer, tmp_path: Path) -> None:
    run_check(check, lambda: SSHResource(config(server, tmp_path)), pytest.skip)


def test_a_workspace_over_ssh(server: SSHServer, tmp_path: Path) -> None:
    async def act() -> None:
        async with Workspace({"/r": SSHResource(config(server, tmp_path))}) as ws:
            script = (
                "cd /r; mkdir -p a/b; seq 200000 > a/big; ln -s a/big link; chmod 640 a/big; sed -i 1s/1/one/ a/big"
            )
            assert (await ws.execute(script)).check()
            look = await ws.execute(
                "cd /r; head -1 link; tail -1 a/big; stat -c '%a %s' a/big; tar cf - a | tar tf - | sort"
            )
            assert look.text == "one\n200000\n640 1288897\na/\na/b/\na/big\n"
        assert (tmp_path / "a" / "big").stat().st_size == 1_288_897

    asyncio.run(act())
    assert not list(tmp_path.rglob(".ramet-*"))


def test_large_transfers_are_exact(server: SSHServer, tmp_path: Path) -> None:
    async def act() -> None:
        tree = SSHResource(config(server, tmp_path))
        content = os.urandom(1 << 20) * 24
        await tree.write(P("/big"), content)
        assert await ops.read_bytes(tree, P("/big")) == content
        assert (
            b"".join([block async for block in tree.read(P("/big"), 5_000_000, 5_000_100)])
            == content[5_000_000:5_000_100]
        )
        await tree.close()

    asyncio.run(act())


def test_links_do_not_lead_out(server: SSHServer, tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("x")
    (inside / "link").symlink_to(outside)

    async def act() -> None:
        tree = SSHResource(config(server, inside))
        for attempt in (lambda: tree.stat(P("/link/secret")), lambda: ops.read_bytes(tree, P("/link/secret"))):
            with pytest.raises(OSError) as raised:
                await attempt()
            assert raised.value.errno == errno.ELOOP
        with pytest.raises(OSError):
            await tree.write(P("/link/new"), b"")
        await tree.close()
        async with Workspace({"/r": SSHResource(config(server, inside))}) as ws:
            assert (await ws.execute("cat /r/link/secret")).exit_code == 1

    asyncio.run(act())
    assert not (outside / "new").exists()


def test_an_unknown_host_and_a_wrong_key_are_refused(server: SSHServer, tmp_path: Path) -> None:
    async def act() -> None:
        empty = tmp_path / "none"
        empty.write_text("")
        given = config(server, tmp_path)
        with pytest.raises(PermissionError, match="is not known"):
            await SSHResource(SSHConfig(**{**given.__dict__, "known_hosts": str(empty)})).stat(P("/"))
        with pytest.raises(PermissionError, match="refuses these credentials"):
            await SSHResource(SSHConfig(**{**given.__dict__, "username": uuid.uuid4().hex})).stat(P("/"))
        with pytest.raises(OSError, match="could not be reached"):
            await SSHResource(SSHConfig(**{**given.__dict__, "port": 1})).stat(P("/"))

    asyncio.run(act())


def test_a_lost_connection_is_made_again(server: SSHServer, tmp_path: Path) -> None:
    async def act() -> None:
        async with Workspace({"/r": SSHResource(config(server, tmp_path))}) as ws:
            await ws.execute("echo one > /r/f")
            resource = ws.mounts()[1].resource
            assert isinstance(resource, SSHResource)
            for connection, _, _ in resource._connections.values():
                connection.abort()
            assert (await ws.execute("sleep 0.01; ls /r; cat /r/f")).text == "f\none\n"

    asyncio.run(act())


def test_what_a_snapshot_says(server: SSHServer, tmp_path: Path) -> None:
    description = SSHResource(config(server, tmp_path)).describe()
    assert description.needs_override is False and description.redacted_fields == ("client_keys",)
    assert server.key not in repr(description)
