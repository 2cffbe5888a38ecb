"""Parts of a mail message as the IMAP server describes them, and its JSON form."""

from __future__ import annotations

import binascii
import json
import quopri
import re
from email import message_from_bytes
from email.header import decode_header, make_header
from email.message import Message
from email.utils import collapse_rfc2231_value, decode_params, getaddresses
from typing import Any, Final, NamedTuple

from ramet.backends.file_names import as_name

STEM_BYTES: Final = 160
NAME_BYTES: Final = 200
_PLAIN: Final = re.compile(r"[^\w.,+@=-]+")
KEYS: Final = (
    "uid", "uidvalidity", "folder", "message_id", "in_reply_to", "references", "date", "received", "subject", "from",
    "to", "cc", "bcc", "reply_to", "name", "address", "flags", "size", "text", "html", "attachments", "type", "file",
)  # fmt: skip


class Part(NamedTuple):
    """A leaf of a message: where it is, what it is, and how it is written."""

    section: str
    type: str
    charset: str
    encoding: str
    size: int
    filename: str
    attached: bool

    @property
    def is_body(self) -> bool:
        return self.type in ("text/plain", "text/html") and not self.attached and not self.filename

    @property
    def is_text(self) -> bool:
        return self.type.startswith("text/")

    @property
    def is_plain(self) -> bool:
        """Whether it is written as it is."""
        return self.encoding not in ("base64", "quoted-printable")

    def decoded(self, raw: bytes) -> bytes:
        decoder = Decoder(self.encoding)
        return decoder.feed(raw) + decoder.finish()


class Decoder:
    """Decodes a part piece by piece, as far as it can be read: mail is not always well formed."""

    def __init__(self, encoding: str) -> None:
        self._encoding, self._left = encoding, b""

    def feed(self, raw: bytes) -> bytes:
        if self._encoding == "base64":
            kept = self._left + re.sub(rb"[^A-Za-z0-9+/]", b"", raw)
            cut = len(kept) // 4 * 4
            self._left = kept[cut:]
            return binascii.a2b_base64(kept[:cut])
        if self._encoding == "quoted-printable":
            whole, newline, rest = (self._left + raw).rpartition(b"\n")
            self._left = rest
            return quopri.decodestring(whole + newline)
        return raw

    def finish(self) -> bytes:
        left, self._left = self._left, b""
        if self._encoding == "base64":  # a single character left over stands for nothing
            return binascii.a2b_base64(left + b"=" * (-len(left) % 4)) if len(left) > 1 else b""
        return quopri.decodestring(left)


def parts(structure: Any, section: str = "") -> list[Part]:
    """The leaves of a BODYSTRUCTURE. An attached message is one leaf."""
    if not isinstance(structure, list) or not structure:
        return []
    if isinstance(structure[0], list):
        found: list[Part] = []
        for number, child in enumerate(structure[: _children(structure)], 1):
            found += parts(child, f"{section}.{number}" if section else str(number))
        return found
    kind = f"{_word(structure, 0)}/{_word(structure, 1)}"
    parameters = _parameters(structure[2] if len(structure) > 2 else None)
    place = 9 if kind.startswith("text/") else 11 if kind == "message/rfc822" else 8
    disposition = structure[place] if len(structure) > place else None
    attached, filename = False, ""
    if isinstance(disposition, list) and disposition:
        attached = _word(disposition, 0) == "attachment"
        filename = _parameters(disposition[1] if len(disposition) > 1 else None).get("filename", "")
    size = _word(structure, 6)
    return [
        Part(
            section or "1", kind, parameters.get("charset", "utf-8"), _word(structure, 5),
            int(size) if size.isdigit() else 0, filename or parameters.get("name", ""), attached,
        )
    ]  # fmt: skip


def _children(structure: list[Any]) -> int:
    """How many of the first values are parts; behind them come the subtype and what belongs to it."""
    return next((i for i, item in enumerate(structure) if not isinstance(item, list)), len(structure))


