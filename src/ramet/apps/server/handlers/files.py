"""Files over HTTP: ranges, ETags, preconditions, streaming. All access goes through a session.

Paths are query parameters, because proxies and clients normalize `..` in URL paths.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ramet.apps.server import models
from ramet.apps.server.problems import Refusal
from ramet.apps.server.request import Call, Reply, answer, decode_json
from ramet.apps.server.serialize import etag_of, file_stat
from ramet.core import ops
from ramet.core.errors import fail
from ramet.core.paths import Path, parse
from ramet.core.resource import How
from ramet.core.stat import Attrs, Stat
from ramet.store.checkout.lazy_tree import LazyBlocks
from ramet.store.checkout.walk import not_a_file
from ramet.store.model.trees import FILE
from ramet.workspace.session_fs import SessionFS

if TYPE_CHECKING:
    from ramet.apps.server.api import Api
    from ramet.apps.server.open_workspaces import OpenWorkspace

BYTES: Final = (b"content-type", b"application/octet-stream")
RANGE: Final = re.compile(r"bytes=(\d{0,19})-(\d{0,19})")
PIECE: Final = 1 << 18


def _view(hosted: OpenWorkspace, session: str) -> SessionFS:
    return hosted.ws.get_session(session).fs


def _path(hosted: OpenWorkspace, text: str, session: str) -> Path:
    return parse(text, hosted.ws.get_session(session).cwd)


# ----------------------------------------------------------------------------------------------------- reading


async def read(api: Api, call: Call) -> Reply:
    asked = call.query(models.ReadQuery)
    if asked.revision is not None:
        return await _read_revision(api, call, asked)
    hosted = await api.workspaces.enter(call.parts[0])
    handed_over = False
    try:
        fs, path = _view(hosted, asked.session), _path(hosted, asked.path, asked.session)
        stat = await fs.stat(path, follow=True)
        if stat.is_dir:
            raise fail(21, path)
        tag = etag_of(stat, hosted.nonce)
        headers = [BYTES, (b"accept-ranges", b"bytes" if stat.size is not None else b"none")]
        if tag is not None:
            headers.append((b"etag", tag.encode()))
            if _matches(call.header(b"if-none-match"), tag):
                return Reply(status=304, headers=headers)
        wanted = call.header(b"if-match")
        if wanted is not None and not _matches(wanted, tag):
            raise Refusal("precondition_failed", f"{path} is not at that version", "read it again")
        start, stop, status = _range(call, stat.size, tag)
        if stat.size is not None:
            headers.append((b"content-length", str(stop - start).encode()))
            if status == 206:
                headers.append((b"content-range", f"bytes {start}-{stop - 1}/{stat.size}".encode()))
        if call.scope["method"] == "HEAD":
            return Reply(status=status, headers=headers)
        if stat.size is not None and stop - start <= PIECE and status != 206:
            data = await fs.read_bytes(path)
            if len(data) == stat.size:
                return Reply(data, status, headers)
        handed_over = True
        return Reply(status=status, headers=headers, blocks=_blocks(hosted, fs, path, stat, start, stop))
    finally:
        if not handed_over:
            hosted.leave()


def _range(call: Call, size: int | None, tag: str | None) -> tuple[int, int, int]:
    """Return the range to send and the status; a Range with several ranges is ignored, as HTTP allows."""
    if size is None:
        return 0, 0, 200
    text = call.header(b"range")
    matched = RANGE.fullmatch(text.strip()) if text is not None else None
    condition = call.header(b"if-range")
    if matched is None or matched[0] == "bytes=-" or (condition is not None and condition != tag):
        return 0, size, 200
    if not matched[1]:
        start, stop = max(0, size - int(matched[2])), size
    else:
        start = int(matched[1])
        stop = min(size, int(matched[2]) + 1) if matched[2] else size
        if matched[2] and int(matched[2]) < start:
            return 0, size, 200
    if start >= stop:
        raise Refusal(
            "invalid_argument", f"range beyond the file's {size} bytes", "request a smaller range", status=416,
            headers={"content-range": f"bytes */{size}"},
        )  # fmt: skip
    return start, stop, 206


async def _blocks(
    hosted: OpenWorkspace, fs: SessionFS, path: Path, stat: Stat, start: int, stop: int
) -> AsyncIterator[bytes]:
    """Stream exactly Content-Length bytes; a file that shrinks meanwhile aborts the connection."""
    left = stop - start
    try:
        async for block in fs.read(path, start, stop if stat.size is not None else None):
            piece = block if stat.size is None else block[:left]
            left -= len(piece)
            for at in range(0, len(piece), PIECE):
                yield piece[at : at + PIECE]
        if stat.size is not None and left > 0:
            raise ConnectionAbortedError("the file shrank while it was sent")
    finally:
        hosted.leave()


async def _read_revision(api: Api, call: Call, asked: models.ReadQuery) -> Reply:
    handle, repository = api.handle(call), api.workspaces.need_store().repository

    def found() -> tuple[LazyBlocks, str]:
        revision, path = handle().find(asked.revision), str(parse(asked.path))
        node = repository.node(revision, path)
        if node.kind != FILE:
            raise not_a_file(revision, path)
        digest = hashlib.sha256(b"%d " % node.size + node.payload).hexdigest()[:32]
        return LazyBlocks(node.chunks, node.size, repository.packs), digest

    content, digest = await api.workspaces.blocking(found)
    tag = f'"{digest}"'  # digest of its chunk ids: equal digests mean equal bytes
    headers = [BYTES, (b"accept-ranges", b"bytes"), (b"etag", tag.encode())]
    if _matches(call.header(b"if-none-match"), tag):
        return Reply(status=304, headers=headers)
    start, stop, status = _range(call, content.size, tag)
    headers.append((b"content-length", str(stop - start).encode()))
    if status == 206:
        headers.append((b"content-range", f"bytes {start}-{stop - 1}/{content.size}".encode()))
    if call.scope["method"] == "HEAD":
        return Reply(status=status, headers=headers)
    return Reply(status=status, headers=headers, blocks=blocks_of(api, content.read(start, stop)))


async def blocks_of(api: Api, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Stream blocks of the store, fetched in a thread."""
    while (piece := await api.workspaces.blocking(next, pieces, None)) is not None:
        yield piece


