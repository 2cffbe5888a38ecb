"""HTTPResource against nginx, Python's own server, and servers that break off, change their mind or lie."""

from __future__ import annotations

import asyncio
import errno
import functools
import http.server
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path as LocalPath
from typing import Any

import pytest
from tests.support.servers import nginx

from ramet import Workspace
from ramet.backends.remote.http import HTTPConfig, HTTPResource, links_in
from ramet.core import ops
from ramet.core.errors import RametError, Unavailable
from ramet.core.paths import parse
from ramet.core.stat import Kind
from ramet.layers.retry import Retry
from ramet.layers.stack import Policy, build
from ramet.network.addresses import is_public
from ramet.testing import READING, Check, refused, run_check

P = parse
NAMES = ("a.txt", "empty", "d/b.bin", "d/e/ünï cödé 100%.txt", "d/q?x#y&z=1;.txt", "secret.txt")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> LocalPath:
    root = tmp_path_factory.mktemp("files")
    for number, name in enumerate(NAMES):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"" if name == "empty" else bytes(range(256)) * (number * 700 + 1))
    return root


@pytest.fixture(scope="module")
def server(files: LocalPath, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with nginx(tmp_path_factory.mktemp("nginx"), files) as address:
        yield address


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""


@pytest.fixture(scope="module")
def plain_server(files: LocalPath) -> Iterator[str]:
    """A server that knows neither ranges nor ETags."""
    handler = functools.partial(Quiet, directory=str(files))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/"
        running.shutdown()
        thread.join()


def at(base: str, **more: Any) -> HTTPResource:
    return HTTPResource(HTTPConfig(base=base, private=True, **more))


def run(act: Callable[[HTTPResource], Awaitable[Any]], resource: HTTPResource) -> Any:
    async def inside() -> Any:
        try:
            return await act(resource)
        finally:
            await resource.close()

    return asyncio.run(inside())


WAYS: dict[str, dict[str, Any]] = {
    "links": {},
    "list": {"files": tuple(name for name in NAMES if name != "secret.txt")},
}


@pytest.mark.parametrize("check", READING, ids=lambda check: check.name)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mounted", [False, True])
def test_contract(check: Check, way: str, mounted: bool, server: str) -> None:
    def make() -> Any:
        resource = at(server, token_env="RAMET_TEST_TOKEN", **WAYS[way])
        return build(resource, Policy()) if mounted else resource

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAMET_TEST_TOKEN", "hunter2")
        run_check(check, make, pytest.skip)


@pytest.mark.parametrize("check", READING, ids=lambda check: check.name)
def test_contract_without_ranges(check: Check, plain_server: str) -> None:
    run_check(check, lambda: at(plain_server), pytest.skip)


def test_commands_work_on_it(server: str, files: LocalPath) -> None:
    async def act() -> None:
        ws = Workspace({"/w": (at(server), "read")})
        found = await ws.execute(
            "cd /w; find . -type f ! -name secret.txt | sort; md5sum d/e/*; head -c 3 a.txt | od -An -tx1"
        )
        assert found.exit_code == 0, found
        for name in NAMES[:5]:
            assert f"./{name}\n" in found.text
        assert found.text.endswith(" 00 01 02\n")
        assert (await ws.execute("echo x > /w/new")).error_text.endswith("Read-only file system\n")
        assert (await ws.execute("cat /w/nosuch")).error_text == "cat: /w/nosuch: No such file or directory\n"
        await ws.close()

    asyncio.run(act())


def test_what_is_known_of_a_file(server: str, files: LocalPath) -> None:
    stat = run(lambda fs: fs.stat(P("/a.txt")), at(server))
    local = (files / "a.txt").stat()
    assert (stat.kind, stat.size, stat.mtime_ns) == (Kind.FILE, local.st_size, int(local.st_mtime) * 10**9)
    assert stat.version and run(lambda fs: fs.stat(P("/d/e")), at(server)).kind is Kind.DIR


REFUSALS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "a host that is not allowed": ("/elsewhere.txt", errno.EACCES, {}),
    "a circle": ("/round.txt", errno.ELOOP, {}),
    "a credential that is missing": ("/secret.txt", errno.EACCES, {}),
    "a busy server": ("/busy.txt", errno.EIO, {}),
    "nothing there": ("/nope", errno.ENOENT, {}),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str, server: str) -> None:
    path, number, more = REFUSALS[name]

    async def act(fs: HTTPResource) -> None:
        with refused(number):
            await ops.read_bytes(fs, P(path))

    run(act, at(server, index="none", **more))


