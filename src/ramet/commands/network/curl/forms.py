"""Multipart forms: `-F` and `--form-string`. Files are read while they are sent."""

from __future__ import annotations

import base64
import posixpath
import re
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Final

from ramet.commands.framework.command import UsageError
from ramet.commands.network.curl.data import READ_FAILED, Payload, read_file
from ramet.commands.network.curl.options import CurlError, CurlOptions, Status
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc

_TYPES: Final = {
    ".gif": "image/gif", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".svg": "image/svg+xml",
    ".txt": "text/plain", ".htm": "text/html", ".html": "text/html", ".pdf": "application/pdf",
    ".xml": "application/xml",
}  # fmt: skip
_ENCODERS: Final = ("binary", "8bit", "7bit", "base64")
_LINE: Final = 57
"""Bytes of a line of base64."""
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"\s*')


@dataclass
class _Part:
    """A part of a form, or a file of several that one field has."""

    content: bytes = b""
    word: str = ""
    """The file whose content it is."""
    size: int | None = None
    filename: str | None = None
    kind: str | None = None
    encoder: str = ""
    headers: list[str] = field(default_factory=list)
    files: list[_Part] = field(default_factory=list)
    boundary: str = ""

    def head(self, first: str) -> bytes:
        lines = [first + ("" if self.filename is None else f'; filename="{_escaped(self.filename)}"')]
        lines += [f"Content-Type: {self.kind}"] if self.kind else []
        lines += [f"Content-Transfer-Encoding: {self.encoder}"] if self.encoder else []
        return encode("\r\n".join([*lines, *self.headers, "", ""]))

    @property
    def length(self) -> int | None:
        """Bytes of its content as it is sent."""
        if self.files:
            return _length([(one.head("Content-Disposition: attachment"), one) for one in self.files], self.boundary)
        size = self.size if self.word else len(self.content)
        if size is None or self.encoder != "base64":
            return size
        return (size + 2) // 3 * 4 + max(0, -(-size // _LINE) - 1) * 2

    async def blocks(self, proc: Proc) -> AsyncIterator[bytes]:
        if self.files:
            rows = [(one.head("Content-Disposition: attachment"), one) for one in self.files]
            async for block in _blocks(proc, rows, self.boundary):
                yield block
            return
        source = read_file(proc, self.word) if self.word else _once(self.content)
        async for block in source if self.encoder != "base64" else _in_base64(source):
            yield block


async def form(proc: Proc, o: CurlOptions) -> Payload:
    """The body of all `-F` and `--form-string`."""
    boundary = _boundary()
    rows: list[tuple[bytes, _Part]] = []
    for option, text in o.order:
        if option not in ("form", "form_string"):
            continue
        name, equals, content = str(text).partition("=")
        if not equals:
            raise UsageError(f"option {'-F' if option == 'form' else '--form-string'}: is badly used here", 2)
        part = _Part(encode(content)) if option == "form_string" else await _read(proc, content, o.silent)
        rows.append((part.head(f'Content-Disposition: form-data; name="{_escaped(name)}"'), part))
    kind = ("Content-Type", f"multipart/form-data; boundary={boundary}")
    return Payload(_length(rows, boundary), lambda: _blocks(proc, rows, boundary), headers=[kind])


async def _read(proc: Proc, content: str, quiet: bool) -> _Part:
    """A field: a value, `<FILE` for the content of a file, or `@FILE,FILE` for files."""
    mark = content[:1] if content[:1] in ("@", "<") else ""
    rest = content[len(mark) :]
    found: list[_Part] = []
    while True:
        word, rest = _word(rest, ";," if mark == "@" else ";")
        part = _Part() if mark else _Part(encode(word))
        rest = await _describe(proc, part, rest, "," if mark == "@" else "", quiet)
        if mark:
            await _open(proc, part, word, shown=mark == "@")
        found.append(part)
        if mark != "@" or not rest.startswith(","):
            break
        rest = rest[1:]
    if len(found) == 1:
        return found[0]
    boundary = _boundary()
    return _Part(files=found, boundary=boundary, kind=f"multipart/mixed; boundary={boundary}")


