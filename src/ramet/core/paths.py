"""`Path`: an absolute, normalized path inside a workspace; only `parse` makes one from text.

Names are `str` decoded with surrogateescape, so any byte string a filesystem can hold survives a round trip.
"""

from __future__ import annotations

import errno
from typing import Final

from ramet.core.errors import fail

NAME_MAX: Final = 255
PATH_MAX: Final = 4096
TEXT_MAX: Final = 16 * PATH_MAX
"""Characters from which on a text names nothing, whatever of it `.` and `..` take away: no kernel would look at it."""


class Path(str):
    """A parsed path: starts with `/`, has no empty, `.` or `..` segment, no trailing slash, no NUL."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The last segment; empty for the root."""
        return self[self.rfind("/") + 1 :]

    @property
    def parent(self) -> Path:
        cut = self.rfind("/")
        return Path(self[:cut]) if cut > 0 else ROOT

    @property
    def parts(self) -> list[str]:
        return self[1:].split("/") if len(self) > 1 else []

    def __truediv__(self, name: str) -> Path:
        """The child `name`, which is one segment (use `parse` for anything a person typed)."""
        return Path(f"{self}/{name}") if len(self) > 1 else Path("/" + name)

    def under(self, top: Path) -> bool:
        """Whether this is `top` or lies below it."""
        return self == top or len(top) == 1 or self.startswith(top + "/")

    def below(self, top: Path) -> Path:
        """This path as seen from `top`: the inverse of `onto`."""
        if len(top) == 1:
            return self
        return Path(self[len(top) :]) if len(self) > len(top) else ROOT

    def onto(self, top: Path) -> Path:
        """This path transplanted below `top`."""
        if len(top) == 1:
            return self
        return Path(top + self) if len(self) > 1 else top


ROOT: Final = Path("/")


def parse(text: str, cwd: Path = ROOT) -> Path:
    """The path that `text` names for someone in `cwd`; `..` at the root stays at the root, as in POSIX."""
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
    """The bytes of a name, word or path."""
    return text.encode("utf-8", "surrogateescape")


def decode(raw: bytes) -> str:
    """Text for any bytes, reversible by `encode`."""
    return raw.decode("utf-8", "surrogateescape")