def _matches(header: str | None, tag: str | None) -> bool:
    """Return whether a list of ETags contains this one; `*` matches any existing version."""
    if header is None or tag is None:
        return header is not None and header.strip() == "*"
    given = [part.strip().removeprefix("W/") for part in header.split(",")]
    return "*" in given or tag in given


async def stat(api: Api, call: Call) -> Reply:
    asked = call.query(models.StatQuery)
    async with api.seeing(call, asked.revision) as hosted:
        path = _path(hosted, asked.path, asked.session)
        found = await _view(hosted, asked.session).stat(path, follow=asked.follow)
        return answer(_stat_model(hosted, path, found, asked.revision))


def _stat_model(hosted: OpenWorkspace, path: Path, stat: Stat, revision: str | None) -> models.FileStat:
    """Serialize attributes; on a revision, omit versions that are valid for this request only."""
    found = file_stat(str(path), stat, hosted.nonce)
    return found if revision is None else replace(found, etag=None)


async def listing(api: Api, call: Call) -> Reply:
    asked = call.query(models.ListQuery)
    async with api.seeing(call, asked.revision) as hosted:
        path = _path(hosted, asked.path, asked.session)
        fs = _view(hosted, asked.session)
        found = sorted(await fs.entries(path))
        return answer(
            models.Listing(str(path), [_stat_model(hosted, path / name, s, asked.revision) for name, s in found])
        )


# ----------------------------------------------------------------------------------------------------- changing


async def write(api: Api, call: Call) -> Reply:
    asked = call.query(models.WriteQuery)
    async with api.using(call) as hosted:
        fs, path = _view(hosted, asked.session), _path(hosted, asked.path, asked.session)
        how = How.APPEND if asked.append else How.REPLACE
        if call.header(b"if-none-match") is not None:
            if call.header(b"if-none-match") != "*" or asked.append:
                raise Refusal("invalid_argument", "If-None-Match must be * and excludes append", "omit append")
            how = How.CREATE
        version = await _precondition(call, hosted, fs, path)
        blocks = call.blocks(api.settings.bounds.upload_bytes)
        with hosted.ws.recording("write", f"write {path}", session_id=asked.session):
            try:
                if asked.parents:
                    await ops.make_dirs(fs, path.parent)
                await fs.write(path, blocks, how, if_version=version)
            except FileExistsError:
                if how is How.CREATE:
                    raise Refusal("precondition_failed", f"{path} exists", "omit If-None-Match") from None
                raise
            finally:
                await blocks.aclose()  # type: ignore[attr-defined]
        await api.changed(hosted, f"write {path}")
        found = await fs.stat(path, follow=True)
        tag = etag_of(found, hosted.nonce)
        return answer(file_stat(str(path), found, hosted.nonce), headers=[(b"etag", tag.encode())] if tag else [])


