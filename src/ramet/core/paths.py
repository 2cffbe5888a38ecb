"""`Path`: an absolute, normalized path inside a workspace; only `parse` makes one from text.

Names are `str` decoded with surrogateescape, so every byte string that a filesystem can hold survives a round trip.
"""

from __future__ import annotations

import errno
from typing import Final

from ramet.core.errors import fail

NAME_MAX: Final = 255
PATH_MAX: Final = 4096
TEXT_MAX: Final = 16 * PATH_MAX
"""Characters of a path text, before normalization, beyond which it is ENAMETOOLONG."""


class Path(str):
    """A parsed path: starts with `/`, has no empty, `.` or `..` segment, no trailing slash, no NUL."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """Return the last segment; empty for the root."""
        return self[self.rfind("/") + 1 :]

    @property
    def parent(self) -> Path:
        cut = self.rfind("/")
        return Path(self[:cut]) if cut > 0 else ROOT

    @property
    def parts(self) -> list[str]:
        return self[1:].split("/") if len(self) > 1 else []

    def __truediv__(self, name: str) -> Path:
        """Return the child `name`, which must be one segment (use `parse` for user input)."""
        return Path(f"{self}/{name}") if len(self) > 1 else Path("/" + name)

    def under(self, top: Path) -> bool:
        """Return whether this is `top` or lies below it."""
        return self == top or len(top) == 1 or self.startswith(top + "/")

    def below(self, top: Path) -> Path:
        """Return this path relative to `top`: the inverse of `onto`."""
        if len(top) == 1:
            return self
        return Path(self[len(top) :]) if len(self) > len(top) else ROOT

    def onto(self, top: Path) -> Path:
        """Return this path below `top`."""
        if len(top) == 1:
            return self
        return Path(top + self) if len(self) > 1 else top


ROOT: Final = Path("/")


def parse(text: str, cwd: Path = ROOT) -> Path:
    """Parse `text` relative to `cwd`; `..` at the root stays at the root, as in POSIX."""
    if not text:
        raise fail(errno.ENOENT, text)
    if len(text) >= TEXT_MAX:
        raise fail(errno.ENAMETOOLONG, text)
    if "\0" in text:
        raise fail(errno.EINVAL, text.replace("\0", "\\0"))
    if text[0] != "/":
        text = f"{cwd}/{text}"
    if "//" in text or "/." in text or text[-1] == "/":
        text = _normalized(text)
    if len(text) >= NAME_MAX // 4:
        _check_length(text)
    return Path(text)


def _normalized(text: str) -> str:
    kept: list[str] = []
    for part in text.split("/"):
        if part == "..":
            if kept:
                kept.pop()
        elif part and part != ".":
            kept.append(part)
    return "/" + "/".join(kept)


def _check_length(text: str) -> None:
    raw = encode(text)
    if len(raw) >= PATH_MAX or max(map(len, raw.split(b"/"))) > NAME_MAX:
        raise fail(errno.ENAMETOOLONG, text)


def encode(text: str) -> bytes:
    """Encode a name, word or path to bytes."""
    return text.encode("utf-8", "surrogateescape")


def decode(raw: bytes) -> str:
    """Decode any bytes to text, reversible by `encode`."""
    return raw.decode("utf-8", "surrogateescape")