def test_redirects_within_the_allowed_hosts(server: str, files: LocalPath) -> None:
    read = functools.partial(ops.read_bytes, path=P("/moved.txt"))
    assert run(lambda fs: read(fs), at(server)) == (files / "a.txt").read_bytes()
    away = functools.partial(ops.read_bytes, path=P("/elsewhere.txt"))
    assert run(lambda fs: away(fs), at(server, allow=("localhost",))) == (files / "a.txt").read_bytes()


def test_a_token_comes_from_the_environment_and_is_never_shown(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAMET_TEST_TOKEN", "hunter2")
    by_name, by_value = (
        at(server, token_env="RAMET_TEST_TOKEN"),
        at(server, headers={"Authorization": "Bearer hunter2"}),
    )
    for resource in (by_name, by_value):
        assert run(lambda fs: ops.read_bytes(fs, P("/secret.txt")), resource)
        assert "hunter2" not in repr(resource) + repr(resource.config) + repr(resource.describe())
    assert by_value.describe().redacted_fields == ("headers",)


def test_without_an_index_nothing_is_listed_and_everything_is_found(server: str) -> None:
    async def act(fs: HTTPResource) -> None:
        with refused(errno.ENOTSUP):
            await ops.entries(fs, P("/"))
        assert len(await ops.read_bytes(fs, P("/d/b.bin"))) > 256

    run(act, at(server, index="none"))


@pytest.mark.parametrize("text", ["a.txt\nd/b.bin\n", '["a.txt", "d/b.bin"]'])
def test_an_index_file_names_the_others(text: str, server: str, files: LocalPath) -> None:
    (files / "index.list").write_text(text)

    async def act(fs: HTTPResource) -> None:
        assert sorted([str(path) async for path, _ in ops.walk(fs, P("/"))]) == ["/a.txt", "/d", "/d/b.bin"]
        with refused(errno.ENOENT):
            await fs.stat(P("/empty"))
        with refused(errno.ENOTDIR):
            await fs.stat(P("/a.txt/x"))

    try:
        run(act, at(server, index="index.list"))
    finally:
        (files / "index.list").unlink()


# ------------------------------------------------------------------------------------------------- whom we ask


@pytest.mark.parametrize("address", [
    "127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.9.9", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
    "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::",
    "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b:1::7f00:1", "fec0::1", "5f00::1", "3fff::1",
])  # fmt: skip
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "::ffff:93.184.215.14"])
def test_addresses_that_are_public(address: str) -> None:
    assert is_public(address)


def test_private_addresses_are_refused_unless_allowed(server: str) -> None:
    async def act(fs: HTTPResource) -> None:
        with pytest.raises(OSError, match="private address"):
            await fs.stat(P("/a.txt"))

    run(act, HTTPResource(HTTPConfig(base=server)))
    run(act, HTTPResource(HTTPConfig(base=server.replace("127.0.0.1", "localhost"))))


