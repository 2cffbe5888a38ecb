"""Commands between mounts of every kind: each pair of memory, disk, S3, Redis and SSH, on real servers."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path as LocalPath

import pytest
from tests.support.servers import S3Server, SSHServer, redis_server, ssh_server

from ramet import DiskResource, RAMResource, Workspace
from ramet.backends.databases.redis import RedisResource
from ramet.backends.objects.s3 import S3Config, S3Resource
from ramet.backends.remote.ssh import SSHConfig, SSHResource
from ramet.core.resource import Resource
from ramet.workspace.result import IOResult

KINDS = ("ram", "disk", "s3", "redis", "ssh")
PAIRS = [pair for pair in product(KINDS, KINDS) if pair[0] != pair[1]]
Make = Callable[..., Resource]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory, weed: S3Server) -> Iterator[Make]:
    """A fresh, empty resource of a kind; the servers start once."""
    folder = tmp_path_factory.mktemp
    with redis_server(folder("redis")) as redis, ssh_server(folder("ssh")) as ssh:
        yield lambda kind, name="": _fresh(kind, name or uuid.uuid4().hex, folder, weed, redis, ssh)


def _fresh(
    kind: str, name: str, folder: Callable[[str], LocalPath], s3: S3Server, redis: str, ssh: SSHServer
) -> Resource:
    if kind == "s3":
        config = S3Config.of("minio", endpoint=s3.endpoint, bucket=s3.bucket, prefix=name,
                             aws_access_key_id=s3.key, aws_secret_access_key=s3.secret)  # fmt: skip
        return S3Resource(config)
    if kind == "redis":
        return RedisResource(redis, prefix=name)
    if kind == "ssh":
        return SSHResource(
            SSHConfig(host="127.0.0.1", port=ssh.port, username=ssh.username, known_hosts=ssh.known_hosts,
                      client_keys=(ssh.key,), root=str(folder(f"files-{name}")))
        )  # fmt: skip
    return DiskResource(folder(name), create=True) if kind == "disk" else RAMResource()


FILL = r"""
cd /a && mkdir -p tree/sub/deep tree/empty
printf 'one\ntwo needle\n' > tree/plain.txt
printf 'no final newline, needle' > tree/sub/open.txt
printf '' > tree/sub/nothing
seq 1 60000 > tree/sub/deep/large.txt
printf '\000\377\r\n' > 'tree/sub/odd name.bin'
"""

STEPS: dict[str, tuple[str, str]] = {
    "cp -r": (
        "cp -r /a/tree /b/ && cd /b && find tree -type f | sort | xargs -d '\\n' md5sum && find tree -type d | sort",
        "cd /a && find tree -type f | sort | xargs -d '\\n' md5sum && find tree -type d | sort",
    ),
    "diff -r": (
        "cp -r /a/tree /b/copy && diff -r /a/tree /b/copy && echo same; echo more >> /b/copy/plain.txt;"
        " diff -rq /a/tree /b/copy; diff /a/tree/plain.txt /b/copy/plain.txt",
        "echo same; echo 'Files /a/tree/plain.txt and /b/copy/plain.txt differ'; printf '2a3\\n> more\\n'",
    ),
    "grep -r": (
        "cp -r /a/tree /b/two && grep -rc needle /a/tree /b/two | sort",
        "for t in /a/tree /b/two; do printf '%s\\n' $t/plain.txt:1 $t/sub/deep/large.txt:0 $t/sub/nothing:0"
        ' "$t/sub/odd name.bin:0" $t/sub/open.txt:1; done',
    ),
    "tar": (
        "tar -C /a -cf /b/t.tar tree && mkdir /b/out && tar -C /b/out -xf /b/t.tar && diff -r /a/tree /b/out/tree"
        " && tar -tf /b/t.tar | sort",
        "cd /a; { find tree -type d -printf '%p/\\n'; find tree -type f; } | sort",
    ),
    "find -newer": (
        # An object store keeps no times: the old file lies where one can be set.
        "for d in /a /b; do touch -d @1000000000 $d/mark 2>/dev/null && m=$d/mark && break; done; "
        "cp -r /a/tree /b/late; find /b/late -name plain.txt -newer $m; find $m -newer /b/late/plain.txt",
        "echo /b/late/plain.txt",
    ),
    "mv": (
        "cp -r /a/tree /a/gone && mv /a/gone /b/here && diff -r /a/tree /b/here && ls /a /b",
        "printf '/a:\\ntree\\n\\n/b:\\nhere\\n'",
    ),
    "a pipeline": (
        "cat /a/tree/sub/deep/large.txt | sort -rn | tee /b/sorted | tail -1; wc -l < /b/sorted; tail -1 /b/sorted",
        "printf '1\\n60000\\n1\\n'",
    ),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(("source", "target"), PAIRS, ids=lambda kind: str(kind))
def test_between(source: str, target: str, step: str, make: Make) -> None:
    async def act() -> tuple[IOResult, IOResult]:
        ws = Workspace({"/a": make(source), "/b": make(target)})
        filled = await ws.execute(FILL)
        assert filled.exit_code == 0, filled.error_text
        script, expected = STEPS[step]
        before = await ws.execute(expected)
        done = await ws.execute(script)
        await ws.close()
        return done, before

    done, expected = asyncio.run(act())
    assert (done.error_text, done.text) == ("", expected.text)


def test_a_time_that_cannot_be_kept_is_refused(make: Make) -> None:
    async def act() -> None:
        ws = Workspace({"/a": make("s3")})
        set_time = await ws.execute("touch /a/f && touch /a/f && touch -d @1000000000 /a/f")
        assert set_time.error_text == "touch: setting times of '/a/f': Operation not supported\n"
        assert set_time.exit_code == 1
        await ws.close()

    asyncio.run(act())


@pytest.mark.parametrize("kind", ["s3", "redis"])
def test_a_branch_meets_a_change_from_outside(kind: str, make: Make) -> None:
    async def act() -> None:
        name = uuid.uuid4().hex
        ws, outside = Workspace({"/d": make(kind, name)}), Workspace({"/d": make(kind, name)})
        await ws.execute("echo base | tee /d/f > /d/g; cat /d/f /d/g")
        branch = ws.branch()
        await branch.execute("echo mine >> /d/f; echo new > /d/h; rm /d/g")
        assert (await branch.execute("cat /d/f")).text == "base\nmine\n"
        assert (await ws.execute("cat /d/f; ls /d")).text == "base\nf\ng\n"

        await outside.execute("echo theirs > /d/f")
        report = await branch.commit()
        assert [str(conflict.path) for conflict in report.conflicts] == ["/d/f"], "nobody waits for a ttl to see that"
        assert (await outside.execute("cat /d/f /d/g; ls /d")).text == "theirs\nbase\nf\ng\n", "nothing was applied"

        again = outside.branch()
        await again.execute("echo mine >> /d/f; echo new > /d/h; rm /d/g")
        assert (await again.commit()).ok
        fresh = Workspace({"/d": make(kind, name)})
        assert (await fresh.execute("cat /d/f /d/h; ls /d")).text == "theirs\nmine\nnew\nf\nh\n"
        for one in (ws, outside, fresh):
            await one.close()

    asyncio.run(act())
