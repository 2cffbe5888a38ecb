"""`Pages`: the files of the web page as an ASGI application, and its sign-in links.

Rules that this file keeps:
- Files are served from a table read at start: a request path is a key, never a host path.
- A link works once, for a limited time. It carries a code instead of the token, in the URL fragment, which browsers
  never send: logs, proxies and process lists do not see the token.
- The files contain nothing of the store and need no token; the page fetches all data from `/v1`.
- The page itself is asked for each time. Its files have the digest of all of them in their URLs, and are kept.
- `render` colors text that the page sends, and returns data, never markup: it reads nothing of the store.
"""

from __future__ import annotations

import hashlib
import hmac
import posixpath
import re
from collections.abc import Iterable, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final, Literal, NamedTuple

import msgspec

from ramet.apps.server.api import problem_reply
from ramet.apps.server.links import Links
from ramet.apps.server.problems import Refusal
from ramet.apps.server.request import Call, ClientGone, Receive, Reply, Scope, Send, answer, decode_json, send_reply
from ramet.apps.ui.renderer import CHARACTERS, Renderer

UI: Final = "/ui"
TYPES: Final = {
    ".html": b"text/html; charset=utf-8", ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8", ".svg": b"image/svg+xml", ".txt": b"text/plain; charset=utf-8",
}  # fmt: skip
POLICY: Final = "; ".join((
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' blob:", "connect-src 'self'",
    "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
    "require-trusted-types-for 'script'", "trusted-types 'none'",
))  # fmt: skip
"""Content security policy: scripts, styles and requests from this origin only, and no inline markup or scripts."""
HEADERS: Final = (
    (b"content-security-policy", POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    (b"x-frame-options", b"DENY"),
)
VERSION: Final = re.compile(r"/v-([0-9a-f]{16})(?=/)")
FOREVER: Final = b"public, max-age=31536000, immutable"
"""The caching of a URL that contains the digest of the files."""
LINKED: Final = re.compile(rb'(href|src)="([\w.-]+\.(?:css|js|svg))"')
IMPORTED: Final = re.compile(rb'^(?:import|export) .*from "(\.[^"]+)";$', re.M)
CODE: Final = re.compile(rb"[A-Za-z0-9_-]{43}")


class File(NamedTuple):
    """A static file with its headers."""

    content: bytes
    type: bytes
    etag: str


class Text(msgspec.Struct, forbid_unknown_fields=True):
    """What `render` is asked for."""

    text: str
    name: str = ""
    """Name of the file, which tells its language."""
    kind: Literal["code", "markdown"] = "code"


def files(folder: Traversable | None = None, below: str = "") -> dict[str, File]:
    """Load the static files by request path; `/` is the page itself."""
    found: dict[str, File] = {}
    for one in (resources.files("ramet.apps.ui") / "static" if folder is None else folder).iterdir():
        name = f"{below}/{one.name}"
        if one.is_dir():
            found |= files(one, name)
        elif name[name.rfind(".") :] in TYPES:
            found[name] = _file(one.read_bytes(), name)
    if not below:
        found["/"] = found["/index.html"]
    return found


def _file(content: bytes, name: str) -> File:
    return File(content, TYPES[name[name.rfind(".") :]], f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def version_of(found: Mapping[str, File]) -> str:
    """Return the digest of all files."""
    return hashlib.sha256("".join(found[name].etag for name in sorted(found)).encode()).hexdigest()[:16]


def page_with_versions(found: Mapping[str, File], version: str) -> File:
    """Return the page with the version in its links, and with links to all modules, to be fetched at once."""
    start = "/app.js"
    modules = [start]
    for name in modules:
        below = [posixpath.join(posixpath.dirname(name), one.decode()) for one in IMPORTED.findall(found[name].content)]
        modules += dict.fromkeys(one for one in map(posixpath.normpath, below) if one not in modules)
    ahead = "".join(f'    <link rel="modulepreload" href="v-{version}{name}">\n' for name in modules if name != start)
    content = LINKED.sub(rb'\1="v-%s/\2"' % version.encode(), found["/"].content)
    return _file(content.replace(b"  </head>", ahead.encode() + b"  </head>", 1), "/index.html")


class Pages:
    """The web page as an ASGI application, for `serve(mounts={UI: Pages(...)})`."""

    def __init__(self, token: str, others: Iterable[str] = (), links: Links | None = None) -> None:
        self._tokens = [one.encode() for one in (token, *others) if one]
        self._first = token
        self.links = links or Links()
        found = files()
        self._version = version_of(found)
        page = page_with_versions(found, self._version)
        self._files: Mapping[str, File] = {**found, "/": page, "/index.html": page}
        self._renderer = Renderer()

    def link(self, origin: str, place: str = "") -> str:
        """Return a one-time URL of the page at a place such as `ws/NAME`."""
        return f"{origin.rstrip('/')}{UI}/#/{place}?link={self.links.make(self._first)}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = Call(scope, receive)
        try:
            path = scope["path"].removeprefix(scope.get("root_path", ""))
            reply = await self._answer(call, scope["method"], path)
        except Refusal as refused:
            reply = problem_reply(refused)
        except ClientGone:
            return
        reply.headers += HEADERS
        await send_reply(reply, call, send)

    async def _answer(self, call: Call, method: str, path: str) -> Reply:
        if path == "/link":
            self._only(method, "POST")
            return answer({"link": self.links.make(self._bearer(call))}, 201)
        if path == "/redeem":
            self._only(method, "POST")
            return await self._redeem(call)
        if path == "/render":
            self._only(method, "POST")
            self._bearer(call)
            try:
                asked = decode_json(await call.body(8 * CHARACTERS), Text)
            except msgspec.MsgspecError as error:
                raise Refusal("invalid_argument", str(error), "send the text as JSON") from None
            return answer(await self._renderer.ask(asked.kind, asked.name, asked.text))
        version = VERSION.match(path)
        found = self._files.get(path if version is None else path[version.end() :])
        if found is None:
            raise Refusal("not_found", "no such route", f"Open {UI}/.")
        self._only(method, "GET", "HEAD")
        caching = FOREVER if version is not None and version[1] == self._version else b"no-cache"
        headers = [(b"content-type", found.type), (b"etag", found.etag.encode()), (b"cache-control", caching)]
        given = call.header(b"if-none-match") or ""
        if found.etag in (one.strip().removeprefix("W/") for one in given.split(",")):
            return Reply(status=304, headers=headers)
        length = (b"content-length", str(len(found.content)).encode())
        return Reply(found.content, 200, [*headers, length])

    def _only(self, method: str, *allowed: str) -> None:
        if method not in allowed:
            known = ", ".join(allowed)
            raise Refusal(
                "invalid_argument", f"method {method} is not allowed here", f"use {known}", status=405,
                headers={"allow": known},
            )  # fmt: skip

    def _bearer(self, call: Call) -> str:
        """Return the request's token: a link signs in as the principal that requested it."""
        kind, _, given = (call.header(b"authorization") or "").partition(" ")
        token = given.strip().encode("latin-1")
        right = [hmac.compare_digest(token, one) for one in self._tokens]
        if kind.lower() != "bearer" or not any(right):
            raise Refusal(
                "unauthenticated", "missing token", "send Authorization: Bearer TOKEN",
                headers={"www-authenticate": "Bearer"},
            )  # fmt: skip
        return token.decode("latin-1")

    async def _redeem(self, call: Call) -> Reply:
        code = (await call.body(1000)).strip()
        token = self.links.redeem(code) if CODE.fullmatch(code) else None
        if token is None:
            raise Refusal(
                "unauthenticated", "this link was used or has expired", "run `ramet ui` for a new one, or "
                "enter the token of the server",
            )  # fmt: skip
        return answer({"token": token})
