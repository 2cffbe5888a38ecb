"""Forms with files: the bodies of requests that upload what a `post` carries."""

from __future__ import annotations

import mimetypes
import secrets
from collections.abc import Iterable, Mapping

from ramet.core.paths import encode


def form_with_files(fields: Mapping[str, str], files: Iterable[tuple[str, str, bytes]]) -> tuple[bytes, dict[str, str]]:
    """A body of multipart/form-data and its header. A file is the name of its field, its file name and its content."""
    boundary = secrets.token_hex(16)
    parts: list[bytes] = []
    for name, value in fields.items():
        parts.append(f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode())
    for name, file, content in files:
        kind = mimetypes.guess_type(file)[0] or "application/octet-stream"
        shown = file.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{shown}"\r\n'
        parts += [encode(f"{head}Content-Type: {kind}\r\n\r\n"), content, b"\r\n"]
    parts.append(f"--{boundary}--\r\n".encode())
    return b"".join(parts), {"Content-Type": f"multipart/form-data; boundary={boundary}"}
