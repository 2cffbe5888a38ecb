"""`SSHResource`: a directory on another machine, by SFTP. The host's key is checked; credentials are named, not kept.

Rules that this file keeps:
- Content appears whole: it is written under a temporary name and renamed by the server.
- A link is never crossed: the server would follow it, perhaps out of the directory, so a path whose parent is not what
  it says is ELOOP and the workspace resolves it.
- SFTP says "failure" for many things; what it was is found out by looking.
"""

from __future__ import annotations

import asyncio
import errno
import os
import stat as modes
import time
import uuid
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass, fields
from typing import Any, Final, TypeVar

from ramet.backends.redacted_urls import secret_from, unreached
from ramet.core.errors import Unavailable, fail, missing_extra, wrong_type
from ramet.core.paths import Path, decode, encode
from ramet.core.resource import Cap, Data, Description, How
from ramet.core.stat import Attrs, Kind, Stat

T = TypeVar("T")
BLOCK: Final = 1 << 20
TEMPORARY: Final = ".ramet-"
"""What a content is called while it is on its way."""
PLAIN_SECONDS: Final = 2.0
"""How long a directory that was reached without a link is taken for one."""
NFILES: Final = 10_000
NANO: Final = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class SSHConfig:
    """Which directory of which host. Keys come from files or the agent, a password from an environment variable."""

    host: str
    port: int = 22
    username: str | None = None
    root: str = "."
    known_hosts: str | None = None
    """A file of host keys; the user's own when not given."""
    client_keys: tuple[str, ...] = ()
    """Paths of private keys; the user's own and the agent's when not given."""
    password_env: str | None = None
    """The environment variable that holds the password."""
    verify_host: bool = True
    """Whether the host key must be known; without it the host can be impersonated."""
    ttl: float = 5.0
    """Seconds for which what was seen may be trusted."""
    timeout: float = 60.0
    """Seconds without a sign of life after which the host counts as unreachable."""


