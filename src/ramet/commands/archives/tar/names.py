"""Names of tar members: transform, strip, quote and check them."""

from __future__ import annotations

import re
from datetime import UTC

from ramet.commands.archives.tar.format import (
    CONTINUED,
    DEVICE,
    DIRECTORY,
    DUMPDIR,
    FIFO,
    HARDLINK,
    LABEL,
    SYMLINK,
    Member,
)
from ramet.commands.archives.tar.job import TarJob
from ramet.commands.files.cp import lookup
from ramet.commands.framework.file_modes import mode_string
from ramet.commands.framework.messages import c_escaped, quote, shown, typographic
from ramet.core.paths import Path, encode
from ramet.core.stat import Kind
from ramet.text.strftime import NANO, at, strftime, zone_of

STYLES = (
    "literal", "shell", "shell-always", "shell-escape", "shell-escape-always", "c", "c-maybe", "escape", "locale",
    "clocale",
)  # fmt: skip


def quoted(job: TarJob, text: str) -> str:
    """Return a word in a message, in the quotes of the locale."""
    return typographic(job.proc, quote(text))


def shown_name(job: TarJob, name: str) -> str:
    """Return a name as it is listed, and as messages begin with it."""
    style = job.quoting
    if style == "literal":
        return name
    if style.startswith("shell"):
        if "escape" not in style and not name.isprintable():
            legible = _BYTES.sub("x", name)
            if legible.isprintable() and shown(legible) == legible and not style.endswith("always"):
                return name
            return "'" + name.replace("'", "'\\''") + "'"
        return quote(name) if style.endswith("always") else shown(name)
    if style == "c-maybe":
        plain = name.isprintable() and '"' not in name
        return name if plain else f'"{_escaped(job, name, chr(34))}"'
    if style == "c":
        return f'"{_escaped(job, name, chr(34))}"'
    if style in ("locale", "clocale"):
        left, right = typographic(job.proc, "'x'").split("x")
        return left + _escaped(job, name, "'" if left == "'" else "") + right
    return _escaped(job, name, "")


def _escaped(job: TarJob, name: str, also: str) -> str:
    return c_escaped(name, also + (job.o.quote_chars or ""), (job.o.no_quote_chars or "").replace("\\", ""))


async def confirmed(job: TarJob, what: str, name: str) -> bool:
    """Return what -w asks before each action."""
    await job.proc.emit(encode(f"{what} {quoted(job, name)}?"))
    await job.proc.stdout.drain()
    reply = await job.proc.stdin.readline()
    if not reply:
        await job.proc.emit(b"\n")
    return reply[:1] in (b"y", b"Y")


_BYTES = re.compile("[\udc80-\udcff]")
"""Bytes that are not characters."""
_UPWARD = re.compile(r"(?:.*/)?\.\.(?:/|\Z)")


def stored_name(job: TarJob, name: str, kind: str = "r") -> str:
    """Return the name as it goes into the archive: no leading slash, no `..`."""
    if not job.o.absolute:
        lead = warn_of_lead(job, name, "hard link targets" if kind == "h" else "member names")
        name = name[len(lead) :] or "./"
    return name if job.rename is None else job.rename(name, kind)


def warn_of_lead(job: TarJob, name: str, what: str = "member names") -> str:
    """Return the part of a name that would lead out of a directory; that it is taken away is said once."""
    found = _UPWARD.match(name)
    if found:
        lead = found[0]
    elif name.startswith("/"):
        lead = name[: len(name) - len(name.lstrip("/"))]
    else:
        return ""
    if lead not in job.stripped_warned:
        job.stripped_warned.add(lead)
        job.proc.complain(f"Removing leading `{lead}' from {what}")
    return lead


