"""`DriveIndex`: what is known of the folders of a Drive, kept fresh by change tokens.

Rules that this file keeps:
- A listing carries everything that a mount shows of a file: no request per entry.
- A walk asks for up to `PARENTS` folders at once: the second look at the same depth brings the neighbours along.
- When `ttl` has ended, one request for changes refreshes every folder of that drive; where there are none to be had,
  a folder is listed again.
"""

from __future__ import annotations

import asyncio
import errno
import re
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ramet.backends.file_names import as_name, fits
from ramet.backends.services.google.api import (
    EVERYWHERE,
    EXPORTS,
    FIELDS,
    FOLDER,
    SHORTCUT,
    SPREADSHEET,
    DriveFile,
    Export,
    drive_file,
    listed_files,
    quoted,
)
from ramet.backends.services.rest import Params, Rest
from ramet.concurrency.loop_local import LoopLocal
from ramet.core.errors import fail
from ramet.core.paths import Path, encode
from ramet.core.streams import closing

PARENTS: Final = 40
"""Folders that one request lists."""
MOST_FILES: Final = 50_000
"""Files that one mount remembers."""
_APP: Final = re.compile(r"application/vnd\.google-apps\.([a-z-]+)")
_NATIVE: Final = ".gsheet"


@dataclass
class _Folder:
    log: str | None
    """Whose changes tell about it: the user's (""), those of a shared drive, or none (None)."""
    depth: int = 0
    above: str = ""
    files: dict[str, DriveFile] | None = None
    until: float = 0.0
    names: dict[str, DriveFile] | None = None


@dataclass
class _Log:
    token: str | None
    until: float