def test_the_address_that_was_judged_is_the_one_that_is_asked(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that means something else when it is looked up a second time is not looked up a second time."""

    async def act(fs: HTTPResource) -> int:
        looked_up: list[str] = []

        async def answers(host: str, port: int, **more: Any) -> list[Any]:
            looked_up.append(host)
            return [(0, 0, 0, "", ("127.0.0.1" if len(looked_up) == 1 else "127.0.0.99", port))]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", answers)
        for _ in range(3):
            await fs.stat(P("/a.txt"))
        return len(looked_up)

    assert run(act, at(server.replace("127.0.0.1", "files.example"))) == 1


@pytest.mark.parametrize("base", ["ftp://h/", "https://", "https://h/?q=1", "https://me:pw@h/"])
def test_a_base_that_cannot_be(base: str) -> None:
    with pytest.raises(RametError) as refusal:
        HTTPConfig(base=base)
    assert "pw" not in str(refusal.value)


PAGE = b"""<html><a href="../">up</a><a href='?C=N;O=D'>sort</a><a href="/other/">o</a><a href="http://h/d/x%2Fy">slash</a>
<a href="sub/">s</a><A HREF="a%20b.txt">a</A><a href="./c.txt#top">c</a><a href="https://h/d/z">scheme</a>
<a name="n">n</a><a href="http://[bad/">bad</a><a href="/d/deep/er">deep</a>
<a href="%00">nul</a><a href="%ff">byte</a></html>"""


def test_a_page_of_links() -> None:
    assert links_in(PAGE, "http://h/d/") == {
        "sub": Kind.DIR, "a b.txt": Kind.FILE, "c.txt": Kind.FILE, "\udcff": Kind.FILE,
    }  # fmt: skip


# ------------------------------------------------------------------------------------------ what breaks, and lies


@asynccontextmanager
async def broken(answer: Callable[[dict[str, str], int], bytes]) -> AsyncIterator[str]:
    """A server that sends what it is told to and hangs up. It counts its answers."""
    count = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        headers["method"] = lines[0].split(" ")[0]
        count += 1
        writer.write(answer(headers, count))
        await writer.drain()
        writer.close()

    running = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with running:
        yield f"http://127.0.0.1:{running.sockets[0].getsockname()[1]}/"


CONTENT = bytes(range(256)) * 4096


def whole(headers: dict[str, str], etag: str, sent: int) -> bytes:
    """A true answer of which only `sent` bytes arrive."""
    first = int(headers["range"][6:].split("-")[0]) if "range" in headers else 0
    status = "206 Partial Content" if "range" in headers else "200 OK"
    body = CONTENT[first:]
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nETag: {etag}\r\nConnection: close\r\n"
    if first:
        head += f"Content-Range: bytes {first}-{len(CONTENT) - 1}/{len(CONTENT)}\r\n"
    return head.encode() + b"\r\n" + body[:sent]


async def patient(seconds: float) -> None:
    await asyncio.sleep(0)


def test_a_read_that_breaks_goes_on_in_the_same_version() -> None:
    async def act() -> None:
        asked: list[str] = []

        def answer(headers: dict[str, str], count: int) -> bytes:
            asked.append(headers.get("if-match", ""))
            return whole(headers, '"v1"', 300_000)

        async with broken(answer) as base:
            fs = at(base, index="none")
            got = b"".join([block async for block in Retry(fs, sleep=patient).read(P("/f"))])
            assert got == CONTENT and asked[0] == "" and set(asked[1:]) == {'"v1"'} and len(asked) >= 4
            await fs.close()

    asyncio.run(act())


@pytest.mark.parametrize("etag", ['"v2"', 'W/"v1"', ""])
def test_a_read_that_breaks_never_goes_on_in_another_version(etag: str) -> None:
    """Also when the server ignores the condition."""

    async def act() -> None:
        async with broken(lambda headers, count: whole(headers, '"v1"' if count == 1 else etag, 300_000)) as base:
            fs = at(base, index="none")
            with refused(errno.ESTALE):
                async for _ in Retry(fs, sleep=patient).read(P("/f")):
                    pass
            await fs.close()

    asyncio.run(act())


def test_a_read_without_a_version_that_breaks_is_an_error() -> None:
    async def act() -> None:
        async with broken(lambda headers, count: whole(headers, "", 300_000)) as base:
            fs = at(base, index="none")
            with pytest.raises(Unavailable):
                async for _ in Retry(fs, sleep=patient).read(P("/f")):
                    pass
            await fs.close()

    asyncio.run(act())


@pytest.mark.parametrize(("asked", "waits"), [("7", 7.0), ("0", 0.1), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.1)])
def test_a_server_that_asks_for_patience_gets_it(asked: str, waits: float) -> None:
    async def act() -> None:
        def answer(headers: dict[str, str], count: int) -> bytes:
            if count == 1:
                return f"HTTP/1.1 429 Too Many Requests\r\nRetry-After: {asked}\r\nContent-Length: 0\r\n\r\n".encode()
            return whole(headers, '"v1"', len(CONTENT) if headers["method"] == "GET" else 0)

        pauses: list[float] = []

        async def sleep(seconds: float) -> None:
            pauses.append(seconds)

        async with broken(answer) as base:
            fs = at(base, index="none")
            assert (await Retry(fs, sleep=sleep, jitter=lambda: 1.0).stat(P("/f"))).size == len(CONTENT)
            assert pauses == [waits]
            await fs.close()

    asyncio.run(act())


def test_a_server_that_answers_no_head_is_asked_for_a_byte() -> None:
    def answer(headers: dict[str, str], count: int) -> bytes:
        if headers["method"] == "HEAD":
            return b"HTTP/1.1 405 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        assert headers["range"] == "bytes=0-0"
        return b"HTTP/1.1 206 P\r\nContent-Range: bytes 0-0/12345\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx"

    async def act() -> None:
        async with broken(answer) as base:
            fs = at(base, index="none")
            assert (await fs.stat(P("/f"))).size == 12345
            await fs.close()

    asyncio.run(act())


LIES = {
    "another range": b"HTTP/1.1 206 P\r\nContent-Range: bytes 0-3/9\r\nContent-Length: 4\r\n\r\nabcd",
    "no HTTP at all": b"SSH-2.0-OpenSSH_9.2\r\n",
    "nothing": b"",
}


@pytest.mark.parametrize("name", LIES)
def test_nonsense_is_an_error(name: str) -> None:
    async def act() -> None:
        async with broken(lambda headers, count: LIES[name]) as base:
            fs = at(base, index="none")
            with pytest.raises(Unavailable):
                async for _ in fs.read(P("/f"), 2, 4):
                    pass
            await fs.close()

    asyncio.run(act())
