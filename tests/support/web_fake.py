"""A web server on loopback that shows what it was asked, and answers in all the ways that clients must understand."""

from __future__ import annotations

import base64
import gzip
import json
import ssl
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

PAGE = b'<html><a href="b.html">b</a><a href="/site/c/d.txt">d</a><a href="http://127.0.0.2:1/x">x</a></html>'
CONTENT = bytes(range(256)) * 40


@dataclass
class Web:
    port: int
    seen: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    """Method, path with query, headers, body."""
    failures: int = 0
    """How often `/flaky` still fails."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "Fake/1", ""
    web: Web

    def version_string(self) -> str:
        return self.server_version

    def date_time_string(self, timestamp: float | None = None) -> str:
        return "Thu, 01 Jan 1970 00:00:00 GMT"

    def log_message(self, *_: Any) -> None:
        """Silence."""

    def reply(self, status: int, body: bytes = b"", /, **headers: str) -> None:
        self.send_response(status)
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def handle_any(self) -> None:
        body = self.body()
        self.web.seen.append((self.command, self.path, dict(self.headers.items()), body))
        parts = urlsplit(self.path)
        query = {name: rows[-1] for name, rows in parse_qs(parts.query).items()}
        name = parts.path.split("/")[1]
        getattr(self, f"at_{name}", self.at_nothing)(query, body)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815

    def at_nothing(self, query: dict[str, str], body: bytes) -> None:
        self.reply(404, b"not here\n", Content_Type="text/plain")

    def at_echo(self, query: dict[str, str], body: bytes) -> None:
        asked = {key: text for key, text in self.headers.items() if key.lower() != "host"}
        shown = {"method": self.command, "path": self.path, "headers": asked, "body": body.decode("latin-1")}
        self.reply(200, json.dumps(shown, indent=1).encode() + b"\n", Content_Type="application/json")

    def at_reflect(self, query: dict[str, str], body: bytes) -> None:
        """Show the credentials in every place of an answer, and in the forms that servers write."""
        shown = self.headers.get("Authorization", self.headers.get("X-Key", ""))
        encoded = [base64.b64encode((before + shown).encode()).decode() for before in ("", "1", "12")]
        text = json.dumps([shown, encoded]) + json.dumps(shown).replace("/", "\\/") + quote(shown)
        self.send_response(200, shown)
        self.send_header("X-" + "".join(char for char in shown if char.isalnum()), "name")
        for name in ("X-Shown", "Set-Cookie", "Location", "WWW-Authenticate"):
            self.send_header(name, f"a={shown}")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def at_hello(self, query: dict[str, str], body: bytes) -> None:
        self.reply(200, b"hello\n", Content_Type="text/plain")

    def at_status(self, query: dict[str, str], body: bytes) -> None:
        self.reply(int(query["is"]), b"as asked\n")

    def at_to(self, query: dict[str, str], body: bytes) -> None:
        self.reply(int(query.get("is", "302")), b"moved\n", Location=query["url"])

    def at_round(self, query: dict[str, str], body: bytes) -> None:
        self.reply(302, b"", Location="/round")

    def at_cookies(self, query: dict[str, str], body: bytes) -> None:
        self.send_response(200)
        for cookie in ("a=1", "b=2; Path=/echo", "c=3; Max-Age=0", "d=4; Domain=evil.example", "e=5; HttpOnly; Path=/"):
            self.send_header("Set-Cookie", cookie)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def at_packed(self, query: dict[str, str], body: bytes) -> None:
        self.reply(200, gzip.compress(b"packed\n", mtime=0), Content_Encoding="gzip")

    def at_deflated(self, query: dict[str, str], body: bytes) -> None:
        self.reply(200, zlib.compress(b"deflated\n"), Content_Encoding="deflate")

    def at_damaged(self, query: dict[str, str], body: bytes) -> None:
        self.reply(200, b"no gzip at all, this", Content_Encoding="gzip")

    def at_strange(self, query: dict[str, str], body: bytes) -> None:
        self.reply(200, b"strange\n", Content_Encoding="x-strange")

    def at_private(self, query: dict[str, str], body: bytes) -> None:
        if self.headers.get("Authorization") == "Basic dTpw":
            self.reply(200, b"private\n")
        else:
            self.reply(401, b"who are you?\n", WWW_Authenticate='Basic realm="test"')

    def at_breaking(self, query: dict[str, str], body: bytes) -> None:
        """A file whose first answers break off in the middle; with `whole`, it knows no ranges."""
        if "whole" in query:
            del self.headers["Range"]
        if not self.web.failures:
            self.at_file(query, body)
            return
        self.web.failures -= 1
        self.reply(200, CONTENT[:5000], Content_Length=str(len(CONTENT)))
        self.close_connection = True

    def at_short(self, query: dict[str, str], body: bytes) -> None:
        self.reply(200, b"abc", Content_Length="10")
        self.close_connection = True

    def at_silent(self, query: dict[str, str], body: bytes) -> None:
        self.close_connection = True

    def at_slow(self, query: dict[str, str], body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "10")
        self.end_headers()
        self.wfile.write(b"abc")
        self.wfile.flush()
        self.rfile.read(1)  # until the client goes away

    def at_flaky(self, query: dict[str, str], body: bytes) -> None:
        if self.web.failures:
            self.web.failures -= 1
            self.reply(503, b"busy\n", **({"Retry_After": query["after"]} if "after" in query else {}))
        else:
            self.reply(200, b"at last\n")

    def at_file(self, query: dict[str, str], body: bytes) -> None:
        asked = self.headers.get("Range", "")
        if not asked.startswith("bytes="):
            self.reply(200, CONTENT, Content_Type="application/octet-stream")
            return
        low, _, high = asked[6:].partition("-")
        start, stop = int(low or len(CONTENT) - int(high)), int(high) + 1 if low and high else len(CONTENT)
        if start >= len(CONTENT):
            self.reply(416, b"", Content_Range=f"bytes */{len(CONTENT)}")
            return
        self.reply(206, CONTENT[start:stop], Content_Range=f"bytes {start}-{stop - 1}/{len(CONTENT)}")

    def at_named(self, query: dict[str, str], body: bytes) -> None:
        self.reply(200, b"named\n", Content_Disposition='attachment; filename="../../report.txt"')

    def at_site(self, query: dict[str, str], body: bytes) -> None:
        if self.path == "/site/":
            self.reply(200, PAGE, Content_Type="text/html")
        elif self.path == "/site/b.html":
            self.reply(200, b'<a href="/outside">o</a><a href="/site/">up</a>', Content_Type="text/html")
        else:
            self.reply(200, self.path.encode(), Content_Type="text/plain")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    tls: ssl.SSLContext | None = None

    def finish_request(self, request: Any, client_address: Any) -> None:
        if self.tls is None:
            super().finish_request(request, client_address)
            return
        with self.tls.wrap_socket(request, server_side=True) as secured:  # in the thread of the connection
            super().finish_request(secured, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients go away as they like."""


@contextmanager
def web_fake(tls: ssl.SSLContext | None = None) -> Iterator[Web]:
    """With `tls`, it speaks HTTPS; the names in `url` are up to the test then."""
    handler = type("Handler", (_Handler,), {})
    with Server(("127.0.0.1", 0), handler) as server:
        web = Web(server.server_port)
        server.tls = tls
        handler.web = web  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield web
        finally:
            server.shutdown()
            thread.join()
