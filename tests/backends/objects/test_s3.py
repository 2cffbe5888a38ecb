"""S3Resource keeps the contract of a resource against a real S3 server."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import uuid
from urllib.parse import urlsplit

import pytest
from tests.support.proxy import Distance
from tests.support.servers import S3Server

from ramet import RametError, Workspace
from ramet.backends.objects.s3 import S3Config, S3Resource
from ramet.core.paths import parse
from ramet.layers.stack import Policy, build
from ramet.testing import CHECKS, Check, run_check


@pytest.fixture
def server(weed: S3Server) -> S3Server:
    return weed


def make(server: S3Server, prefix: str, endpoint: str | None = None) -> S3Resource:
    return S3Resource(
        S3Config.of("minio", endpoint=endpoint or server.endpoint, bucket=server.bucket, prefix=prefix,
                    aws_access_key_id=server.key, aws_secret_access_key=server.secret)
    )  # fmt: skip


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_contract(check: Check, server: S3Server) -> None:
    run_check(check, lambda: make(server, uuid.uuid4().hex), pytest.skip)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_contract_as_it_is_mounted(check: Check, server: S3Server) -> None:
    run_check(check, lambda: build(make(server, uuid.uuid4().hex), Policy()), pytest.skip)


def put(server: S3Server, keys: dict[str, bytes]) -> None:
    """Objects that other tools have written."""
    import obstore
    from obstore.store import S3Store

    store = S3Store(
        server.bucket, endpoint=server.endpoint, access_key_id=server.key, secret_access_key=server.secret,
        region=server.region, virtual_hosted_style_request=False, client_options={"allow_http": True},
    )  # fmt: skip

    async def act() -> None:
        await asyncio.gather(*(obstore.put_async(store, key, data) for key, data in keys.items()))

    asyncio.run(act())


FLAT = {f"k{number:04}": b"x" for number in range(1001)}
TREES: dict[str, tuple[dict[str, bytes], list[str], int]] = {
    "a few files": ({"a": b"1", "b%c": b"22"}, ["HEAD", "list"], 2),
    "files and directories": ({"a": b"1", "d/e/f": b"2", "d/g": b"3", "h/i": b"4"}, ["HEAD", "list"], 3),
    "an empty directory": ({"d/.ramet-keep": b"", ".ramet-keep": b""}, ["HEAD", "list"], 1),
    "an empty file, which a marker of other tools may be": ({"a": b"", "b": b"2"}, ["HEAD", "list", "level"], 2),
    "more than a page": (FLAT, ["HEAD", "list", "list"], 1001),
    "directories behind the first page": ({**FLAT, "z/a": b"", "z/b": b""}, ["HEAD", "list", "list"], 1002),
    "a large directory in between": (
        {**FLAT, **{f"k0500/f{number:04}": b"x" for number in range(1200)}},
        ["HEAD", "list", "level", "level"],
        1001,
    ),
}


@pytest.mark.parametrize("tree", TREES)
def test_looking_at_a_directory_and_listing_it_asks_for_nothing_twice(tree: str, server: S3Server) -> None:
    objects, requests, count = TREES[tree]
    prefix = uuid.uuid4().hex
    put(server, {f"{prefix}/dir/{key}": data for key, data in objects.items()})

    async def act() -> None:
        async with Distance(urlsplit(server.endpoint).port or 0) as proxy:
            fs = make(server, prefix, proxy.endpoint)
            assert (await fs.stat(parse("/dir"))).is_dir
            found = await fs.entries(parse("/dir"))
            asked = ["HEAD" if "HEAD" in one else "level" if "delimiter" in one else "list" for one in proxy.requests]
            assert asked == requests
        assert found and sorted(found) == sorted(await make(server, prefix).entries(parse("/dir")))
        assert len(found) == count

    asyncio.run(act())


def test_a_change_after_a_look_is_seen_in_the_listing(server: S3Server) -> None:
    async def act() -> None:
        fs = make(server, uuid.uuid4().hex)
        await fs.mkdir(parse("/d"))
        for number, name in enumerate(("a", "b", "c")):
            await fs.stat(parse("/d"))
            await fs.write(parse(f"/d/{name}"), b"x")
            assert len(await fs.entries(parse("/d"))) == number + 1
        await fs.stat(parse("/d"))
        await fs.remove(parse("/d/b"))
        assert sorted(name for name, _ in await fs.entries(parse("/d"))) == ["a", "c"]

    asyncio.run(act())


def test_a_mount_is_searched_with_one_request_for_each_file(server: S3Server) -> None:
    prefix = uuid.uuid4().hex
    put(server, {f"{prefix}/d{number % 3}/f{number}": f"line {number}\n".encode() for number in range(30)})

    async def act() -> None:
        async with Distance(urlsplit(server.endpoint).port or 0) as proxy:
            ws = Workspace({"/s3": (make(server, prefix, proxy.endpoint), "read")})
            found = await ws.execute("grep -r 'line 2' /s3 | sort")
            assert found.text.count("\n") == 11
            assert [one for one in proxy.requests if "HEAD" in one] == []
            assert len(proxy.requests) == 30 + 4
            before = len(proxy.requests)
            assert (await ws.execute("grep -r 'line 2' /s3 | sort")).text == found.text
            assert len(proxy.requests) == before, "what was read is remembered"
            await ws.close()

    asyncio.run(act())


ENDING = """
import asyncio, sys
from ramet.backends.objects.s3 import S3Config, S3Resource
from ramet.core import ops
from ramet.core.paths import parse

async def main():
    fs = S3Resource(S3Config.of("minio", endpoint=sys.argv[1], bucket=sys.argv[2], prefix=sys.argv[3],
                                aws_access_key_id=sys.argv[4], aws_secret_access_key=sys.argv[5]))
    print((await ops.read_bytes(fs, parse("/f"))).decode())

asyncio.run(main())
"""


def test_a_process_that_ends_right_after_a_read_ends_well(server: S3Server) -> None:
    """Threads of the client were about to go on in an interpreter that is gone."""
    prefix = uuid.uuid4().hex
    put(server, {f"{prefix}/f": b"content"})
    words = [sys.executable, "-c", ENDING, server.endpoint, server.bucket, prefix, server.key, server.secret]
    for _ in range(6):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "content\n", "")


def test_a_password_in_the_endpoint_is_never_shown() -> None:
    config = S3Config(bucket="b", endpoint_url="https://user:hunter2@s3.example:9000")
    described = config.describe()
    assert "hunter2" not in repr(config) + repr(described) and "endpoint_url" in described.redacted_fields
    assert config.endpoint_url == "https://user:hunter2@s3.example:9000", "it is used as it is"
    with pytest.raises(RametError) as caught:
        S3Config(bucket="b", endpoint_url="ftp://user:hunter2@s3.example")
    assert "hunter2" not in str(caught.value)
    assert "endpoint_url" not in S3Config(bucket="b", endpoint_url="https://s3.example").describe().redacted_fields
