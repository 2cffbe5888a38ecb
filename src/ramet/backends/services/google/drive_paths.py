"""Paths of a Drive: which file a path leads to, and the settings that decide it."""

from __future__ import annotations

import errno
import re
import time
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

from ramet.backends.file_names import as_name, fits
from ramet.backends.services.google.api import EXPORTS, FOLDER, SHORTCUT, DriveFile, drive_file, paged
from ramet.backends.services.google.drive_index import DriveIndex, with_id
from ramet.backends.services.google.token import GoogleConfig
from ramet.backends.services.rest import Params, Rest
from ramet.core.errors import RametError, fail
from ramet.core.paths import Path

MINE, DRIVES, SHARED, BY_ID, README_NAME = "My Drive", "Shared drives", "Shared with me", ".by-id", "README.md"
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")


@dataclass(frozen=True, kw_only=True, repr=False)
class GoogleDriveConfig(GoogleConfig):
    """A Google Drive, as far as the account can see it."""

    kind: ClassVar[str] = "gdrive"

    base_url: str = "https://www.googleapis.com"
    """The address of the API of Drive."""
    sheets_url: str = "https://sheets.googleapis.com"
    """The address of the API of Sheets, which the tabs of spreadsheets come from."""
    folder_id: str | None = None
    """Show this folder as the whole mount."""
    export: str = "md"
    """What Google's own files are shown as: `md`, `office` or `pdf`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.export not in EXPORTS:
            choices = ", ".join(EXPORTS)
            raise RametError(
                "invalid_config", f"Drive cannot export {self.export!r}", f"set export to one of {choices}"
            )
        if self.folder_id is not None and not _ID.fullmatch(self.folder_id):
            raise RametError("invalid_config", "this folder_id cannot be one", "copy it from the address of the folder")


class Spot(NamedTuple):
    """Where a path leads."""

    path: Path
    place: str
    """`top`, `readme`, `drives`, `shared`, `by-id`, `folder`, `file` or `sheet`."""
    file: DriveFile | None = None
    inner: str = ""
    """The file inside a spreadsheet."""
    above: str = ""
    """The folder that the file was found in."""


class DrivePaths:
    def __init__(self, config: GoogleDriveConfig, rest: Rest, index: DriveIndex) -> None:
        self._config, self._rest, self._index = config, rest, index
        self._root: DriveFile | None = None
        self._drives: tuple[dict[str, DriveFile], float] = ({}, 0.0)
        self.single: dict[str, tuple[DriveFile, float]] = {}
        """Files that were found by their ids, and until when that is trusted."""
        self.linked: set[str] = set()
        """Files that may be opened by their ids where one folder is the whole mount."""

    async def top(self, path: Path) -> DriveFile:
        """My Drive, or the folder that is the whole mount, under its real id."""
        if self._root is None:
            id = self._config.folder_id or "root"
            try:
                self._root = await self._index.file(id, path)
            except FileNotFoundError:
                if self._config.folder_id is not None:
                    words = f"No such file or directory: the folder {id} is not there, or not shared with this account"
                    raise fail(errno.ENOENT, path, words) from None
                self._root = drive_file({"id": "root", "name": MINE, "mimeType": FOLDER})
            if not self._root.is_folder:
                raise fail(errno.ENOTDIR, path, f"Not a directory: {id} is not a folder")
            self._index.add(self._root.id, str(self._root.data.get("driveId") or ""))
        return self._root

    async def find(self, path: Path) -> Spot:
        parts = tuple(path.parts)
        if parts[:1] == (BY_ID,):
            return await self._find_by_id(path, parts[1:])
        if self._config.folder_id is not None:
            if parts == (README_NAME,):
                try:
                    return await self._walk(path, await self.top(path), parts)
                except FileNotFoundError:
                    return Spot(path, "readme")
            return await self._walk(path, await self.top(path), parts)
        if not parts:
            return Spot(path, "top")
        first, rest = parts[0], parts[1:]
        if first == README_NAME:
            if rest:
                raise fail(errno.ENOTDIR, path)
            return Spot(path, "readme")
        if first == MINE:
            return await self._walk(path, await self.top(path), rest)
        if first in (DRIVES, SHARED):
            if not rest:
                return Spot(path, "drives" if first == DRIVES else "shared")
            names = await (self.drives(path) if first == DRIVES else self.shared(path))
            file = names.get(rest[0])
            if file is None:
                raise fail(errno.ENOENT, path)
            self._index.add(file.id, file.id if first == DRIVES else None)
            return await self._walk(path, file, rest[1:])
        raise fail(errno.ENOENT, path)

    async def _find_by_id(self, path: Path, parts: tuple[str, ...]) -> Spot:
        if not parts:
            return Spot(path, "by-id")
        id = parts[0]
        if not _ID.fullmatch(id) or (self._config.folder_id is not None and id not in self.linked):
            raise fail(errno.ENOENT, path)
        found = self.single.get(id)
        if found is None or found[1] <= time.monotonic():
            if len(self.single) > 4096:
                self.single.clear()
            found = self.single[id] = await self._index.file(id, path), time.monotonic() + self._config.ttl
        file = found[0]
        if file.data.get("trashed"):
            raise fail(errno.ENOENT, path, "No such file or directory: it is in the trash")
        self._index.add(file.id, file.data.get("driveId"))
        return await self._walk(path, file, parts[1:])

    async def _walk(self, path: Path, file: DriveFile, parts: tuple[str, ...]) -> Spot:
        above = ""
        for number, name in enumerate(parts):
            if not file.is_folder:
                if self._index.is_sheet(file):
                    if len(parts) > number + 1:
                        raise fail(errno.ENOTDIR, path)
                    return Spot(path, "sheet", file, name, above)
                raise fail(errno.ELOOP if file.mime == SHORTCUT else errno.ENOTDIR, path)
            above = file.id
            file = await self._index.find(file.id, name, path)
            if file.is_folder:
                self._index.add(file.id, self._index.log_of(above), above)
        return Spot(path, "folder" if file.is_folder else "file", file, "", above)

    async def drives(self, path: Path) -> dict[str, DriveFile]:
        names, until = self._drives
        if until <= time.monotonic():
            params: Params = {"pageSize": 100, "fields": "nextPageToken,drives(id,name,capabilities/canEdit)"}
            drives = paged(self._rest, "/drive/v3/drives", "drives", path, params)
            try:
                found = [drive_file({**data, "mimeType": FOLDER}) async for data in drives]
            except FileNotFoundError:
                found = []  # a server without shared drives
            alike = [as_name(file.name) for file in found]
            names = {
                name if alike.count(name) == 1 and fits(name) else with_id(name, file.id, ""): file
                for name, file in zip(alike, found, strict=True)
            }
            self._drives = names, time.monotonic() + self._config.ttl
        return names

    async def shared(self, path: Path) -> dict[str, DriveFile]:
        self._index.add(SHARED, None)
        return dict(await self._index.shared(SHARED, path))

    def forget(self) -> None:
        self.single.clear()
        self._drives = {}, 0.0
