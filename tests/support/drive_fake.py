"""Google Drive for the tests: files in memory behind the routes that its mounts use."""

from __future__ import annotations

import hashlib
import json
import re
from collections import deque
from email import message_from_bytes
from typing import Any

from tests.support.google_fake import DriveQuery, GoogleFake, refused
from tests.support.service_fake import Call, Reply

FOLDER = "application/vnd.google-apps.folder"
WHEN = "2026-05-03T09:14:02.000Z"


class DriveFake(GoogleFake):
    def __init__(self) -> None:
        super().__init__()
        self.number = 0
        self.page = 1000
        self.files: dict[str, dict[str, Any]] = {}
        self.contents: dict[str, bytes] = {}
        self.exports: dict[tuple[str, str], bytes] = {}
        self.drives: list[dict[str, Any]] = []
        self.changed: list[str] = []
        self.sessions: dict[str, dict[str, Any]] = {}
        self.comments: dict[str, list[dict[str, Any]]] = {}
        self.cuts: deque[int] = deque()
        """Bytes that arrive of the next parts of uploads before the connection is cut."""
        self.files["0Aroot"] = self._file("0Aroot", "My Drive", FOLDER, ())
        v3, up = "/drive/v3", "/upload/drive/v3"
        for method, pattern, handler in (
            ("GET", f"{v3}/files", self._list),
            ("POST", f"{v3}/files", lambda call: Reply(200, self._create(call.json, b""))),
            ("GET", f"{v3}/files/{{id}}", self._get),
            ("PATCH", f"{v3}/files/{{id}}", self._patch),
            ("POST", f"{v3}/files/{{id}}/copy", self._copy),
            ("GET", f"{v3}/files/{{id}}/export", self._export),
            ("GET", f"{v3}/files/{{id}}/comments", self._list_comments),
            ("POST", f"{v3}/files/{{id}}/comments", self._comment),
            ("GET", f"{v3}/drives", lambda call: self.pages(call, "drives", self.drives, 100)),
            ("GET", f"{v3}/changes/startPageToken",
             lambda call: Reply(200, {"startPageToken": str(len(self.changed))})),
            ("GET", f"{v3}/changes", self._changes),
            ("GET", f"{v3}/about", lambda call: Reply(200, {"user": {"displayName": "Ada"}})),
            ("POST", f"{up}/files", self._upload),
            ("PATCH", f"{up}/files/{{id}}", self._upload),
            ("PUT", "/session/{id}", self._part),
        ):  # fmt: skip
            self.route(method, pattern, handler)

    # ------------------------------------------------------------------------------------------------- things

    def _file(self, id: str, name: str, mime: str, parents: tuple[str, ...], **more: Any) -> dict[str, Any]:
        return {
            "kind": "drive#file", "id": id, "name": name, "mimeType": mime, "parents": list(parents), "trashed": False,
            "modifiedTime": WHEN, "version": "1", "ownedByMe": True, "capabilities": {"canEdit": True},
            "webViewLink": f"https://docs.google.com/open?id={id}", **more,
        }  # fmt: skip

    def add(
        self, name: str, content: bytes | None = None, parent: str = "0Aroot", mime: str = "text/plain", **more: Any
    ) -> str:
        self.number += 1
        id: str = more.pop("id", f"1f{self.number:08d}aB-_x")
        self.files[id] = self._file(id, name, mime, (parent,) if parent else (), **more)
        if content is not None:
            self._fill(id, content)
        self.changed.append(id)
        return id

    def folder(self, name: str, parent: str = "0Aroot", **more: Any) -> str:
        return self.add(name, None, parent, FOLDER, **more)

    def _fill(self, id: str, content: bytes) -> None:
        file = self.files[id]
        self.contents[id] = content
        revision = hashlib.md5(content + file["version"].encode()).hexdigest()
        file.update(
            size=str(len(content)), md5Checksum=hashlib.md5(content).hexdigest(), headRevisionId=f"0B{revision}"
        )

    def change(self, id: str, **fields: Any) -> None:
        """A change by somebody else."""
        content = fields.pop("content", None)
        file = self.files[id]
        file.update(fields, version=str(int(file["version"]) + 1))
        if content is not None:
            self._fill(id, content)
        self.changed.append(id)

    def named(self, name: str) -> list[dict[str, Any]]:
        return [file for file in self.files.values() if file["name"] == name and not file["trashed"]]

    # ------------------------------------------------------------------------------------------------ serving

    def _list(self, call: Call) -> Reply:
        query = DriveQuery(call.query["q"], "me")
        drive = call.query.get("driveId") if call.query.get("corpora") == "drive" else None
        found = [
            file for id, file in self.files.items()
            if id != "0Aroot" and file.get("driveId") == drive and query.fits(file, self.contents.get(id, b""))
        ]  # fmt: skip
        return self.pages(call, "files", found, min(self.page, int(call.query["pageSize"])))

    def _get(self, call: Call, id: str) -> Reply:
        id = "0Aroot" if id == "root" else id
        file = self.files.get(id)
        if file is None:
            return refused(404, f"File not found: {id}.", "notFound")
        if call.query.get("alt") != "media":
            links = {mime: f"https://docs.google.com/export?id={id}" for one, mime in self.exports if one == id}
            return Reply(200, {**file, **({"exportLinks": links} if links else {})})
        if id not in self.contents:
            return refused(403, "Only files with binary content can be downloaded.", "fileNotDownloadable")
        content = self.contents[id]
        span = re.fullmatch(r"bytes=(\d+)-(\d*)", call.headers.get("range", ""))
        if span is None:
            return Reply(200, content)
        first, last = int(span[1]), int(span[2] or len(content) - 1)
        if first >= len(content):
            return Reply(416, b"")
        return Reply(206, content[first : last + 1])

    def _create(self, about: dict[str, Any], content: bytes | None) -> dict[str, Any]:
        mime = about.get("mimeType", "application/octet-stream")
        id = self.add(about["name"], None, "", mime)
        file = self.files[id]
        file["parents"] = about.get("parents", ["0Aroot"])
        if not mime.startswith("application/vnd.google-apps."):
            self._fill(id, content or b"")
        elif content:
            self.exports[id, "text/markdown"] = content
        return file

    def _patch(self, call: Call, id: str) -> Reply:
        if id not in self.files:
            return refused(404, f"File not found: {id}.", "notFound")
        file = self.files[id]
        removed = set(call.query.get("removeParents", "").split(","))
        added = [one for one in call.query.get("addParents", "").split(",") if one]
        file["parents"] = [one for one in file["parents"] if one not in removed] + added
        self.change(id, **call.json)
        return Reply(200, file)

    def _copy(self, call: Call, id: str) -> Reply:
        about = {"mimeType": self.files[id]["mimeType"], **call.json}
        return Reply(200, self._create(about, self.contents.get(id)))

    def _export(self, call: Call, id: str) -> Reply:
        content = self.exports.get((id, call.query["mimeType"]))
        if content is None:
            return refused(400, "The requested conversion is not supported.", "badRequest")
        if len(content) > 10 << 20:
            return refused(403, "This file is too large to be exported.", "exportSizeLimitExceeded")
        return Reply(200, content)

    def _changes(self, call: Call) -> Reply:
        start = int(call.query["pageToken"])
        found = [
            {"fileId": id, "removed": id not in self.files, **({"file": self.files[id]} if id in self.files else {})}
            for id in dict.fromkeys(self.changed[start:])
        ]
        return Reply(200, {"changes": found, "newStartPageToken": str(len(self.changed))})

    def _list_comments(self, call: Call, id: str) -> Reply:
        return self.pages(call, "comments", self.comments.get(id, []), 100)

    def _comment(self, call: Call, id: str) -> Reply:
        made = {"id": f"c{len(self.comments.get(id, []))}", "content": call.json["content"],
                "createdTime": WHEN, "author": {"displayName": "Ada"}}  # fmt: skip
        self.comments.setdefault(id, []).append(made)
        return Reply(200, made)

    # ------------------------------------------------------------------------------------------------ uploads

    def arriving(self, method: str, path: str, length: int) -> int:
        if path.startswith("/session/") and length and self.cuts:
            return self.cuts.popleft()
        return length

    def _upload(self, call: Call, id: str = "") -> Reply:
        if call.query["uploadType"] == "resumable":
            name = f"s{len(self.sessions)}"
            self.sessions[name] = {"about": call.json, "id": id, "content": bytearray(), "done": None}
            return Reply(200, None, {"Location": f"{self.base}/session/{name}?upload_id=hunter2"})
        kind = call.headers["content-type"]
        parts: Any = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode()).get_boundary()
        first, second = call.body.split(f"--{parts}".encode())[1:3]
        about, content = json.loads(first.split(b"\r\n\r\n", 1)[1]), second.split(b"\r\n\r\n", 1)[1][:-2]
        return Reply(200, self._store(id, about, content))

    def _store(self, id: str, about: dict[str, Any], content: bytes) -> dict[str, Any]:
        if not id:
            return self._create(about, content)
        self.change(id, content=content, **about)
        return self.files[id]

    def _part(self, call: Call, id: str) -> Reply:
        session = self.sessions.get(id)
        if session is None:
            return refused(404, "Session not found", "notFound")
        if session["done"] is not None:
            return Reply(200, session["done"])
        content: bytearray = session["content"]
        span = re.fullmatch(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)", call.headers["content-range"])
        assert span is not None, call.headers["content-range"]
        if span[1] is not None:
            assert int(span[1]) == len(content), "a part begins elsewhere than the last one ended"
            content += call.body
            # Google keeps whole pieces of 256 KiB only, except of the last part.
            if span[3] == "*" or len(content) < int(span[3]):
                del content[len(content) // (256 << 10) * (256 << 10) :]
        if span[3] != "*" and len(content) == int(span[3]):
            session["done"] = self._store(session["id"], session["about"], bytes(content))
            return Reply(200, session["done"])
        return Reply(308, None, {"Range": f"bytes=0-{len(content) - 1}"} if content else {})
