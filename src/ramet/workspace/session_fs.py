"""`SessionFS`: the file tree of one session, with policy, permissions and recording.

Operations on memory never suspend, so the session yields to the event loop after each time slice.
"""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import repeat
from typing import Any

from ramet.core.errors import LimitExceeded, fail, strerror
from ramet.core.fs import Lending, Open, Power
from ramet.core.limits import DEFAULT_LIMITS, Budget, Limits
from ramet.core.paths import ROOT, Path, parse
from ramet.core.resource import Cap, Data, How, Queryable, Whole
from ramet.core.stat import Attrs, Stat
from ramet.core.streams import FileStream, closing
from ramet.vfs.open_files import CountedStream
from ramet.vfs.vfs import VFS
from ramet.workspace.permissions import READ, Permissions
from ramet.workspace.policy import Policy, Request, Verdict
from ramet.workspace.record.history import OperationRecord
from ramet.workspace.record.recorder import OpenRecord, Recorder


class SessionFS(Whole, Lending):
    """A FileSystem. `agent_id` is set for the time of one execution."""

    def __init__(
        self,
        vfs: VFS,
        session_id: str,
        recorder: Recorder,
        policy: Policy | None,
        uid: int,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._vfs, self._recorder, self._policy = vfs, recorder, policy
        self._history, self._secrets, self._now = recorder.history, recorder.secrets, recorder.clock
        self._may = Permissions(vfs, uid)
        self.session_id = session_id
        self.agent_id = ""
        self._whole = limits.whole
        self._asks = policy is not None and policy.watches_files
        self._hides = policy is not None and policy.hides
        self._slice_end = 0.0

    @property
    def caps(self) -> Cap:
        return self._vfs.caps

    def mount_of(self, path: Path) -> Path:
        return self._vfs.mount_of(path)

    def start(self, agent_id: str) -> None:
        """Start an execution."""
        self.agent_id = agent_id
        self._slice_end = time.monotonic() + Budget.SLICE

    # ------------------------------------------------------------------------------------------- recording

    async def _turn(self) -> None:
        """Yield the event loop if the time slice is over: what cancels an execution then arrives."""
        if time.monotonic() >= self._slice_end:
            await asyncio.sleep(0)
            self._slice_end = time.monotonic() + Budget.SLICE

    async def _ask(self, verb: str, path: Path, *, follow: bool = True) -> Path:
        """Check the policy before an operation, and yield after a time slice; returns where links lead."""
        await self._turn()
        if not self._asks or self._policy is None:
            return path
        await self._policy.check(self._request(verb, path))
        real = await self._real(path, follow=follow)
        if real != path:  # a link must not lead around a rule
            await self._policy.check(self._request(verb, real))
        return real

    def _request(self, verb: str, path: Path) -> Request:
        return Request("file", verb, path, self.session_id, self.agent_id)

    async def _real(self, path: Path, *, follow: bool) -> Path:
        try:
            if follow or path == ROOT:
                return await self._vfs.resolve(path, missing_ok=True)
            return await self._vfs.resolve(path.parent, missing_ok=True) / path.name
        except OSError:
            return path  # the operation fails in the same way

    def _visible(self, directory: Path, entries: list[tuple[str, Stat]]) -> list[tuple[str, Stat]]:
        """Remove entries that are hidden from this session."""
        if not self._hides or self._policy is None:
            return entries
        hidden = self._policy.hidden
        return [entry for entry in entries if not hidden(self._request("stat", directory / entry[0]))]

    def _note(self, verb: str, path: Path, read: int = 0, written: int = 0, error: int = 0) -> None:
        mount = self._vfs.mount_of(path)
        entry = self._recorder.current() if read or written else None
        if entry is not None:
            if read:
                entry.bytes_read[mount] += read
            if written:
                entry.bytes_written[mount] += written
        if self._policy is not None and self._policy.quotas and (read or written):
            self._policy.moved(Request("file", verb, path, self.session_id, self.agent_id), read + written)
        shown = self._secrets.scrub_text(path) if self._secrets else path
        what = strerror(error) if error else ""
        self._history.note(
            OperationRecord(self._now(), self.session_id, self.agent_id, verb, shown, mount, read + written, what)
        )

    def _record_failure(self, verb: str, path: Path, error: OSError) -> OSError:
        self._note(verb, path, error=error.errno or errno.EIO)
        return error

    def _recorded(self, what: str) -> AbstractContextManager[OpenRecord | None]:
        """Make a change outside of a command a separate record."""
        if self._recorder.current() is not None:
            return nullcontext()
        return self._recorder.recording("write", what, session_id=self.session_id)

    # ---------------------------------------------------------------------------------------------- verbs

    async def stat(self, path: Path, follow: bool = False) -> Stat:
        await self._ask("stat", path, follow=follow)
        await self._may.reach(path)
        return await self._vfs.stat(path, follow)

    async def resolve(self, path: Path, *, missing_ok: bool = False) -> Path:
        return await self._vfs.resolve(path, missing_ok=missing_ok)

    def named(self, text: str, cwd: Path) -> Path:
        # A path through a hidden directory must not reveal it.
        return parse(text, cwd) if self._hides else self._vfs.named(text, cwd)

    def lacks(self, path: Path) -> bool:
        # A policy must see each file.
        return not self._asks and not self._hides and self._vfs.lacks(path)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        directory = await self._ask("scan", path)
        await self._may.check(path, READ)
        async with closing(self._vfs.scan(path)) as entries:
            async for entry in entries:
                if not self._hides or self._visible(directory, [entry]):
                    yield entry
        self._note("scan", path)

    async def entries(self, path: Path) -> list[tuple[str, Stat]]:
        directory = await self._ask("scan", path)
        await self._may.check(path, READ)
        found = self._visible(directory, await self._vfs.entries(path))
        self._note("scan", path)
        return found

    async def kinds(self, path: Path) -> list[tuple[str, Stat]]:
        directory = await self._ask("scan", path)
        await self._may.check(path, READ)
        found = self._visible(directory, await self._vfs.kinds(path))
        self._note("scan", path)
        return found

    async def read_bytes(self, path: Path) -> bytes:
        await self._ask("read", path)
        try:
            await self._may.reach(path)
            data = await self._vfs.read_bytes(path, self._may.bits(READ), self._whole)
        except OSError as error:
            self._record_failure("read", path, error)
            if error.errno == errno.EFBIG:
                raise LimitExceeded("whole_bytes", self._whole, str(path)) from None
            raise error from None
        self._note("read", path, read=len(data))
        return data

    async def small_files(self, directory: Path, names: Sequence[str]) -> list[bytes | None]:
        """Returns None for all files when a policy must see each of them."""
        if self._asks or (self._policy is not None and self._policy.quotas):
            return [None] * len(names)
        try:
            await self._may.inside(directory)
        except OSError:
            return [None] * len(names)  # reading each file reports the error
        found = await self._vfs.small_files(directory, names, self._may.bits(READ))
        read = [(name, len(data)) for name, data in zip(names, found, strict=True) if data is not None]
        entry = self._recorder.current()
        if entry is not None and read:
            entry.bytes_read[self._vfs.mount_of(directory)] += sum(size for _, size in read)
        self._note_all("read", directory, read)
        return found

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        await self._ask("read", path)
        total = 0
        try:
            await self._may.check(path, READ)
            async with closing(self._vfs.read(path, start, stop)) as blocks:
                async for block in blocks:
                    total += len(block)
                    await self._turn()
                    yield block
        except OSError as error:
            raise self._record_failure("read", path, error) from None
        finally:
            self._note("read", path, read=total)

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        await self._ask("write", path, follow=how not in (How.CREATE, How.LINK))
        counter = _ByteCounter()
        content: Data = data if isinstance(data, bytes) else counter.count(data)
        with self._recorded(f"write {path}") as alone:
            try:
                await (self._may.entry(path) if how in (How.CREATE, How.LINK) else self._may.written(path))
                stat = await self._vfs.write(path, content, how, at=at, if_version=if_version)
            except OSError as error:
                raise self._record_failure("write", path, error) from None
            size = len(data) if isinstance(data, bytes) else counter.size
            self._note("write", path, written=size)
            if alone is not None:
                alone.command = f"write {path} ({size} bytes)"
        return stat

    async def mkdir(self, path: Path) -> None:
        await self._change("mkdir", path, lambda: self._vfs.mkdir(path), self._may.entry(path))

    async def remove(self, path: Path) -> None:
        await self._change("remove", path, lambda: self._vfs.remove(path), self._may.entry(path))

    async def rename(self, src: Path, dst: Path) -> None:
        await self._ask("write", dst, follow=False)
        await self._check_move(src)
        await self._may.entry(dst)
        await self._change("rename", src, lambda: self._vfs.rename(src, dst), self._may.entry(src), dst)

    async def _check_move(self, path: Path) -> None:
        """Refuse to move a directory away under a rule that names something in it."""
        if not self._asks or self._policy is None:
            return
        real = await self._real(path, follow=False)
        if self._policy.binds(self._request("rename", real)) and (await self._vfs.stat(path)).is_dir:
            raise fail(errno.EACCES, path, "Permission denied: the policy has a rule for something in this directory")

    async def copy(self, src: Path, dst: Path) -> None:
        await self._ask("read", src)
        await self._may.check(src, READ)
        await self._change("copy", dst, lambda: self._vfs.copy(src, dst), self._may.written(dst), src)

    async def copy_files(self, src: Path, dst: Path, names: Sequence[str]) -> int:
        if not names or self._asks:
            return 0
        try:
            await self._may.inside(src)
            await self._may.entry(dst / names[0])
        except OSError:
            return 0  # copying each file reports the error
        with self._recorded(f"copy {len(names)} files of {src} to {dst}"):
            done = self._vfs.copy_files_now(src, dst, names, self._may.bits(READ))
        self._note_all("copy", dst, zip(names[:done], repeat(0)))
        return done

    async def remove_files(self, directory: Path, names: Sequence[str]) -> int:
        if not names or self._asks:
            return 0
        try:
            await self._may.entry(directory / names[0])
        except OSError:
            return 0
        with self._recorded(f"remove {len(names)} files of {directory}"):
            done = self._vfs.remove_files_now(directory, names)
        self._note_all("remove", directory, zip(names[:done], repeat(0)))
        return done

    async def note_copy(self, src: Path, dst: Path) -> None:
        if self._recorder.ledger is not None:
            self._recorder.copied(await self._vfs.resolve(src), await self._vfs.resolve(dst), None)

    def _note_all(self, verb: str, directory: Path, files: Iterable[tuple[str, int]]) -> None:
        """Record one operation for each of these files, with its bytes."""
        mount, now, session, agent = self._vfs.mount_of(directory), self._now(), self.session_id, self.agent_id
        top = "/" if directory == ROOT else f"{directory}/"
        if self._secrets:
            scrub = self._secrets.scrub_text
            files = [(scrub(top + name), size) for name, size in files]
            top = ""
        self._history.note_all(
            [OperationRecord(now, session, agent, verb, top + name, mount, size, "") for name, size in files]
        )

    async def setattr(self, path: Path, attrs: Attrs) -> None:
        may = self._may.reach(path) if attrs.size is None and attrs != Attrs() else self._may.written(path)
        await self._change("setattr", path, lambda: self._vfs.setattr(path, attrs), may)

    async def link(self, src: Path, dst: Path) -> None:
        await self._ask("read", src, follow=False)
        await self._ask("write", src, follow=False)  # the new name must not be a way to write it
        await self._change("link", dst, lambda: self._vfs.link(src, dst), self._may.entry(dst))

    async def mkfifo(self, path: Path) -> None:
        await self._change("mkfifo", path, lambda: self._vfs.mkfifo(path), self._may.entry(path))

    async def _change(
        self,
        verb: str,
        path: Path,
        act: Callable[[], Awaitable[None]],
        may: Coroutine[Any, Any, None],
        other: Path | None = None,
    ) -> None:
        try:
            await self._ask(verb, path, follow=verb in ("copy", "setattr"))
        except BaseException:
            may.close()
            raise
        with self._recorded(f"{verb} {path}" if other is None else f"{verb} {path} {other}"):
            try:
                await may
                await act()
            except OSError as error:
                raise self._record_failure(verb, path, error) from None
            self._note(verb, path)

    async def open(self, path: Path, how: Open = Open.READ) -> FileStream:
        verb = "write" if how & Open.WRITE else "open-read"
        real = await self._ask(verb, path)
        try:
            if how & Open.READ:
                await self._may.check(path, READ)
            if how & Open.WRITE:
                await self._may.written(path)
            with self._recorded(f"write {path}"):
                stream = await self._vfs.open(path, how)
        except OSError as error:
            raise self._record_failure("open", path, error) from None
        stream.lendable = not self._asks or self._free(real)
        if isinstance(stream, CountedStream):
            name = "write" if how & Open.WRITE else "read"
            stream.on_close = lambda read, written: self._note(name, path, read, written)
        return stream

    def _free(self, path: Path) -> bool:
        """Whether the policy lets this session read and write a path, without a question."""
        requests = (self._request(verb, path) for verb in ("open-read", "write"))
        return self._policy is None or all(self._policy.verdict(one)[0] is Verdict.ALLOW for one in requests)

    async def power(self, path: Path, kind: type[Power], *, write: bool = False) -> tuple[Power, Path] | None:
        await self._ask("write" if write else "read", path)
        await self._may.reach(path)
        found = await self._vfs.power(path, kind, write=write)
        if found is not None and self._asks and self._policy is not None and isinstance(found[0], Queryable):
            request = Request("file", "write" if write else "read", path, self.session_id, self.agent_id)
            if self._policy.narrows(request, self._vfs.mount_of(path)):
                why = "Permission denied: the policy narrows paths of this mount, and a query would pass it by"
                raise fail(errno.EACCES, path, why)
        if found is not None:
            self._note("change" if write else "query", path)
        return found

    def changed(self, path: Path) -> None:
        self._vfs.changed(path)

    async def sieve(self, top: Path, text: str, *, fold: bool = False) -> Callable[[Path], bool] | None:
        return await self._vfs.sieve(top, text, fold=fold)

    async def close(self) -> None:
        raise fail(errno.EINVAL, None, "a session does not own the tree it sees")


class _ByteCounter:
    __slots__ = ("size",)

    def __init__(self) -> None:
        self.size = 0

    async def count(self, data: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for block in data:
            self.size += len(block)
            yield block
