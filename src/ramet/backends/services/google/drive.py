"""`GoogleDriveResource`: a Google Drive as files.

    /My Drive/...           folders and files; Google's own files as Markdown, CSV or text
    /Shared drives/<name>/  likewise
    /Shared with me/        what others have shared; it belongs to no folder here
    /.by-id/<id>            any file by its id, which shortcuts link to; not listed

Rules that this file keeps:
- New content goes into the same file: its id, its sharing and its links stay. A removal is a move to the trash.
- Drive has no conditional writes: `if_version` asks for the file, compares, and writes. A change in between is lost
  from the file, and stays among its revisions.
- Google's own files are read-only here; `GoogleDocsResource` and `GoogleSheetsResource` edit them.
"""

from __future__ import annotations

import errno
import re
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from mimetypes import guess_type
from typing import Any, Final

from ramet.backends.file_names import from_name
from ramet.backends.services.auth import TokenSource
from ramet.backends.services.contents import digest, json_lines, json_text
from ramet.backends.services.google.api import (
    DOCUMENT,
    EXPORTS,
    FIELDS,
    FOLDER,
    SCOPES,
    SHORTCUT,
    DriveFile,
    drive_file,
    google_rest,
    listed_files,
    quoted,
    raw_query,
)
from ramet.backends.services.google.drive_index import DriveIndex, is_native
from ramet.backends.services.google.drive_paths import (
    BY_ID,
    DRIVES,
    MINE,
    README_NAME,
    SHARED,
    DrivePaths,
    Spot,
)
from ramet.backends.services.google.drive_paths import GoogleDriveConfig as GoogleDriveConfig
from ramet.backends.services.google.drive_upload import DriveUpload
from ramet.backends.services.google.sheets_values import Spreadsheets, Tab, tabs_of
from ramet.backends.services.google.token import google_auth
from ramet.backends.services.pages import first_of
from ramet.core.errors import Unavailable, fail
from ramet.core.paths import ROOT, Path, encode
from ramet.core.resource import Cap, Data, Description, How
from ramet.core.stat import Attrs, Kind, Stat
from ramet.core.streams import closing

_EXPRESSION: Final = re.compile(
    r"\b(name|fullText|mimeType|\w+Time|trashed|starred|sharedWithMe|properties|appProperties|visibility"
    r"|shortcutDetails\.\w+)\s*(=|!=|[<>]=?|contains\b|has\b)|'\s+in\s+(parents|owners|writers|readers)\b"
)
"""Terms of Drive's search, as opposed to words."""
README: Final = """\
# Google Drive

    My Drive/...              folders and files as they are
    Shared drives/<name>/     likewise
    Shared with me/           what others have shared with this account
    Plan.gdoc.md              a Google Doc as Markdown; to edit one, mount Google Docs
    Budget.gsheet/<tab>.csv   a Google Sheet, one CSV per tab, and sheet.json
    Talk.gslides.txt          the text of a presentation

- Equal names in one folder get the id: `a__1f3....txt`. Shortcuts are links. Any file by its id: `.by-id/1f3...`.
- Write, `mkdir`, `mv`, `cp` as usual; new content goes into the same file. `rm` moves to the trash.
- A new Google Doc from Markdown: `cat plan.md > 'My Drive/Plan.gdoc.md'`.
- Search: `query . 'quarterly report'` finds words, `query . "name contains 'report' and modifiedTime > '2026-05-01'"`
  takes Drive's own terms. Each hit has a `path`.
- The API: `query . 'GET /drive/v3/about?fields=user'`, `query -w . 'PATCH /drive/v3/files/<id>' '{"starred": true}'`
"""