class SSHResource:
    """`SSHResource(SSHConfig(host="build.example", username="ci", root="/srv/data"))`."""

    caps = (
        Cap.WRITE | Cap.RANGES | Cap.CREATE | Cap.APPEND | Cap.PATCH | Cap.RENAME | Cap.LINKS | Cap.MODES | Cap.MTIMES
        | Cap.ATIMES | Cap.TRUNCATE | Cap.DIRS
    )  # fmt: skip

    def __init__(self, config: SSHConfig) -> None:
        if not isinstance(config, SSHConfig):
            raise wrong_type("the configuration of SSHResource", config, "Pass a SSHConfig.")
        self.config = config
        self._connections: dict[asyncio.AbstractEventLoop, tuple[Any, Any, bytes]] = {}
        self._lock: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}
        self._plain: dict[Path, float] = {}
        self._litter: set[bytes] = set()
        """Contents that were on their way when a connection broke: the next one takes them away."""

    def __repr__(self) -> str:
        return f"SSHResource({self.config.host!r}, {self.config.root!r})"

    def describe(self) -> Description:
        plain = {field.name: getattr(self.config, field.name) for field in fields(self.config)}
        plain["client_keys"] = []  # paths of keys are of no use on another machine
        return Description("ssh", plain, ("client_keys",) if self.config.client_keys else (), needs_override=False)

    # --------------------------------------------------------------------------------------------- connection

    async def _sftp(self) -> tuple[Any, bytes]:
        """The client of the running loop, connected when that is needed, and the root as the host sees it."""
        loop = asyncio.get_running_loop()
        lock = self._lock.setdefault(loop, asyncio.Lock())
        async with lock:
            found = self._connections.get(loop)
            if found is None or found[0].is_closed():
                found = self._connections[loop] = await self._connect()
        return found[1], found[2]

    async def _connect(self) -> tuple[Any, Any, bytes]:
        try:
            import asyncssh
        except ModuleNotFoundError:
            raise missing_extra("ssh", "a mount by SSH") from None

        config = self.config
        options: dict[str, Any] = {
            "port": config.port, "keepalive_interval": config.timeout / 4, "keepalive_count_max": 3,
            "login_timeout": min(20.0, config.timeout), "connect_timeout": min(20.0, config.timeout),
        }  # fmt: skip
        if config.username is not None:
            options["username"] = config.username
        if not config.verify_host:
            options["known_hosts"] = None
        elif config.known_hosts is not None:
            options["known_hosts"] = _own(config.known_hosts)
        if config.client_keys:
            options["client_keys"] = [_own(key) for key in config.client_keys]
        if config.password_env is not None:
            options["password"] = secret_from(config.password_env)
        connection = None
        try:
            connection = await asyncssh.connect(config.host, **options)
            async with asyncio.timeout(config.timeout):
                sftp = await connection.start_sftp_client(path_encoding=None)
                root = await sftp.realpath(encode(config.root))
                if not modes.S_ISDIR((await sftp.stat(root)).permissions or 0):
                    raise fail(errno.ENOTDIR, None, f"{config.root} of {config.host} is not a directory")
                await self._tidy(sftp)
            made, connection = connection, None
            return made, sftp, root
        except asyncssh.HostKeyNotVerifiable:
            message = f"Permission denied: the key of {config.host} is not known; add it to known_hosts"
            raise fail(errno.EACCES, None, message) from None
        except asyncssh.PermissionDenied:
            raise fail(errno.EACCES, None, f"Permission denied: {config.host} refuses these credentials") from None
        except asyncssh.SFTPNoSuchFile:
            raise fail(errno.ENOENT, config.root, f"{config.host} has no directory {config.root}") from None
        except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError, FileNotFoundError) as error:
            text = f"Permission denied: a file of keys for {config.host} cannot be used: {error}"
            raise fail(errno.EACCES, None, text) from None
        except NotADirectoryError:
            raise
        except (OSError, asyncssh.Error) as error:
            raise unreached(None, f"{config.host}:{config.port}", error) from None
        finally:
            if connection is not None:
                connection.abort()

    async def _tidy(self, sftp: Any) -> None:
        while self._litter:
            await self._discard(sftp, self._litter.pop())

    async def _ask(self, path: Path, request: Awaitable[T]) -> T:
        import asyncssh

        try:
            return await request
        except asyncssh.SFTPNoSuchFile:
            raise fail(errno.ENOENT, path) from None
        except asyncssh.SFTPPermissionDenied:
            raise fail(errno.EACCES, path) from None
        except (asyncssh.Error, ConnectionError) as error:
            if isinstance(error, asyncssh.SFTPError) and not isinstance(
                error, asyncssh.SFTPConnectionLost | asyncssh.SFTPNoConnection
            ):
                if isinstance(error, asyncssh.SFTPOpUnsupported):
                    raise fail(errno.ENOTSUP, path) from None
                raise fail(errno.EIO, path, str(error) or "failure") from None
            raise unreached(path, f"{self.config.host}:{self.config.port}", error) from None

    async def _at(self, path: Path) -> tuple[Any, bytes]:
        """The client and the full name of `path`, once it is sure that no link lies on the way."""
        sftp, root = await self._sftp()
        parent = path.parent
        if len(parent) > 1 and self._plain.get(parent, 0.0) < time.monotonic():
            wanted = _joined(root, parent)
            found = await self._ask(path, sftp.realpath(wanted))
            if found != wanted:
                raise fail(errno.ELOOP, path)
            if not modes.S_ISDIR((await self._ask(path, sftp.lstat(wanted))).permissions or 0):
                raise fail(errno.ENOTDIR, path)
            if len(self._plain) > NFILES:
                self._plain.clear()
            self._plain[parent] = time.monotonic() + PLAIN_SECONDS
        return sftp, _joined(root, path)

    # ---------------------------------------------------------------------------------------------- looking

    async def stat(self, path: Path) -> Stat:
        sftp, name = await self._at(path)
        return await self._stat(sftp, name, path)

    async def _stat(self, sftp: Any, name: bytes, path: Path) -> Stat:
        attrs = await self._ask(path, sftp.lstat(name))
        target = None
        if modes.S_ISLNK(attrs.permissions or 0):
            target = decode(await self._ask(path, sftp.readlink(name)))
        return self._as_stat(attrs, target)

    def _as_stat(self, attrs: Any, target: str | None) -> Stat:
        mode = attrs.permissions or 0
        kind = _KINDS.get(modes.S_IFMT(mode), Kind.DEVICE)
        mtime = None if attrs.mtime is None else attrs.mtime * NANO + (attrs.mtime_ns or 0)
        size = attrs.size if kind is not Kind.LINK or target is None else len(encode(target))
        atime = None if attrs.atime is None else attrs.atime * NANO + (attrs.atime_ns or 0)
        return Stat(kind, size, mtime, None, self.config.ttl, modes.S_IMODE(mode), target, atime_ns=atime)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        sftp, name = await self._at(path)
        here = await self._stat(sftp, name, path)
        if here.kind is not Kind.DIR:
            raise fail(errno.ELOOP if here.kind is Kind.LINK else errno.ENOTDIR, path)
        for entry in await self._ask(path, sftp.readdir(name)):
            if entry.filename in (b".", b"..") or entry.filename.startswith(TEMPORARY.encode()):
                continue
            target = None
            if modes.S_ISLNK(entry.attrs.permissions or 0):
                target = decode(await self._ask(path, sftp.readlink(name + b"/" + entry.filename)))
            yield decode(entry.filename), self._as_stat(entry.attrs, target)

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        sftp, name = await self._at(path)
        stat = await self._stat(sftp, name, path)
        self._need_file(stat, path)
        if stat.size:  # files that the system makes up say 0; of others nothing is asked beyond the end
            stop = stat.size if stop is None else min(stop, stat.size)
        file = await self._ask(path, sftp.open(name, "rb"))
        try:
            while stop is None or start < stop:
                size = BLOCK if stop is None else min(BLOCK, stop - start)
                block = await self._ask(path, file.read(size, start))  # asyncssh keeps many requests in flight for it
                if not block:
                    return
                start += len(block)
                yield block
        finally:
            await self._close(file)

    @staticmethod
    async def _close(file: Any) -> None:
        import asyncssh

        try:
            await file.close()
        except (asyncssh.Error, OSError):
            return  # the connection is gone, and the file with it

    @staticmethod
    def _need_file(stat: Stat, path: Path) -> None:
        if stat.kind is not Kind.FILE:
            numbers = {Kind.DIR: errno.EISDIR, Kind.LINK: errno.ELOOP}
            raise fail(numbers.get(stat.kind, errno.ENXIO), path)

    # --------------------------------------------------------------------------------------------- changing

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        if len(path) == 1:
            raise fail(errno.EISDIR, path)
        sftp, name = await self._at(path)
        found = await self._found(sftp, name, path)
        if found is not None and how in (How.CREATE, How.LINK):
            raise fail(errno.EEXIST, path)
        if found is not None:
            self._need_file(found, path)
        if how is How.LINK:
            target = data if isinstance(data, bytes) else b"".join([block async for block in data])
            await self._create(path, sftp, name, sftp.symlink(target, name))
        elif how in (How.APPEND, How.PATCH) and (found is not None or how is How.PATCH):
            if found is None:
                raise fail(errno.ENOENT, path)
            await self._change(sftp, name, path, data, found.size or 0 if how is How.APPEND else at)
        else:
            await self._put(sftp, name, path, data, found, how)
        return await self._stat(sftp, name, path)

    async def _found(self, sftp: Any, name: bytes, path: Path) -> Stat | None:
        try:
            return await self._stat(sftp, name, path)
        except FileNotFoundError:
            await self._parent_exists(sftp, name, path)
            return None

    async def _parent_exists(self, sftp: Any, name: bytes, path: Path) -> None:
        parent = await self._ask(path, sftp.lstat(name[: name.rfind(b"/")] or b"/"))
        if not modes.S_ISDIR(parent.permissions or 0):
            raise fail(errno.ENOTDIR, path)

    async def _put(self, sftp: Any, name: bytes, path: Path, data: Data, found: Stat | None, how: How) -> None:
        """Write the content under a temporary name, then rename it into place."""
        temporary = name[: name.rfind(b"/") + 1] + f"{TEMPORARY}{uuid.uuid4().hex}".encode()
        try:
            await self._change(sftp, temporary, path, data, 0, "xb")
            if found is not None and found.mode is not None:
                await self._ask(path, sftp.chmod(temporary, found.mode))
            if how is How.CREATE:  # a link is refused where something is; a rename would replace it
                await self._create(path, sftp, name, sftp.link(temporary, name))
                await self._ask(path, sftp.remove(temporary))
            else:
                await self._ask(path, sftp.posix_rename(temporary, name))
        except BaseException as error:
            if isinstance(error, Unavailable):
                self._litter.add(temporary)
            else:
                await self._discard(sftp, temporary)
            raise

    @staticmethod
    async def _discard(sftp: Any, name: bytes) -> None:
        import asyncssh

        try:
            await sftp.remove(name)
        except (asyncssh.Error, OSError):
            return  # it was never made, or the connection is gone

    async def _change(self, sftp: Any, name: bytes, path: Path, data: Data, at: int, mode: str = "r+b") -> None:
        file = await self._ask(path, sftp.open(name, mode))
        try:
            if isinstance(data, bytes):
                await self._ask(path, file.write(data, at))
            else:
                async for block in data:
                    await self._ask(path, file.write(block, at))
                    at += len(block)
        finally:
            await self._close(file)

    async def _create(self, path: Path, sftp: Any, name: bytes, request: Awaitable[None]) -> None:
        """A request that makes a name; a bare failure mostly means that something is there."""
        try:
            await self._ask(path, request)
        except OSError as error:
            if error.errno != errno.EIO or isinstance(error, Unavailable):
                raise
            if await self._found(sftp, name, path) is not None:
                raise fail(errno.EEXIST, path) from None
            raise

    async def mkdir(self, path: Path) -> None:
        if len(path) == 1:
            raise fail(errno.EEXIST, path)
        sftp, name = await self._at(path)
        await self._create(path, sftp, name, sftp.mkdir(name))

    async def remove(self, path: Path) -> None:
        if len(path) == 1:
            raise fail(errno.EBUSY, path)
        sftp, name = await self._at(path)
        if (await self._stat(sftp, name, path)).kind is not Kind.DIR:
            await self._ask(path, sftp.remove(name))
            return
        self._plain.clear()
        try:
            await self._ask(path, sftp.rmdir(name))
        except OSError as error:
            if error.errno != errno.EIO or isinstance(error, Unavailable):
                raise
            raise fail(errno.ENOTEMPTY, path) from None

    async def rename(self, src: Path, dst: Path) -> None:
        sftp, old = await self._at(src)
        stat = await self._stat(sftp, old, src)
        if src == dst:
            return
        if dst.under(src):
            raise fail(errno.EINVAL, dst)
        _, new = await self._at(dst)
        there = await self._found(sftp, new, dst)
        if there is not None and there.is_dir != stat.is_dir:
            raise fail(errno.EISDIR if there.is_dir else errno.ENOTDIR, dst)
        self._plain.clear()
        try:
            await self._ask(src, sftp.posix_rename(old, new))
        except OSError as error:
            if error.errno != errno.EIO or isinstance(error, Unavailable) or there is None:
                raise
            raise fail(errno.ENOTEMPTY, dst) from None

    async def copy(self, src: Path, dst: Path) -> None:
        raise fail(errno.ENOTSUP, src)

    async def setattr(self, path: Path, attrs: Attrs) -> None:
        import asyncssh

        sftp, name = await self._at(path)
        stat = await self._stat(sftp, name, path)
        if stat.kind is Kind.LINK or attrs == Attrs():
            return
        if attrs.size is not None:
            self._need_file(stat, path)
            await self._ask(path, sftp.truncate(name, attrs.size))
        if attrs.mode is not None:
            await self._ask(path, sftp.chmod(name, attrs.mode))
        if attrs.mtime_ns is not None or attrs.atime_ns is not None:
            # SFTP sets both times or none, and knows whole seconds only.
            modified = stat.mtime_ns if attrs.mtime_ns is None else attrs.mtime_ns
            used = stat.accessed_ns if attrs.atime_ns is None else attrs.atime_ns
            times = asyncssh.SFTPAttrs(atime=(used or 0) // NANO, mtime=(modified or 0) // NANO)
            await self._ask(path, sftp.setstat(name, times))

    async def close(self) -> None:
        for loop, (connection, sftp, _) in tuple(self._connections.items()):
            if loop is asyncio.get_running_loop():
                sftp.exit()
                connection.close()
                await connection.wait_closed()
            del self._connections[loop]


_KINDS: Final = {
    modes.S_IFREG: Kind.FILE, modes.S_IFDIR: Kind.DIR, modes.S_IFLNK: Kind.LINK, modes.S_IFIFO: Kind.FIFO,
    modes.S_IFSOCK: Kind.SOCKET,
}  # fmt: skip


def _own(path: str) -> str:
    """A path of this machine with `~` as the user's home."""
    return os.path.expanduser(path)


def _joined(root: bytes, path: Path) -> bytes:
    return root if len(path) == 1 else root.rstrip(b"/") + encode(path)