async def _describe(proc: Proc, part: _Part, rest: str, end: str, quiet: bool) -> str:
    """Read `;type=...;filename=...` and so on; returns what follows."""
    while rest.startswith(";"):
        rest = rest[1:].lstrip(" ")
        key, equals, after = rest.partition("=")
        if not equals or key not in ("type", "filename", "encoder", "headers"):
            unknown, rest = _word(rest, ";" + end)
            if unknown and not quiet:
                proc.stderr.write(encode(f"Warning: skip unknown form field: {unknown}\n"))
            continue
        said, rest = _word(after, ";" + end)
        if key == "type":
            part.kind = said
            while rest.startswith(";") and re.match(r";\s*(charset|boundary|version)=", rest):  # of the type itself
                more, rest = _word(rest[1:], ";" + end)
                part.kind += ";" + more
        elif key == "filename":
            part.filename = said
        elif key == "headers":
            part.headers += await _headers(proc, said)
        elif said in _ENCODERS:
            part.encoder = said
        else:
            raise CurlError(Status.USAGE, f"the encoder {said[:40]!r} is not supported: use base64 or 8bit")
    return rest


async def _headers(proc: Proc, said: str) -> list[str]:
    if said[:1] not in ("@", "<"):
        lines = [said]
    else:
        try:
            lines = decode(b"".join([block async for block in read_file(proc, said[1:])])).splitlines()
        except OSError:
            raise CurlError(Status.READ, READ_FAILED) from None
    return [line for line in lines if line.strip() and not re.search(r"[\r\n\0]", line)]


async def _open(proc: Proc, part: _Part, word: str, *, shown: bool) -> None:
    """Name the file of a part. What has no size is read at once, so that the body has one."""
    try:
        part.size = None if word == "-" else (await proc.stat(word, follow=True)).size
        if part.size is None or not shown:
            part.content = b"".join([block async for block in read_file(proc, word)])
        else:
            part.word = word
    except OSError:
        raise CurlError(Status.READ, READ_FAILED) from None
    if not shown:
        return
    if part.kind is None and (word != "-" or part.filename is not None):
        name = part.filename if part.filename is not None else word
        part.kind = _TYPES.get(posixpath.splitext(name)[1].lower(), "application/octet-stream")
    if part.filename is None:
        part.filename = posixpath.basename(word)


def _word(text: str, ends: str) -> tuple[str, str]:
    """A word up to one of `ends`, or in quotes; and what follows."""
    found = _QUOTED.match(text)
    if found is not None and (found.end() == len(text) or text[found.end()] in ends):
        return re.sub(r'\\([\\"])', r"\1", found[1]), text[found.end() :]
    cut = re.search(f"[{ends}]", text)
    return (text, "") if cut is None else (text[: cut.start()], text[cut.start() :])


# ------------------------------------------------------------------------------------------------------ sending


def _length(rows: list[tuple[bytes, _Part]], boundary: str) -> int | None:
    """Bytes of a multipart body: a line before each part, and one at the end."""
    total = len(boundary) + 6
    for head, part in rows:
        size = part.length
        if size is None:
            return None
        total += len(boundary) + 4 + len(head) + size + 2
    return total


async def _blocks(proc: Proc, rows: list[tuple[bytes, _Part]], boundary: str) -> AsyncIterator[bytes]:
    for head, part in rows:
        yield f"--{boundary}\r\n".encode() + head
        async for block in part.blocks(proc):
            yield block
        yield b"\r\n"
    yield f"--{boundary}--\r\n".encode()


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def _in_base64(source: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    held, begun = b"", False
    async for block in source:
        held += block
        whole = len(held) // _LINE * _LINE
        for at in range(0, whole, _LINE):
            yield (b"\r\n" if begun else b"") + base64.b64encode(held[at : at + _LINE])
            begun = True
        held = held[whole:]
    if held:
        yield (b"\r\n" if begun else b"") + base64.b64encode(held)


def _boundary() -> str:
    return "-" * 24 + secrets.token_hex(8)


def _escaped(text: str) -> str:
    return text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
