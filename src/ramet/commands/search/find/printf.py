"""`find -printf` formats compiled once, and the lines of -ls."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from ramet.commands.framework.command import UsageError
from ramet.commands.framework.file_modes import allocated, mode_of, mode_string, nlink_of, size_of
from ramet.commands.search.find.nodes import Found, Settings
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.stat import Kind
from ramet.text.strftime import NANO, at, strftime, zone_of
from ramet.text.width import bounded, number_of

_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", "0": "\0"}
_PART = re.compile(r"\\(?:([0-7]{1,3})|(.))|%([-+ #0]*)(\d*)(?:\.(\d+))?([ABCT].|.)|([^\\%]+)|(.)", re.S)
_LETTERS = {Kind.FILE: "f", Kind.DIR: "d", Kind.LINK: "l", Kind.FIFO: "p", Kind.SOCKET: "s", Kind.DEVICE: "c"}

Render = Callable[[Found], bytes | Awaitable[bytes]]


def compile_printf(proc: Proc, template: str, settings: Settings) -> Render:
    """Compile a format to a function from a file to bytes."""
    parts: list[str | Callable[[Found], str]] = []
    waits: dict[int, str] = {}
    stop = False
    for found in _PART.finditer(template):
        octal, escape, flags, width, precision, letter, text, other = found.groups()
        if octal is not None:
            parts.append(chr(int(octal, 8) & 255) if int(octal, 8) < 128 else chr(0xDC00 + (int(octal, 8) & 255)))
        elif escape is not None:
            if escape == "c":
                stop = True
                break
            if escape not in _ESCAPES:
                proc.complain(f"warning: unrecognized escape `\\{escape}'")
            parts.append(_ESCAPES.get(escape, "\\" + escape))
        elif letter is not None:
            if letter == "%":
                parts.append("%")
                continue
            if letter == "Y":
                waits[len(parts)] = flags + width
            if letter not in "dm":
                # Other numbers are strings to printf: no zero padding, no sign.
                flags = flags.replace("0", "").replace("+", "").replace(" ", "").replace("#", "")
            parts.append(_padded(_directive(proc, letter, settings, found[0]), letter, flags, width, precision))
        elif other == "%":
            raise UsageError("error: % at end of format string")
        else:
            if other == "\\":
                proc.complain("warning: escape `\\' followed by nothing at all")
            parts.append(text if text is not None else other)
    del stop

    def render(file: Found) -> bytes:
        return encode("".join([p if isinstance(p, str) else p(file) for p in parts]))

    if not waits:
        return render

    async def later(file: Found) -> bytes:
        kind = _LETTERS[file.stat.kind]
        if file.stat.kind is Kind.LINK:
            try:
                kind = _LETTERS[(await proc.fs.stat(file.path, follow=True)).kind]
            except OSError as error:
                kind = "L" if error.errno == 40 else "N"
        out: list[str] = []
        for i, part in enumerate(parts):
            if i in waits:
                size = waits[i]
                out.append(
                    kind.ljust(int(size.lstrip("-") or 0))
                    if size.startswith("-")
                    else kind.rjust(int(size.lstrip("0") or 0))
                )
            else:
                out.append(part if isinstance(part, str) else part(file))
        return encode("".join(out))

    return later


def _padded(
    value: Callable[[Found], str], letter: str, flags: str, width: str, precision: str | None
) -> Callable[[Found], str]:
    number = letter in "dm"
    if not width and precision is None and not (number and flags):
        return value
    wide, least = number_of(width), int(precision or 0)
    sign = "+" if "+" in flags and letter == "d" else " " if " " in flags and letter == "d" else ""
    octal = "0" if "#" in flags and letter == "m" else ""

    def shown(file: Found) -> str:
        text = value(file)
        if precision is not None:
            text = text.zfill(bounded(least)) if number else text[:least]
        if number:
            if octal and not text.startswith("0"):
                text = octal + text
            if sign and "0" in flags and "-" not in flags and precision is None:
                return sign + text.zfill(wide - 1)
            text = sign + text
        if "-" in flags:
            return text.ljust(wide)
        return text.zfill(wide) if "0" in flags and text.lstrip("-").isdigit() else text.rjust(wide)

    return shown


def _below(file: Found, settings: Settings) -> str:
    rest = file.word[len(settings.top) :]
    return rest.lstrip("/")


def _head(word: str) -> str:
    stripped = word.rstrip("/")
    if "/" not in stripped:
        return (word[:-1] if word != stripped else ".") if stripped else ""
    return stripped.rpartition("/")[0]


def _directive(proc: Proc, letter: str, settings: Settings, original: str) -> Callable[[Found], str]:
    user, tz = proc.user, zone_of(proc)
    simple: dict[str, Callable[[Found], str]] = {
        "b": lambda f: str(allocated(f.stat) // 512),
        "d": lambda f: str(f.depth),
        "D": lambda f: "1",
        "f": lambda f: f.name + "/" if f.word.endswith("/") and f.name != "/" else f.name,
        "F": lambda f: "ramet",
        "g": lambda f: user.group,
        "G": lambda f: str(user.gid),
        "h": lambda f: _head(f.word),
        "H": lambda f: settings.top,
        "i": lambda f: str(f.stat.inode or 0),
        "k": lambda f: str(-(-allocated(f.stat) // 1024)),
        "l": lambda f: (f.stat.target or "") if f.stat.kind is Kind.LINK else "",
        "m": lambda f: f"{mode_of(f.stat):o}",
        "M": lambda f: mode_string(f.stat.kind, mode_of(f.stat)),
        "n": lambda f: str(nlink_of(f.stat)),
        "p": lambda f: f.word,
        "P": lambda f: _below(f, settings),
        "s": lambda f: str(size_of(f.stat)),
        "S": lambda f: f"{allocated(f.stat) / size_of(f.stat):g}" if size_of(f.stat) else "1",
        "u": lambda f: user.name,
        "U": lambda f: str(user.uid),
        "y": lambda f: _LETTERS[f.stat.kind],
        "Y": lambda f: _LETTERS[f.stat.kind],
        "Z": lambda f: "",
    }
    if letter in simple:
        return simple[letter]
    if letter in ("a", "c", "t"):
        return lambda f: _ctime(_moment(f, letter), tz)
    if letter[0] in "ABCT" and len(letter) == 2:
        return lambda f: _time(_moment(f, letter[0]), letter[1], tz)
    proc.complain(f"warning: unrecognized format directive `%{letter}'")
    return lambda f: original


def _moment(file: Found, which: str) -> int:
    """Return the access time, or the modification time for all other kinds."""
    stat = file.stat
    return (stat.accessed_ns if which in "aA" else stat.mtime_ns) or 0


def _ctime(moment: int, tz: object) -> str:
    when, nanos = at(moment, tz)  # type: ignore[arg-type]
    return strftime(f"%a %b %e %H:%M:%S.{nanos:09d}0 %Y", when)


def _time(moment: int, letter: str, tz: object) -> str:
    when, nanos = at(moment, tz)  # type: ignore[arg-type]
    fraction = f"{nanos:09d}0"
    if letter == "@":
        return f"{moment // NANO}.{fraction}"
    if letter == "+":
        return strftime(f"%Y-%m-%d+%H:%M:%S.{fraction}", when)
    if letter == "S":
        return strftime(f"%S.{fraction}", when)
    if letter == "q":
        return "%q"
    if letter in "TX":
        return strftime(f"%H:%M:%S.{fraction}", when)
    return strftime(f"%{letter}", when, nanos)


def ls_line(proc: Proc, file: Found) -> bytes:
    """A line of `-ls`."""
    stat = file.stat
    now = proc.now()
    moment = stat.mtime_ns or 0
    recent = now - 31556952 / 2 < moment / NANO <= now
    when = strftime("%b %e %H:%M" if recent else "%b %e  %Y", at(moment, zone_of(proc))[0])
    name = file.word.replace("\\", "\\\\").replace(" ", "\\ ").replace("\n", "\\n")
    arrow = f" -> {stat.target}" if stat.kind is Kind.LINK else ""
    mode = mode_string(stat.kind, mode_of(stat))
    text = (
        f"{stat.inode or 0:9d} {-(-allocated(stat) // 1024):6d} {mode} {nlink_of(stat):3d} {proc.user.name:<8} "
        f"{proc.user.group:<8} "
        f"{size_of(stat):8d} {when} {name}{arrow}\n"
    )
    return encode(text)
