"""Names of members: chosen, excluded, transformed, stripped and shown; a safe name never leaves its directory."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC

from ramet.commands.clock import NANO, at, strftime, zone_of
from ramet.commands.copy import lookup
from ramet.commands.declare import UsageError, quote, shown
from ramet.commands.globs import fnmatch
from ramet.commands.inputs import slurp
from ramet.commands.modes import mode_string
from ramet.commands.tar.format import DIRECTORY, FIFO, HARDLINK, LABEL, SYMLINK, Member
from ramet.commands.tar.job import Failed, Job
from ramet.core import paths
from ramet.core.errors import reason
from ramet.core.paths import Path, decode, encode
from ramet.core.stat import Kind


def transformer(texts: tuple[str, ...]) -> Callable[[str, str], str]:
    """`s/PATTERN/REPLACEMENT/FLAGS` on names; the flags r, s, h say what kind of name it is for."""
    from ramet.commands.regexes import bre_bytes, ere_bytes

    rules = []
    for text in texts:
        for piece in re.split(r";(?=s)", text):
            mark = piece[1:2]
            parts = re.split(rf"(?<!\\){re.escape(mark)}", piece[2:]) if piece.startswith("s") and mark else []
            if len(parts) != 3:
                raise UsageError(f"Invalid transform expression: {quote(text)}", hint=False, status=2)
            pattern, replacement, flags = parts
            pattern = pattern.replace("\\" + mark, mark)
            matcher = (ere_bytes if "x" in flags else bre_bytes)(pattern, icase="i" in flags)
            rules.append((matcher, replacement.replace("\\" + mark, mark), flags))

    def apply(name: str, kind: str) -> str:
        for matcher, replacement, flags in rules:
            if kind.upper() in flags:
                continue
            raw = encode(name)
            out: list[bytes] = []
            pos = 0
            while (spans := matcher.spans(raw, pos)) is not None:
                start, end = spans[0]
                out.append(raw[pos:start])
                out.append(encode(_expand(replacement, raw, spans)))
                if end == start:
                    out.append(raw[end : end + 1])
                    pos = end + 1
                else:
                    pos = end
                if "g" not in flags or pos > len(raw):
                    break
            out.append(raw[pos:])
            name = decode(b"".join(out))
        return name

    return apply


def _expand(replacement: str, raw: bytes, spans: list[tuple[int, int]]) -> str:
    def group(number: int) -> str:
        if number >= len(spans) or spans[number][0] < 0:
            return ""
        return decode(raw[spans[number][0] : spans[number][1]])

    return re.sub(r"\\(\d)|\\(.)|(&)", lambda m: group(int(m[1])) if m[1] else m[2] if m[2] else group(0), replacement)


def is_excluded(job: Job, name: str) -> bool:
    """Patterns match a whole name or any trailing part behind a slash, and then everything below it."""
    if not job.excluded:
        return False
    name = name.rstrip("/")
    icase = job.o.ignore_case
    pieces = name.split("/")
    tails = [name] if job.o.anchored else ["/".join(pieces[i:]) for i in range(len(pieces))]
    return any(fnmatch(tail, pattern.rstrip("/"), icase=icase) for pattern in job.excluded for tail in tails)


def stored_name(job: Job, name: str, kind: str = "r") -> str:
    """The name as it goes into the archive: no leading slash, no `..`."""
    if job.rename is not None:
        name = job.rename(name, kind)
    if job.o.absolute:
        return name
    what = "hard link targets" if kind == "h" else "member names"
    found = re.match(r"(?:.*/)?\.\.(?:/|\Z)", name)
    if found and name not in ("..",):
        if found[0] not in job.stripped_warned:
            job.stripped_warned.add(found[0])
            job.proc.complain(f"Removing leading `{found[0]}' from {what}")
        name = name[found.end() :]
    elif name.startswith("/"):
        lead = name[: len(name) - len(name.lstrip("/"))]
        if lead not in job.stripped_warned:
            job.stripped_warned.add(lead)
            job.proc.complain(f"Removing leading `{lead}' from {what}")
        name = name.lstrip("/")
    return name or "./"


async def named_files(job: Job, operands: list[str]) -> list[tuple[Path, str]]:
    """What to archive: each name with the directory it is relative to."""
    out: list[tuple[Path, str]] = []
    cwd = job.cwd
    for kind, given in job.o.order or [("", w) for w in operands]:
        if kind == "directory":
            cwd = paths.parse(str(given), cwd)
            stat = await lookup(job.proc, cwd, follow=True)
            if stat is None or not stat.is_dir:
                why = "No such file or directory" if stat is None else "Not a directory"
                raise Failed(f"{shown(str(given))}: Cannot open: {why}")
        elif kind == "files_from":
            separator = b"\0" if job.o.null else b"\n"
            try:
                data = await slurp(job.proc, str(given))
            except OSError as error:
                raise Failed(f"{shown(str(given))}: Cannot open: {reason(error)}") from None
            out += [(cwd, decode(line)) for line in data.split(separator) if line]
        elif kind in ("", "add_file"):
            out.append((cwd, str(given)))
    return out


def shown_name(job: Job, name: str) -> str:
    return name.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")


def wanted_match(job: Job, name: str, wanted: list[str]) -> str | None:
    """Which of the named members this one is, or lies below."""
    plain = name.rstrip("/")
    for want in wanted:
        if plain == want or (not job.o.no_recursion and plain.startswith(want + "/")):
            return want
        if job.o.wildcards and (
            fnmatch(plain, want)
            or any(fnmatch("/".join(plain.split("/")[:i]), want) for i in range(1, plain.count("/") + 1))
        ):
            return want
    return None


def member_line(job: Job, member: Member) -> str:
    if member.kind == LABEL:
        mode = "V---------"
        when, _ = at(int(member.mtime * NANO), UTC if job.o.utc else zone_of(job.proc))
        stamp = strftime("%Y-%m-%d %H:%M", when, 0)
        return f"{mode} 0/0 {'0'.rjust(15)} {stamp} {shown_name(job, member.name)}--Volume Header--"
    kinds = {DIRECTORY: Kind.DIR, SYMLINK: Kind.LINK, FIFO: Kind.FIFO}
    mode = mode_string(kinds.get(member.kind, Kind.FILE), member.mode)
    if member.kind == HARDLINK:
        mode = "h" + mode[1:]
    owner = str(member.uid) if job.o.numeric else member.owner or str(member.uid)
    group = str(member.gid) if job.o.numeric else member.group or str(member.gid)
    when, nanos = at(int(member.mtime * NANO), UTC if job.o.utc else zone_of(job.proc))
    form = "%Y-%m-%d %H:%M"
    if job.o.full_time:
        form += ":%S.%N" if nanos else ":%S"
    stamp = strftime(form, when, nanos)
    name = shown_name(job, member.name)
    tail = (
        f" -> {member.link}" if member.kind == SYMLINK else f" link to {member.link}" if member.kind == HARDLINK else ""
    )
    who = f"{owner}/{group}"
    return f"{mode} {who} {str(member.size).rjust(max(0, 18 - len(who)))} {stamp} {name}{tail}"


def safe_name(job: Job, name: str, kind: str) -> str | None:
    """The name to extract to: stripped, transformed, and never out of the directory; None when nothing is left."""
    strip = int(job.o.strip)
    if job.rename is not None:
        name = job.rename(name, "r")
    if strip:
        parts = [p for p in name.split("/") if p]
        if len(parts) <= strip:
            return None
        name = "/".join(parts[strip:])
    if job.o.absolute:
        return name
    if ".." in name.split("/"):
        job.complain(f"{shown(name)}: Member name contains '..'")
        return None
    if name.startswith("/"):
        if "/" not in job.stripped_warned:
            job.stripped_warned.add("/")
            job.proc.complain(f"Removing leading `/' from {'hard link targets' if kind == 'h' else 'member names'}")
        name = name.lstrip("/")
    return _below_top(job, name or ".")


_ENDINGS = re.compile(r"\.(?:tar(?:\.\w+)?|t(?:gz|az|bz2?|z2|xz|lz|zst))$")


def _below_top(job: Job, name: str) -> str:
    """What --one-top-level makes of a name."""
    if job.o.one_top is None or job.o.mode != "x":
        return name
    top = job.o.one_top or _ENDINGS.sub("", (job.o.file or "").rpartition("/")[2])
    plain = name.removeprefix("./")
    return name if not top or plain == top or plain.startswith(top + "/") else f"{top}/{plain}"
