"""Google Cloud Storage's XML API in memory, as its reference describes it: no emulator that speaks it can be had here.

It is strict rather than complete: a request that the reference does not describe is a 400, and a test then fails.
"""

from __future__ import annotations

import hashlib
import http.server
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

TOKEN = "gcs-test-token"
BUCKET = "bucket"


@dataclass(frozen=True)
class Stored:
    data: bytes
    generation: int

    @property
    def etag(self) -> str:
        return f'"{hashlib.md5(self.data + str(self.generation).encode()).hexdigest()}"'


class Bucket:
    def __init__(self) -> None:
        self.objects: dict[str, Stored] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.generations = itertools.count(1_700_000_000_000_001)
        self.lock = threading.Lock()

    def put(self, key: str, data: bytes) -> Stored:
        made = self.objects[key] = Stored(data, next(self.generations))
        return made


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer is one packet: the end of one in two waits for the client to confirm the first
    disable_nagle_algorithm = True
    bucket: Bucket

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""

    # ---------------------------------------------------------------------------------------------- answering

    def answer(self, status: int, body: bytes = b"", **headers: object) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status: int, code: str) -> None:
        text = f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code><Message>{code}</Message></Error>"
        self.answer(status, text.encode(), Content_Type="application/xml")

    def route(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        bucket, _, key = unquote(parts.path.lstrip("/")).partition("/")
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.refuse(401, "AuthenticationRequired")
        if bucket != BUCKET:
            return self.refuse(404, "NoSuchBucket")
        with self.bucket.lock:
            if not key:
                return self.list(query) if self.command == "GET" else self.refuse(400, "InvalidArgument")
            acts = {"GET": self.get, "HEAD": self.get, "PUT": self.put, "DELETE": self.delete, "POST": self.post}
            return acts[self.command](key, query, body)

    do_GET = do_HEAD = do_PUT = do_DELETE = do_POST = route  # noqa: N815

    # ------------------------------------------------------------------------------------------------ objects

    def get(self, key: str, query: dict[str, str], body: bytes) -> None:
        found = self.bucket.objects.get(key)
        if found is None:
            return self.refuse(404, "NoSuchKey")
        wanted = self.headers.get("If-Match")
        if wanted is not None and wanted != found.etag:
            return self.refuse(412, "PreconditionFailed")
        about = {"ETag": found.etag, "x_goog_generation": found.generation, "Last_Modified": formatdate(usegmt=True),
                 "Content_Type": "application/octet-stream"}  # fmt: skip
        span = self.headers.get("Range")
        if span is None or self.command == "HEAD":
            size = {"Content_Length": len(found.data)} if self.command == "HEAD" else {}
            return self.answer(200, found.data, **about, **size)
        first, _, last = span.removeprefix("bytes=").partition("-")
        begin, end = int(first), min(int(last) + 1 if last else len(found.data), len(found.data))
        if begin >= len(found.data):
            return self.refuse(416, "InvalidRange")
        about["Content_Range"] = f"bytes {begin}-{end - 1}/{len(found.data)}"
        return self.answer(206, found.data[begin:end], **about)

    def put(self, key: str, query: dict[str, str], body: bytes) -> None:
        if "uploadId" in query:
            self.bucket.uploads[query["uploadId"]][int(query["partNumber"])] = body
            return self.answer(200, ETag=f'"{hashlib.md5(body).hexdigest()}"')
        if self.headers.get("If-Match") or self.headers.get("If-None-Match"):
            return self.refuse(400, "an XML API write knows generations, no ETags")
        condition = self.headers.get("x-goog-if-generation-match")
        there = self.bucket.objects.get(key)
        if condition is not None and int(condition) != (there.generation if there else 0):
            return self.refuse(412, "PreconditionFailed")
        source = self.headers.get("x-goog-copy-source")
        if source is not None:
            copied = self.bucket.objects.get(unquote(source).lstrip("/").partition("/")[2])
            if copied is None:
                return self.refuse(404, "NoSuchKey")
            made = self.bucket.put(key, copied.data)
            return self.answer(200, b"<CopyObjectResult/>", ETag=made.etag)
        made = self.bucket.put(key, body)
        return self.answer(200, ETag=made.etag, x_goog_generation=made.generation)

    def delete(self, key: str, query: dict[str, str], body: bytes) -> None:
        if "uploadId" in query:
            self.bucket.uploads.pop(query["uploadId"], None)
            return self.answer(204)
        if self.bucket.objects.pop(key, None) is None:
            return self.refuse(404, "NoSuchKey")
        return self.answer(204)

    def post(self, key: str, query: dict[str, str], body: bytes) -> None:
        if "uploads" in query:
            name = f"upload-{next(self.bucket.generations)}"
            self.bucket.uploads[name] = {}
            text = (
                f"<InitiateMultipartUploadResult><Bucket>{BUCKET}</Bucket><Key>{escape(key)}</Key>"
                f"<UploadId>{name}</UploadId></InitiateMultipartUploadResult>"
            )
            return self.answer(200, text.encode())
        parts = self.bucket.uploads.pop(query["uploadId"])
        named = [int(part.text or 0) for part in ElementTree.fromstring(body).iter() if part.tag.endswith("PartNumber")]
        made = self.bucket.put(key, b"".join(parts[number] for number in named))
        text = f"<CompleteMultipartUploadResult><ETag>{escape(made.etag)}</ETag></CompleteMultipartUploadResult>"
        return self.answer(200, text.encode(), x_goog_generation=made.generation)

    # ------------------------------------------------------------------------------------------------ listing

    def list(self, query: dict[str, str]) -> None:
        if query.get("list-type") != "2":
            return self.refuse(400, "InvalidArgument")
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("continuation-token") or query.get("start-after") or query.get("offset", "")
        most = int(query.get("max-keys", "1000"))
        shown: list[str] = []
        common: list[str] = []
        last = ""
        for key in sorted(self.bucket.objects):
            folder = ""
            if delimiter and delimiter in key[len(prefix) :]:
                folder = prefix + key[len(prefix) :].split(delimiter, 1)[0] + delimiter
            if not key.startswith(prefix) or key <= after or (folder and folder in common):
                continue
            if folder and after.startswith(folder):
                continue
            if len(shown) + len(common) == most:
                break
            last = folder or key
            if folder:
                common.append(folder)
            else:
                shown.append(self.described(key))
        else:
            last = ""
        prefixes = "".join(f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in common)
        more = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{escape(last)}</NextContinuationToken>"
        text = (
            f"<?xml version='1.0' encoding='UTF-8'?><ListBucketResult><Name>{BUCKET}</Name>"
            f"<Prefix>{escape(prefix)}</Prefix>{''.join(shown)}{prefixes}{more if last else ''}</ListBucketResult>"
        )
        return self.answer(200, text.encode(), Content_Type="application/xml")

    def described(self, key: str) -> str:
        found = self.bucket.objects[key]
        return (
            f"<Contents><Key>{escape(key)}</Key><Generation>{found.generation}</Generation><Size>{len(found.data)}</Size>"
            f"<LastModified>2026-01-02T03:04:05.000Z</LastModified><ETag>{escape(found.etag)}</ETag></Contents>"
        )


@contextmanager
def gcs_server() -> Iterator[str]:
    """Yields its address. One bucket, one token."""
    handler = type("Running", (Handler,), {"bucket": Bucket()})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