class GoogleDriveResource:
    """`GoogleDriveResource(GoogleDriveConfig(client_id=..., client_secret=..., refresh_token=...))`.

    `token` is a function that returns an access token.
    """

    def __init__(self, config: GoogleDriveConfig, *, token: TokenSource | None = None) -> None:
        self.config = config
        auth = google_auth(config, token, [SCOPES["drive"]])
        self._rest = google_rest(config, auth, config.base_url, "drive")
        self._sheets = Spreadsheets(google_rest(config, auth, config.sheets_url, "drive"))
        self._index = DriveIndex(self._rest, config.ttl, config.export)
        self._paths = DrivePaths(config, self._rest, self._index)
        self._about: dict[str, tuple[str | None, Any]] = {}
        """Spreadsheets by id: the version of the file, and what Sheets said of it."""

    @property
    def caps(self) -> Cap:
        if not self.config.writable:
            return Cap.RANGES
        return (
            Cap.WRITE | Cap.RANGES | Cap.RENAME | Cap.COPY | Cap.DIRS | Cap.MTIMES | Cap.PRECONDITIONS | Cap.ON_CLOSE
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.config!r})"

    def describe(self) -> Description:
        return self.config.describe()

    # ---------------------------------------------------------------------------------------------- looking

    async def stat(self, path: Path) -> Stat:
        spot = await self._paths.find(path)
        if spot.place == "readme":
            return self._readme
        if spot.file is None:
            return self._directory
        if spot.place == "sheet":
            tabs = await self._tabs(spot.file, path)
            if spot.inner != "sheet.json" and spot.inner not in tabs:
                raise fail(errno.ENOENT, path)
            return self._cells_stat(spot.file)
        return self._stat(spot.file, path)

    @property
    def _directory(self) -> Stat:
        return Stat(Kind.DIR, ttl=self.config.ttl)

    @property
    def _readme(self) -> Stat:
        content = README.encode()
        return Stat(Kind.FILE, len(content), None, digest(content), self.config.ttl)

    def _cells_stat(self, file: DriveFile) -> Stat:
        return Stat(Kind.FILE, None, file.mtime_ns, None, self.config.ttl)

    def _stat(self, file: DriveFile, path: Path) -> Stat:
        ttl = self.config.ttl
        if file.is_folder or self._index.is_sheet(file):
            return Stat(Kind.DIR, None, file.mtime_ns, None, ttl)
        if file.mime == SHORTCUT:
            self._paths.linked.add(file.target)
            target = "../" * len(path.parent.parts) + f"{BY_ID}/{file.target}"
            return Stat(Kind.LINK, len(encode(target)), file.mtime_ns, file.version, ttl, target=target)
        mode = None if file.editable else 0o444
        if not is_native(file.mime):
            return Stat(Kind.FILE, file.size or 0, file.mtime_ns, file.version, ttl, mode)
        exported = self._index.export(file) is not None
        size = None if exported else len(json_text(dict(file.data)))
        return Stat(Kind.FILE, size, file.mtime_ns, file.version, ttl)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        spot = await self._paths.find(path)
        match spot.place:
            case "top":
                yield README_NAME, self._readme
                for name in (MINE, DRIVES, SHARED):
                    yield name, self._directory
                return
            case "drives" | "shared":
                names = await (self._paths.drives(path) if spot.place == "drives" else self._paths.shared(path))
            case "by-id":
                return
            case "folder":
                assert spot.file is not None
                names = dict(await self._index.listing(spot.file.id, path))
                if path == ROOT and README_NAME not in names:
                    yield README_NAME, self._readme
            case "file" if spot.file is not None and self._index.is_sheet(spot.file):
                for name in ("sheet.json", *await self._tabs(spot.file, path)):
                    yield name, self._cells_stat(spot.file)
                return
            case _:
                raise fail(errno.ENOTDIR, path)
        for name, file in names.items():
            yield name, self._stat(file, path / name)

    async def _tabs(self, file: DriveFile, path: Path) -> dict[str, Tab]:
        return {f"{name}.csv": tab for name, tab in tabs_of(await self._spreadsheet(file, path)).items()}

    async def _spreadsheet(self, file: DriveFile, path: Path) -> Any:
        known = self._about.get(file.id)
        if known is None or known[0] != file.version or file.version is None:
            if len(self._about) > 256:
                self._about.clear()
            known = self._about[file.id] = file.version, await self._sheets.about(file.id, path)
        return known[1]

    # ---------------------------------------------------------------------------------------------- reading

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        spot = await self._paths.find(path)
        if spot.place == "readme":
            yield README.encode()[start:stop]
            return
        file = spot.file
        if file is None or spot.place == "folder" or (spot.place == "file" and self._index.is_sheet(file)):
            raise fail(errno.EISDIR, path)
        if spot.place == "sheet":
            blocks = _cut(self._cells(spot, file), start, stop)
        elif file.mime == SHORTCUT:
            raise fail(errno.ELOOP, path)
        elif not is_native(file.mime):
            blocks = self._content(file, path, start, stop)
        elif self._index.export(file) is not None:
            blocks = self._exported(file, path, start, stop)
        else:
            yield json_text(dict(file.data))[start:stop]
            return
        async with closing(blocks) as stream:
            async for block in stream:
                yield block

    async def _cells(self, spot: Spot, file: DriveFile) -> AsyncIterator[bytes]:
        if spot.inner == "sheet.json":
            yield json_text(await self._spreadsheet(file, spot.path))
            return
        tab = (await self._tabs(file, spot.path)).get(spot.inner)
        if tab is None:
            raise fail(errno.ENOENT, spot.path)
        async with closing(self._sheets.csv(file.id, tab, spot.path)) as blocks:
            async for block in blocks:
                yield block

    async def _content(self, file: DriveFile, path: Path, start: int, stop: int | None) -> AsyncIterator[bytes]:
        address = f"/drive/v3/files/{file.id}?alt=media&supportsAllDrives=true"
        try:
            async with closing(
                self._rest.stream(address, path=path, accept="*/*", start=start, stop=stop)
            ) as blocks:  # fmt: skip
                async for block in blocks:
                    yield block
        except Unavailable as error:
            error.version = file.version
            raise

    async def read_version(
        self, path: Path, version: str, start: int = 0, stop: int | None = None
    ) -> AsyncIterator[bytes]:
        """The rest of an interrupted read, if the file is still the same."""
        spot = await self._paths.find(path)
        if spot.place != "file" or spot.file is None:
            raise fail(errno.ESTALE, path)
        now = await self._index.file(spot.file.id, path)
        if now.version != version:
            raise fail(errno.ESTALE, path)
        async with closing(self._content(now, path, start, stop)) as blocks:
            async for block in blocks:
                yield block

    async def _exported(self, file: DriveFile, path: Path, start: int, stop: int | None) -> AsyncIterator[bytes]:
        export = self._index.export(file)
        assert export is not None
        address = self._rest.url(f"/drive/v3/files/{file.id}/export", {"mimeType": export.mime})
        try:
            found = self._rest.stream(address, path=path, accept="*/*")
            async with closing(_cut(found, start, stop)) as blocks:
                async for block in blocks:
                    yield block
        except OSError as error:
            if error.errno != errno.EFBIG:
                raise
            answer = await self._rest.get(
                f"/drive/v3/files/{file.id}", path=path,
                params={"fields": "exportLinks,webViewLink", "supportsAllDrives": "true"},
            )  # fmt: skip
            said = answer.json()
            link = (said.get("exportLinks") or {}).get(export.mime) or said.get("webViewLink") or "it in a browser"
            raise fail(errno.EFBIG, path, f"File too large: Google exports at most 10 MB; open {link}") from None

    # --------------------------------------------------------------------------------------------- changing

    def _check_writable(self, path: Path) -> None:
        if not self.config.writable:
            words = f"Read-only file system: set writable=True in {type(self.config).__name__}"
            raise fail(errno.EROFS, path, words)

    async def _folder_for(self, path: Path) -> str:
        """The id of the folder in which `path` is or will be."""
        if path == ROOT:
            raise fail(errno.EBUSY, path)
        above = await self._paths.find(path.parent)
        if above.place in ("file", "sheet", "readme"):
            raise fail(errno.ENOTDIR, path)
        if above.place != "folder" or above.file is None:
            words = f"Operation not permitted: make it in {MINE!r} or in a shared drive"
            raise fail(errno.EPERM, path, words)
        return above.file.id

    async def _existing(self, folder: str, path: Path) -> DriveFile | None:
        names = await self._index.listing(folder, path)
        try:
            return await self._index.find(folder, path.name, path)
        except FileNotFoundError:
            if any(self._index.shown(file) == path.name for file in names.values()):
                raise fail(
                    errno.EEXIST, path, "File exists: several files have this name; name one by its id"
                ) from None
            return None

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        self._check_writable(path)
        if how not in (How.REPLACE, How.CREATE):
            raise fail(errno.ENOTSUP, path)
        folder, file = "", await self._by_id_spot(path)
        if file is None:
            folder = await self._folder_for(path)
            file = await self._existing(folder, path)
        if file is None:
            if if_version is not None:
                raise fail(errno.ESTALE, path)
            return await self._make(folder, path, data)
        if how is How.CREATE:
            raise fail(errno.EEXIST, path)
        self._check_content(file, path)
        if if_version is not None:
            now = await self._index.file(file.id, path)
            if now.version != if_version:
                self._index.put(now)
                raise fail(errno.ESTALE, path)
        mime = file.mime
        upload = DriveUpload(self._rest, "PATCH", f"/upload/drive/v3/files/{file.id}", {}, mime, path)
        return self._put(await upload.send(data, FIELDS), path)

    async def _by_id_spot(self, path: Path) -> DriveFile | None:
        """The file behind a path by id, where a link was followed."""
        if len(path.parts) == 2 and path.parts[0] == BY_ID:
            return (await self._paths.find(path)).file
        return None

    def _check_content(self, file: DriveFile, path: Path) -> None:
        """Whether bytes can be written into a file."""
        if file.is_folder or self._index.is_sheet(file):
            raise fail(errno.EISDIR, path)
        if file.mime == SHORTCUT:
            raise fail(errno.ELOOP, path)
        if is_native(file.mime):
            words = "Read-only file system: mount Google Docs or Sheets to edit it, which keeps its formatting"
            raise fail(errno.EROFS, path, words)

    async def _make(self, folder: str, path: Path, data: Data) -> Stat:
        name, mime = _plain(path.name), guess_type(path.name)[0] or "application/octet-stream"
        about: dict[str, Any] = {"name": name, "parents": [folder]}
        document = EXPORTS[self.config.export].get(DOCUMENT)
        if document is not None and document.mime == "text/markdown" and path.name.endswith(document.suffix):
            about |= {"name": _plain(path.name.removesuffix(document.suffix)), "mimeType": DOCUMENT}
            mime = document.mime
        upload = DriveUpload(self._rest, "POST", "/upload/drive/v3/files", about, mime, path)
        return self._put(await upload.send(data, FIELDS), path, folder)

    def _put(self, data: Any, path: Path, folder: str = "") -> Stat:
        """A file as Drive describes it after a change."""
        file = drive_file(data)
        if folder and not file.parents:
            file = file._replace(parents=(folder,))
        self._index.put(file)
        self._paths.single.pop(file.id, None)
        return self._stat(file, path)

    async def mkdir(self, path: Path) -> None:
        self._check_writable(path)
        if path == ROOT or (len(path.parts) == 1 and path.parts[0] in (MINE, DRIVES, SHARED, README_NAME)):
            raise fail(errno.EEXIST, path)
        folder = await self._folder_for(path)
        if await self._existing(folder, path) is not None:
            raise fail(errno.EEXIST, path)
        body = {"name": _plain(path.name), "mimeType": FOLDER, "parents": [folder]}
        address = self._rest_address("/drive/v3/files")
        self._put((await self._rest.send("POST", address, path=path, json_body=body)).json(), path, folder)

    def _rest_address(self, address: str, more: str = "") -> str:
        return f"{address}?supportsAllDrives=true&fields={FIELDS}{more}"

    async def _own(self, path: Path) -> tuple[DriveFile, str]:
        """A file that can be removed or moved, and its folder."""
        spot = await self._paths.find(path)
        if spot.file is None or not spot.above or spot.place == "sheet":
            raise fail(errno.EPERM, path, "Operation not permitted: this is not a file of a folder")
        return spot.file, spot.above

    async def remove(self, path: Path) -> None:
        """Move to the trash."""
        self._check_writable(path)
        file, _ = await self._own(path)
        if file.is_folder and await self._index.listing(file.id, path):
            raise fail(errno.ENOTEMPTY, path)
        await self._trash(file, path)

    async def _trash(self, file: DriveFile, path: Path) -> None:
        address = f"/drive/v3/files/{file.id}?supportsAllDrives=true&fields=id"
        await self._rest.send("PATCH", address, path=path, json_body={"trashed": True}, repeatable=True)
        self._index.drop(file.id)
        self._paths.single.pop(file.id, None)

    async def rename(self, src: Path, dst: Path) -> None:
        self._check_writable(src)
        file, folder = await self._own(src)
        if src == dst:
            return
        if dst.under(src):
            raise fail(errno.EINVAL, dst)
        into = await self._folder_for(dst)
        old = await self._existing(into, dst)
        if old is not None and old.id == file.id:
            old = None
        if old is not None:
            if old.is_folder != file.is_folder:
                raise fail(errno.EISDIR if old.is_folder else errno.ENOTDIR, dst)
            if old.is_folder and await self._index.listing(old.id, dst):
                raise fail(errno.ENOTEMPTY, dst)
        suffix = self._index.suffix(file)
        if not dst.name.endswith(suffix):
            raise fail(errno.EINVAL, dst, f"Invalid argument: keep the ending {suffix}, it tells what the file is")
        name = _plain(dst.name.removesuffix(suffix) if suffix else dst.name)
        body = {"name": name} if name != file.name and not dst.name.endswith(f"__{file.id}{suffix}") else {}
        more = f"&addParents={into}&removeParents={folder}" if into != folder else ""
        address = self._rest_address(f"/drive/v3/files/{file.id}", more)
        answer = await self._rest.send("PATCH", address, path=src, json_body=body, repeatable=not more)
        self._put(answer.json(), dst, into)
        if old is not None:
            await self._trash(old, dst)

    async def copy(self, src: Path, dst: Path) -> None:
        self._check_writable(dst)
        spot = await self._paths.find(src)
        if spot.place != "file" or spot.file is None or is_native(spot.file.mime):
            raise fail(errno.ENOTSUP, src)
        folder = await self._folder_for(dst)
        if await self._existing(folder, dst) is not None:
            raise fail(errno.ENOTSUP, dst)  # the content goes into the file that is there
        body = {"name": _plain(dst.name), "parents": [folder]}
        address = self._rest_address(f"/drive/v3/files/{spot.file.id}/copy")
        self._put((await self._rest.send("POST", address, path=dst, json_body=body)).json(), dst, folder)

    async def setattr(self, path: Path, attrs: Attrs) -> None:
        self._check_writable(path)
        if attrs.mtime_ns is None or attrs.mode is not None or attrs.size is not None:
            raise fail(errno.ENOTSUP, path)
        file, folder = await self._own(path)
        when = datetime.fromtimestamp(attrs.mtime_ns / 1e9, UTC).isoformat(timespec="milliseconds")
        address = self._rest_address(f"/drive/v3/files/{file.id}")
        body = {"modifiedTime": when.replace("+00:00", "Z")}
        answer = await self._rest.send("PATCH", address, path=path, json_body=body, repeatable=True)
        self._put(answer.json(), path, folder)

    # --------------------------------------------------------------------------------------------- querying

    async def query(
        self, path: Path, text: str, values: Sequence[str] = (), *, limit: int | None = None, write: bool = False
    ) -> AsyncIterator[bytes]:
        """Drive's own terms, words, or a request."""
        raw = await raw_query(
            self._rest, self.config, path, text, values, write, ("/drive/v3/", "/upload/drive/v3/")
        )  # fmt: skip
        if raw is not None:
            if write:
                self.forget()
            yield raw
            return
        if values:
            raise fail(errno.EINVAL, path, "a search of Drive takes no values; quote it as one word")
        terms = text if _EXPRESSION.search(text) else f"fullText contains {quoted(text)}"
        if "trashed" not in terms:
            terms = f"({terms}) and trashed = false"
        async with closing(json_lines(first_of(self._hits(terms, path), limit))) as lines:
            async for block in lines:
                yield block

    async def _hits(self, terms: str, path: Path) -> AsyncIterator[Any]:
        async with closing(listed_files(self._rest, terms, path)) as files:
            async for data in files:
                if self.config.folder_id is not None:
                    self._paths.linked.add(str(data["id"]))
                yield {"path": f"{BY_ID}/{data['id']}", **data}

    def forget(self, path: Path = ROOT) -> None:
        self._index.forget()
        self._paths.forget()

    async def close(self) -> None:
        self.forget()
        await self._rest.close()
        await self._sheets.rest.close()


def _plain(name: str) -> str:
    """The name that a file of this name has in Drive."""
    found = from_name(name)
    return name if found is None else found


async def _cut(blocks: AsyncIterator[bytes], start: int, stop: int | None) -> AsyncIterator[bytes]:
    at = 0
    async with closing(blocks) as stream:
        async for block in stream:
            piece = block[max(0, start - at) : None if stop is None else max(0, stop - at)]
            if piece:
                yield piece
            at += len(block)
            if stop is not None and at >= stop:
                return