def member_line(job: TarJob, member: Member) -> str:
    if member.kind == LABEL:
        mode = "V---------"
        when, _ = at(int(member.mtime * NANO), UTC if job.o.utc else zone_of(job.proc))
        stamp = strftime("%Y-%m-%d %H:%M", when, 0)
        return f"{mode} 0/0 {'0'.rjust(15)} {stamp} {shown_name(job, member.name)}--Volume Header--"
    kinds = {DIRECTORY: Kind.DIR, DUMPDIR: Kind.DIR, SYMLINK: Kind.LINK, FIFO: Kind.FIFO, DEVICE: Kind.DEVICE}
    mode = mode_string(kinds.get(member.kind, Kind.FILE), member.mode)
    if member.kind == HARDLINK:
        mode = "h" + mode[1:]
    elif member.kind == CONTINUED:
        mode = "M---------"
    owner = str(member.uid) if job.o.numeric else member.owner or str(member.uid)
    group = str(member.gid) if job.o.numeric else member.group or str(member.gid)
    when, nanos = at(int(member.mtime * NANO), UTC if job.o.utc else zone_of(job.proc))
    form = "%Y-%m-%d %H:%M"
    if job.o.full_time:
        form += ":%S.%N" if nanos else ":%S"
    stamp = strftime(form, when, nanos)
    name = shown_name(job, listed_name(job, member))
    target = member.link
    if job.rename is not None and job.o.show_names and job.o.mode in ("t", "x"):
        target = job.rename(target, "s" if member.kind == SYMLINK else "h")
    link = shown_name(job, target)
    tail = f" -> {link}" if member.kind == SYMLINK else f" link to {link}" if member.kind == HARDLINK else ""
    who = f"{owner}/{group}"
    size = "{},{}".format(*member.numbers) if member.kind == DEVICE else str(member.size)
    return f"{mode} {who} {size.rjust(max(0, 18 - len(who)))} {stamp} {name}{tail}"


def listed_name(job: TarJob, member: Member) -> str:
    """Return the name to list, which is the one in the archive unless the changed one was asked for."""
    name = member.name
    if not job.o.show_names or job.o.mode not in ("t", "x"):
        return name
    if job.rename is not None:
        name = job.rename(name, "r")
    strip = int(job.o.strip)
    if strip:
        parts = [part for part in name.split("/") if part]
        name = "/".join(parts[strip:]) + ("/" if member.is_dir else "")
    return name


def safe_name(job: TarJob, name: str, kind: str) -> str | None:
    """Return the name to extract to, stripped and transformed; None if nothing is left of it."""
    strip = int(job.o.strip)
    if job.rename is not None:
        name = job.rename(name, kind)
    if strip:
        parts = [p for p in name.split("/") if p]
        if len(parts) <= strip:
            return None
        name = "/".join(parts[strip:])
    if job.o.absolute:
        return name
    lead = warn_of_lead(job, name, "hard link targets" if kind == "h" else "member names")
    if ".." in name.split("/"):
        job.complain(f"{shown_name(job, name)}: Member name contains '..'")
        return None
    return _below_top(job, name[len(lead) :] or ".")


_ENDINGS = re.compile(r"\.(?:tar(?:\.\w+)?|t(?:gz|az|bz2?|z2|xz|lz|zst))$")


def _below_top(job: TarJob, name: str) -> str:
    """Return what --one-top-level makes of a name."""
    if job.o.one_top is None or job.o.mode != "x":
        return name
    top = job.o.one_top or _ENDINGS.sub("", (job.o.file or "").rpartition("/")[2])
    plain = name.removeprefix("./")
    return name if not top or plain == top or plain.startswith(top + "/") else f"{top}/{plain}"


async def within(job: TarJob, path: Path) -> bool:
    """Return whether the parents of a path lead, through all links, to a place inside the directory of extraction."""
    if job.o.absolute:
        return True
    top = await job.proc.fs.resolve(job.cwd)
    parent = path.parent
    while parent != job.cwd and parent.under(job.cwd):
        stat = await lookup(job.proc, parent)
        if stat is not None:
            try:
                return (await job.proc.fs.resolve(parent)).under(top)
            except OSError:
                return False
        parent = parent.parent
    return True