class DriveIndex:
    def __init__(self, rest: Rest, ttl: float, export: str) -> None:
        self._rest, self._ttl, self._exports = rest, ttl, EXPORTS[export]
        self._folders: dict[str, _Folder] = {}
        self._listed: OrderedDict[str, None] = OrderedDict()
        """The folders whose files are known, those used last at the end."""
        self._count = 0
        self._logs: dict[str, _Log] = {}
        self._depths: set[tuple[str | None, int]] = set()
        self._lock = LoopLocal(asyncio.Lock)

    # ------------------------------------------------------------------------------------------------- looking

    def add(self, id: str, log: str | None, above: str = "") -> None:
        """Make a folder known without listing it."""
        if id not in self._folders:
            depth = self._folders[above].depth + 1 if above in self._folders else 0
            self._folders[id] = _Folder(log, depth, above)

    def log_of(self, id: str) -> str | None:
        found = self._folders.get(id)
        return None if found is None else found.log

    async def listing(self, id: str, path: Path) -> Mapping[str, DriveFile]:
        """The files of a folder by their names."""
        async with self._lock.get():
            folder = self._folders[id]
            await self._refresh(folder, path)
            if id not in self._folders:
                raise fail(errno.ENOENT, path)  # the refresh has told that it is gone
            if folder.files is None:
                await self._load(id, folder, path)
            self._listed.move_to_end(id)
            if folder.names is None:
                assert folder.files is not None
                folder.names = self._named(folder.files)
            return folder.names

    async def find(self, id: str, name: str, path: Path) -> DriveFile:
        """The file with this name in a folder; the id in a name decides."""
        names = await self.listing(id, path)
        found = names.get(name)
        if found is None and "__" in name:
            files = self._folders[id].files or {}
            found = next((file for file in files.values() if _names_id(name, file.id)), None)
        if found is None:
            alike = [one for one, file in names.items() if self.shown(file) == name]
            if alike:
                words = f"several files have this name: {', '.join(sorted(alike)[:5])}"
                raise fail(errno.ENOENT, path, f"No such file or directory: {words}; name one of them")
            raise fail(errno.ENOENT, path)
        return found

    async def file(self, id: str, path: Path) -> DriveFile:
        """A file as it is now."""
        params: Params = {"fields": FIELDS, "supportsAllDrives": "true"}
        answer = await self._rest.get(f"/drive/v3/files/{id}", path=path, params=params)
        return drive_file(answer.json())

    # ------------------------------------------------------------------------------------------------ freshness

    async def _refresh(self, folder: _Folder, path: Path) -> None:
        now = time.monotonic()
        if folder.log is not None:
            log = self._logs.get(folder.log)
            if log is None:
                log = self._logs[folder.log] = _Log(await self._start(folder.log, path), now + self._ttl)
            elif log.token is not None and log.until <= now:
                await self._changes(folder.log, log, path)
            if log.token is not None:
                return
        if folder.files is not None and folder.until <= now:
            self._unload(folder)

    async def _start(self, log: str, path: Path) -> str | None:
        params: Params = {"supportsAllDrives": "true", "driveId": log or None}
        try:
            answer = await self._rest.get("/drive/v3/changes/startPageToken", path=path, params=params)
        except FileNotFoundError:
            return None  # a server without changes
        return str(answer.json()["startPageToken"])

    async def _changes(self, name: str, log: _Log, path: Path) -> None:
        params: Params = {
            **EVERYWHERE, "driveId": name or None, "pageSize": 1000, "includeRemoved": "true",
            "fields": f"nextPageToken,newStartPageToken,changes(fileId,removed,file({FIELDS}))",
        }  # fmt: skip
        token = log.token
        while True:
            try:
                answer = await self._rest.get("/drive/v3/changes", path=path, params={**params, "pageToken": token})
            except (FileNotFoundError, OSError) as error:
                if error.errno not in (errno.ENOENT, errno.EINVAL):
                    raise
                self._forget_log(name)  # the token is too old: everything is listed anew
                log.token, log.until = await self._start(name, path), time.monotonic() + self._ttl
                return
            said = answer.json()
            for change in said.get("changes") or ():
                data = change.get("file")
                if change.get("removed") or data is None or data.get("trashed"):
                    self.drop(str(change["fileId"]))
                else:
                    self.put(drive_file(data))
            token = said.get("nextPageToken")
            if token is None:
                log.token, log.until = str(said.get("newStartPageToken") or log.token), time.monotonic() + self._ttl
                return

    def _forget_log(self, name: str) -> None:
        for folder in self._folders.values():
            if folder.log == name:
                self._unload(folder)

    def _unload(self, folder: _Folder) -> None:
        if folder.files is not None:
            self._count -= len(folder.files)
            folder.files = folder.names = None

    # -------------------------------------------------------------------------------------------------- listing

    async def _load(self, id: str, folder: _Folder, path: Path) -> None:
        wanted = [id]
        at = (folder.log, folder.depth)
        if at in self._depths and folder.depth:
            others = [
                (one.above != folder.above, other)
                for other, one in self._folders.items()
                if one.files is None and one.log == folder.log and one.depth >= folder.depth and other != id
            ]
            wanted += [other for _, other in sorted(others, key=lambda pair: pair[0])[: PARENTS - 1]]
        self._depths.add(at)
        query = " or ".join(f"{quoted(one)} in parents" for one in wanted)
        corpora = {"corpora": "drive", "driveId": folder.log} if folder.log else {}
        found: dict[str, dict[str, DriveFile]] = {one: {} for one in wanted}
        query = f"({query}) and trashed = false"
        async with closing(listed_files(self._rest, query, path, **corpora)) as files:
            async for data in files:
                file = drive_file(data)
                parents = [one for one in file.parents if one in found] or ([id] if len(wanted) == 1 else [])
                for parent in parents:
                    found[parent][file.id] = file
        for one, entries in found.items():
            self._keep(one, entries)
        while self._count > MOST_FILES and len(self._listed) > 1:
            oldest = next(iter(self._listed))
            if oldest == id:
                break
            del self._listed[oldest]
            self._unload(self._folders[oldest])

    def _keep(self, id: str, files: dict[str, DriveFile]) -> None:
        folder = self._folders[id]
        self._unload(folder)
        folder.files, folder.until = files, time.monotonic() + self._ttl
        self._count += len(files)
        self._listed[id] = None
        for file in files.values():
            if file.is_folder:
                self.add(file.id, folder.log, id)

    async def shared(self, id: str, path: Path) -> Mapping[str, DriveFile]:
        """What others have shared with the user; it belongs to no folder."""
        folder = self._folders[id]
        async with self._lock.get():
            if folder.files is None or folder.until <= time.monotonic():
                files: dict[str, DriveFile] = {}
                query = "sharedWithMe = true and trashed = false"
                async with closing(listed_files(self._rest, query, path)) as found:
                    async for data in found:
                        file = drive_file(data)
                        files[file.id] = file
                self._keep(id, files)
                folder.names = self._named(files)
            return folder.names or {}

    # ------------------------------------------------------------------------------------------------- changing

    def put(self, file: DriveFile) -> None:
        """A file as it has become: it stands in the folders that it names, and in no other."""
        for id in tuple(self._listed):
            folder = self._folders[id]
            if folder.files is None:
                continue
            known = file.id in folder.files
            if id in file.parents or (known and not file.parents):
                folder.files[file.id], folder.names = file, None
                self._count += not known
                if file.is_folder:
                    self.add(file.id, folder.log, id)
            elif known and folder.log is not None:
                del folder.files[file.id]
                folder.names = None
                self._count -= 1

    def drop(self, id: str) -> None:
        """A file is gone."""
        for folder in self._folders.values():
            if folder.files is not None and folder.files.pop(id, None) is not None:
                folder.names = None
                self._count -= 1
        gone = self._folders.pop(id, None)
        if gone is not None:
            self._unload(gone)
            self._listed.pop(id, None)

    def forget(self) -> None:
        """Ask at the next look: for the changes only, where they can be had."""
        for log in self._logs.values():
            log.until = 0.0
        for folder in self._folders.values():
            folder.until = 0.0

    # --------------------------------------------------------------------------------------------------- naming

    def export(self, file: DriveFile) -> Export | None:
        return self._exports.get(file.mime)

    def is_sheet(self, file: DriveFile) -> bool:
        """Whether a file is a directory of CSV."""
        return file.mime == SPREADSHEET and SPREADSHEET not in self._exports

    def suffix(self, file: DriveFile) -> str:
        """What a name gets behind it, for files without bytes of their own."""
        if file.mime in (FOLDER, SHORTCUT):
            return ""
        export = self._exports.get(file.mime)
        if export is not None:
            return export.suffix
        if self.is_sheet(file):
            return _NATIVE
        found = _APP.fullmatch(file.mime)
        return f".g{found[1]}.json" if found is not None else ""

    def shown(self, file: DriveFile) -> str:
        return as_name(file.name) + self.suffix(file)

    def _named(self, files: Mapping[str, DriveFile]) -> dict[str, DriveFile]:
        """Names of a folder's files; those that are equal or too long get the id before the extension."""
        alike: dict[str, list[DriveFile]] = {}
        for file in files.values():
            alike.setdefault(self.shown(file), []).append(file)
        named: dict[str, DriveFile] = {}
        for name, several in alike.items():
            if len(several) == 1 and fits(name) and name not in (".by-id",):
                named[name] = several[0]
                continue
            for file in several:
                named[with_id(as_name(file.name), file.id, self.suffix(file))] = file
        return named


def with_id(name: str, id: str, suffix: str) -> str:
    stem, dot, extension = name.rpartition(".")
    if suffix or not dot or not stem or len(extension) > 10:
        stem, extension = name, ""
    tail = f"__{id}" + (f".{extension}" if extension else "") + suffix
    room = 255 - len(encode(tail))
    return encode(stem)[:room].decode("utf-8", "ignore") + tail


def _names_id(name: str, id: str) -> bool:
    _, found, after = name.rpartition(f"__{id}")
    return bool(found) and (not after or after.startswith("."))


def is_native(mime: str) -> bool:
    """Whether a file is Google's own and has no bytes."""
    return _APP.fullmatch(mime) is not None