def _word(values: list[Any], index: int) -> str:
    value = values[index] if index < len(values) else None
    return value.decode("ascii", "replace").lower() if isinstance(value, bytes) else ""


def _parameters(flat: Any) -> dict[str, str]:
    if not isinstance(flat, list):
        return {}
    pairs = [
        (flat[i].decode("utf-8", "replace").lower(), flat[i + 1].decode("utf-8", "replace"))
        for i in range(0, len(flat) - 1, 2)
        if isinstance(flat[i], bytes) and isinstance(flat[i + 1], bytes)
    ]
    found = {}
    for name, value in decode_params([("", ""), *pairs])[1:]:
        plain = collapse_rfc2231_value(value)
        found[name.rstrip("*")] = heading(plain.removeprefix('"').removesuffix('"'))
    return found


def heading(raw: str | bytes | None) -> str:
    """A header's text, its encoded words decoded where that is possible."""
    if raw is None:
        return ""
    plain = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    plain = re.sub(r"\r?\n(?=[ \t])", "", plain)
    if "=?" not in plain:
        return plain
    try:
        return str(make_header(decode_header(plain)))
    except (LookupError, UnicodeError, ValueError):
        return plain


def stem(subject: str, uid: int | str) -> str:
    """`<subject>__<uid>`: a name that needs no quoting in a shell."""
    plain = re.sub(r"_+", "_", _PLAIN.sub("_", subject)).strip("_.-") or "no_subject"
    cut = plain.encode()[:STEM_BYTES].decode("utf-8", "ignore").rstrip("_")
    return f"{cut}__{uid}"


def attachments(found: list[Part]) -> dict[str, Part]:
    """Return the attachments by file name; equal names get their part number."""
    named: dict[str, Part] = {}
    for part in found:
        if part.is_body:
            continue
        name = as_name(part.filename) if part.filename else f"part-{part.section}{EXTENSIONS.get(part.type, '')}"
        if len(name.encode()) > NAME_BYTES:
            start, dot, suffix = name.rpartition(".")
            kept = f"{dot}{suffix}" if start and len(suffix) < 20 else ""
            name = name.encode()[: NAME_BYTES - len(kept)].decode("utf-8", "ignore") + kept
        if name in named:
            name = f"{part.section}-{name}"
        named[name] = part
    return named


EXTENSIONS: Final = {
    "message/rfc822": ".eml", "text/calendar": ".ics", "image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif",
    "application/pdf": ".pdf", "text/html": ".html", "text/plain": ".txt",
}  # fmt: skip


def as_text(part: Part, raw: bytes) -> str:
    data = part.decoded(raw)
    try:
        plain = data.decode(part.charset)
    except (LookupError, UnicodeDecodeError):
        plain = data.decode("utf-8", "replace")
    return plain.replace("\r\n", "\n")


def as_json(
    about: dict[str, object], header: bytes | Message, bodies: list[tuple[Part, str]], files: dict[str, Part]
) -> bytes:
    """A message to be read: its header in words, its text, and what hangs on it."""
    message = message_from_bytes(header) if isinstance(header, bytes) else header
    plain: dict[str, object] = {
        **about,
        "subject": heading(message["subject"]),
        "date": message["date"],
        **{name: _people(message, name) for name in ("from", "to", "cc", "bcc")},
        "reply_to": _people(message, "reply-to"),
        "message_id": message["message-id"],
        "in_reply_to": message["in-reply-to"],
        "references": (message["references"] or "").split(),
    }
    texts = [text for part, text in bodies if part.type == "text/plain"]
    if texts:
        plain["text"] = "\n".join(texts)
    else:
        plain["html"] = "\n".join(text for _, text in bodies)
    plain["attachments"] = [{"file": name, "type": part.type} for name, part in files.items()]
    return json.dumps(plain, indent=2, ensure_ascii=False, default=str).encode("utf-8", "replace") + b"\n"


def _people(message: Message, name: str) -> list[dict[str, str]]:
    values = [str(value) for value in message.get_all(name, [])]
    return [{"name": heading(shown), "address": address} for shown, address in getaddresses(values) if shown or address]