async def _precondition(call: Call, hosted: OpenWorkspace, fs: SessionFS, path: Path) -> str | None:
    """Return the version that If-Match requires; the write checks it again."""
    wanted = call.header(b"if-match")
    if wanted is None:
        return None
    try:
        found = await fs.stat(path, follow=True)
    except FileNotFoundError:
        found = None
    tag = None if found is None else etag_of(found, hosted.nonce)
    if found is None or not _matches(wanted, tag):
        raise Refusal("precondition_failed", f"{path} is not at that version", "read it again and repeat")
    return found.version


async def remove(api: Api, call: Call) -> Reply:
    asked = call.query(models.RemoveQuery)
    async with api.using(call) as hosted:
        fs, path = _view(hosted, asked.session), _path(hosted, asked.path, asked.session)
        await _precondition(call, hosted, fs, path)
        with hosted.ws.recording("write", f"remove {path}", session_id=asked.session):
            await (ops.remove_tree(fs, path) if asked.recursive else fs.remove(path))
        await api.changed(hosted, f"remove {path}")
        return answer(models.Done())


async def set_attributes(api: Api, call: Call) -> Reply:
    asked = call.query(models.PathQuery)
    given = decode_json(await call.body(api.settings.bounds.json_bytes), models.SetAttributes)
    async with api.using(call) as hosted:
        fs, path = _view(hosted, asked.session), _path(hosted, asked.path, asked.session)
        await fs.setattr(path, Attrs(given.mode, given.mtime_ns, given.size, atime_ns=given.atime_ns))
        await api.changed(hosted, f"set attributes of {path}")
        return answer(file_stat(str(path), await fs.stat(path), hosted.nonce))


async def make_directory(api: Api, call: Call) -> Reply:
    asked = call.query(models.DirQuery)
    async with api.using(call) as hosted:
        fs, path = _view(hosted, asked.session), _path(hosted, asked.path, asked.session)
        with hosted.ws.recording("write", f"mkdir {path}", session_id=asked.session):
            await (ops.make_dirs(fs, path) if asked.parents else fs.mkdir(path))
        if asked.parents and not (await fs.stat(path, follow=True)).is_dir:
            raise fail(17, path)
        await api.changed(hosted, f"make directory {path}")
        return answer(file_stat(str(path), await fs.stat(path, follow=True), hosted.nonce))


async def move(api: Api, call: Call) -> Reply:
    return await _two(api, call, "move")


async def copy(api: Api, call: Call) -> Reply:
    return await _two(api, call, "copy")


async def _two(api: Api, call: Call, verb: str) -> Reply:
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), models.Move)
    async with api.using(call) as hosted:
        fs = _view(hosted, asked.session)
        source, target = _path(hosted, asked.source, asked.session), _path(hosted, asked.target, asked.session)
        with hosted.ws.recording("write", f"{verb} {source} {target}", session_id=asked.session):
            if verb == "move":
                await fs.rename(source, target)
            elif (await fs.stat(source)).is_dir:
                if target.under(source):
                    raise fail(22, target)
                await ops.copy_tree(fs, source, fs, target)
            else:
                await ops.copy_file(fs, source, fs, target, await fs.stat(source))
        await api.changed(hosted, f"{verb} {source} to {target}")
        return answer(file_stat(str(target), await fs.stat(target), hosted.nonce))


async def link(api: Api, call: Call) -> Reply:
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), models.Link)
    async with api.using(call) as hosted:
        fs, path = _view(hosted, asked.session), _path(hosted, asked.path, asked.session)
        if "\0" in asked.target:
            raise fail(22, path)
        await fs.write(path, asked.target.encode("utf-8", "surrogateescape"), How.LINK)
        await api.changed(hosted, f"link {path}")
        return answer(file_stat(str(path), await fs.stat(path), hosted.nonce), 201)
