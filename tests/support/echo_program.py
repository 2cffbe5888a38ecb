"""A program that listens: it tells what it was asked, and answers in all the ways that a proxy must survive.

Runs as `python3 echo_program.py PORT` with the standard library of the box.
"""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import struct
import sys
from typing import Any
from urllib.parse import unquote

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Echo(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        return

    def reply(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def answer(self) -> None:
        path, _, query = self.path.partition("?")
        if self.headers.get("Upgrade", "").lower() == "websocket":
            self.talk()
        elif path == "/to":
            self.reply(307, b"", ("Location", unquote(query)))
        elif path == "/bad":
            headers = [
                ("Set-Cookie", "a=b; Path=/; Domain=localhost"), ("Set-Cookie", "ramet-port=x"),
                ("Clear-Site-Data", '"*"'), ("Access-Control-Allow-Origin", "*"), ("Alt-Svc", 'h2=":1"'),
                ("Strict-Transport-Security", "max-age=1"), ("Service-Worker-Allowed", "/"), ("X-Own", "kept"),
                ("Connection", "x-hop"), ("X-Hop", "1"), ("Content-Security-Policy", "default-src *"),
                ("WWW-Authenticate", "Basic"), ("Cache-Control", "public, max-age=99"), ("Content-Type", "text/html"),
            ]  # fmt: skip
            self.reply(200, b"<script>1</script>", *headers)
        elif path == "/endless":
            self.endless()
        elif path == "/cut":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"abc")
            self.close_connection = True
        elif path == "/mute":
            self.rfile.read()
        elif path == "/garbage":
            self.wfile.write(b"no HTTP\r\n\r\n")
            self.close_connection = True
        elif path == "/early":
            self.reply(413, b"too much")
            self.close_connection = True
        else:
            told = {"method": self.command, "path": self.path, "headers": self.headers.items(), "size": self.taken()}
            self.reply(200, json.dumps(told).encode())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self.answer
        raise AttributeError(name)

    def taken(self) -> int:
        """Read the body, and count it."""
        size = 0
        if self.headers.get("Transfer-Encoding") == "chunked":
            while count := int(self.rfile.readline(), 16):
                size += len(self.rfile.read(count))
                self.rfile.readline()
            return size
        left = int(self.headers.get("Content-Length") or 0)
        while left:
            block = self.rfile.read(min(left, 65536))
            left, size = left - len(block), size + len(block)
        return size

    def endless(self) -> None:
        """Send events until nobody listens, and say so in a file."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        number = 0
        try:
            while True:
                self.wfile.write(b"data: %d\n\n" % number + b":" * 65536 + b"\n\n")
                number += 1
        except OSError:
            with open("/ended", "w") as file:
                file.write("ended")
        self.close_connection = True

    def talk(self) -> None:
        key = base64.b64encode(hashlib.sha1((self.headers["Sec-WebSocket-Key"] + GUID).encode()).digest()).decode()
        self.send_response(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", key)):
            self.send_header(name, value)
        self.send_header("Set-Cookie", "ws=1")
        if offered := self.headers.get("Sec-WebSocket-Protocol"):
            self.send_header("Sec-WebSocket-Protocol", offered.split(",")[0].strip())
        self.end_headers()
        while len(head := self.rfile.read(2)) == 2:
            code, size = head[0] & 15, head[1] & 127
            if size >= 126:
                form = ">H" if size == 126 else ">Q"
                (size,) = struct.unpack(form, self.rfile.read(struct.calcsize(form)))
            mask = self.rfile.read(4)
            data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(self.rfile.read(size)))
            if code == 8 or data == b"break off":
                self.wfile.write(b"\x88\x02\x0f\xa0" if data != b"break off" else b"")
                break
            if data == b"headers":
                data = json.dumps(self.headers.items()).encode()
            count = bytes([len(data)]) if len(data) < 126 else b"\x7e" + struct.pack(">H", len(data))
            self.wfile.write(bytes([0x80 | code]) + count + data)
        self.close_connection = True


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Echo).serve_forever()
