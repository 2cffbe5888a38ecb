"""patch: unified, context, normal and ed diffs applied with offsets, fuzz, rejects and backups as GNU patch does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ramet.commands.copy import lookup
from ramet.commands.declare import Command, UsageError, flag, optional, shown, value
from ramet.core import ops
from ramet.core.errors import reason
from ramet.core.paths import Path, decode, encode
from ramet.core.proc import Proc
from ramet.core.stat import Attrs


@dataclass(frozen=True, slots=True)
class PatchOptions:
    strip: str | None = value("-p", "--strip", metavar="NUM", help="strip NUM leading components from file names")
    fuzz: str = value(
        "-F", "--fuzz", metavar="LINES", default="2", help="set the fuzz factor to LINES for inexact matching"
    )
    ignore_space: bool = flag("-l", "--ignore-whitespace", help="ignore white space changes between patch and input")
    normal: bool = flag("-n", "--normal", help="interpret the patch as a normal difference")
    context: bool = flag("-c", "--context", help="interpret the patch as a context difference")
    unified: bool = flag("-u", "--unified", help="interpret the patch as a unified difference")
    ed: bool = flag("-e", "--ed", help="interpret the patch as an ed script")
    forward: bool = flag("-N", "--forward", help="ignore patches that appear to be reversed or already applied")
    reverse: bool = flag("-R", "--reverse", help="assume patches were created with old and new files swapped")
    input: str | None = value("-i", "--input", metavar="PATCHFILE", help="read patch from PATCHFILE instead of stdin")
    output: str | None = value("-o", "--output", metavar="FILE", help="output patched files to FILE")
    reject: str | None = value("-r", "--reject-file", metavar="FILE", help="output rejects to FILE")
    ifdef: str | None = value("-D", "--ifdef", metavar="NAME", help="make merged if-then-else output using NAME")
    remove_empty: bool = flag("-E", "--remove-empty-files", help="remove output files that are empty after patching")
    backup: bool = flag("-b", "--backup", help="back up the original contents of each file")
    backup_mismatch: bool = flag("--backup-if-mismatch", help="back up if the patch does not match exactly")
    no_backup_mismatch: bool = flag("--no-backup-if-mismatch", help="back up mismatches only if otherwise requested")
    prefix: str = value("-B", "--prefix", metavar="PREFIX", default="", help="prepend PREFIX to backup file names")
    suffix: str = value("-z", "--suffix", metavar="SUFFIX", default=".orig", help="append SUFFIX to backup file names")
    directory: str | None = value("-d", "--directory", metavar="DIR", help="change the working directory to DIR first")
    dry_run: bool = flag("--dry-run", help="do not actually change any files; just print what would happen")
    posix: bool = flag("--posix", help="conform to the POSIX standard")
    silent: bool = flag("-s", "--quiet", "--silent", help="work silently unless an error occurs")
    batch: bool = flag("-t", "--batch", help="ask no questions; skip bad-Prereq patches; assume reversed")
    force: bool = flag("-f", "--force", help="like -t, but ignore bad-Prereq patches, and assume unreversed")
    verbose: bool = flag("--verbose", help="output extra information about the work being done")
    merge: str | None = optional(
        "--merge", metavar="STYLE", const="merge", help="merge using conflict markers instead of creating reject files"
    )
    reject_format: str | None = value(
        "--reject-format", metavar="FORMAT", choices=("context", "unified"), help="create context or unified rejects"
    )


@dataclass
class Hunk:
    """Old and new lines, each with their mark: ` ` common, `-` old, `+` new. Lines keep their newline."""

    start: int
    new_start: int
    lines: list[tuple[str, bytes]]
    header: bytes = b""

    def old(self) -> list[bytes]:
        return [text for mark, text in self.lines if mark != "+"]

    def new(self) -> list[bytes]:
        return [text for mark, text in self.lines if mark != "-"]

    def reversed(self) -> Hunk:
        swap = {"-": "+", "+": "-", " ": " "}
        flipped = [(swap[mark], text) for mark, text in self.lines]
        # Keep removals before insertions, as a diff writes them.
        out: list[tuple[str, bytes]] = []
        run: list[tuple[str, bytes]] = []
        for item in flipped:
            if item[0] == " ":
                out += [*sorted(run, key=lambda x: x[0] == "+"), item]
                run = []
            else:
                run.append(item)
        out += sorted(run, key=lambda x: x[0] == "+")
        return Hunk(self.new_start, self.start, out, self.header)

    def edges(self) -> tuple[int, int]:
        """Common lines before the first and behind the last change."""
        marks = [mark for mark, _ in self.lines]
        lead = next((i for i, m in enumerate(marks) if m != " "), len(marks))
        tail = next((i for i, m in enumerate(reversed(marks)) if m != " "), len(marks))
        return lead, tail


@dataclass
class FilePatch:
    old_name: str | None = None
    new_name: str | None = None
    index_name: str | None = None
    hunks: list[Hunk] = field(default_factory=list)
    git: bool = False
    new_file: bool = False
    deleted: bool = False
    rename_from: str | None = None
    rename_to: str | None = None
    mode: int | None = None
    kind: str = "unified"
    ed_script: list[bytes] = field(default_factory=list)
    old_stamp_epoch: bool = False
    new_stamp_epoch: bool = False
    headers: tuple[bytes, bytes] | None = None


# ------------------------------------------------------------------------------------------------------ reading

_UNIFIED = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)")
_NORMAL = re.compile(rb"(\d+)(?:,(\d+))?([acd])(\d+)(?:,(\d+))?\s*$")
_ED = re.compile(rb"(\d+)(?:,(\d+))?([acd])\s*$")


class BadPatch(Exception):
    pass


def _name(raw: bytes) -> tuple[str | None, bool]:
    """The file name of a header line, and whether its time is the epoch (an absent file)."""
    text = decode(raw.rstrip(b"\r\n"))
    if text.startswith('"'):
        end = text.find('"', 1)
        name, rest = text[1:end], text[end + 1 :]
    else:
        name, _, rest = text.partition("\t")
        if not rest and " " in name:
            found = re.match(r"(\S+)\s+(\w{3} \w{3}|\d{4}-\d\d-\d\d)", name)
            if found:
                rest, name = name[len(found[1]) :], found[1]
    name = name.strip()
    epoch = bool(re.search(r"1970-01-01 0\d:00:00|1969-12-31|Thu Jan +1 0\d:00:00 1970", rest))
    return (None if name == "/dev/null" else name), epoch or name == "/dev/null"


def parse_patch(data: bytes, o: PatchOptions) -> list[FilePatch]:
    lines = (
        data.splitlines(keepends=True)
        if b"\r" not in data and b"\x0b" not in data and b"\x0c" not in data
        else _keep_lines(data)
    )
    out: list[FilePatch] = []
    current: FilePatch | None = None
    i = 0
    while i < len(lines):
        line = lines[i]
        if line.startswith(b"diff --git "):
            current, i = _git_header(lines, i)
            out.append(current)
            continue
        if line.startswith(b"Index: "):
            current = FilePatch(index_name=decode(line[7:].strip()))
            out.append(current)
            i += 1
            continue
        if line.startswith(b"--- ") and i + 1 < len(lines) and lines[i + 1].startswith(b"+++ "):
            if current is None or current.hunks or current.old_name is not None:
                current = FilePatch()
                out.append(current)
            current.old_name, current.old_stamp_epoch = _name(line[4:])
            current.new_name, current.new_stamp_epoch = _name(lines[i + 1][4:])
            current.headers = (line[4:].rstrip(b"\n"), lines[i + 1][4:].rstrip(b"\n"))
            i += 2
            while i < len(lines) and (found := _UNIFIED.match(lines[i])):
                hunk, i = _unified_hunk(lines, i, found)
                current.hunks.append(hunk)
            continue
        if (
            line.startswith(b"*** ")
            and i + 2 < len(lines)
            and lines[i + 1].startswith(b"--- ")
            and lines[i + 2].startswith(b"***************")
        ):
            if current is None or current.hunks or current.old_name is not None:
                current = FilePatch()
                out.append(current)
            current.kind = "context"
            current.old_name, current.old_stamp_epoch = _name(line[4:])
            current.new_name, current.new_stamp_epoch = _name(lines[i + 1][4:])
            current.headers = (line[4:].rstrip(b"\n"), lines[i + 1][4:].rstrip(b"\n"))
            i += 2
            while i < len(lines) and lines[i].startswith(b"***************"):
                hunk, i = _context_hunk(lines, i)
                current.hunks.append(hunk)
            continue
        found = _NORMAL.match(line)
        if found is not None and not o.ed and _looks_normal(lines, i, found):
            if current is None or current.hunks:
                current = FilePatch(kind="normal")
                out.append(current)
            current.kind = "normal"
            while i < len(lines) and (found := _NORMAL.match(lines[i])):
                hunk, i = _normal_hunk(lines, i, found)
                current.hunks.append(hunk)
            continue
        if _ED.match(line) and (o.ed or not out):
            current = FilePatch(kind="ed", ed_script=lines[i:])
            out.append(current)
            break
        i += 1
    return [p for p in out if p.hunks or p.git or p.kind == "ed"]


def _keep_lines(data: bytes) -> list[bytes]:
    pieces = data.split(b"\n")
    tail = pieces.pop()
    return [p + b"\n" for p in pieces] + ([tail] if tail else [])


def _git_header(lines: list[bytes], i: int) -> tuple[FilePatch, int]:
    patch = FilePatch(git=True)
    found = re.match(rb"diff --git (\S+) (\S+)", lines[i])
    if found is not None:
        patch.old_name, patch.new_name = decode(found[1]), decode(found[2])
    i += 1
    while i < len(lines):
        line = lines[i].rstrip(b"\n")
        if line.startswith(b"new file mode "):
            patch.new_file, patch.mode = True, int(line[14:], 8) & 0o7777
        elif line.startswith(b"deleted file mode "):
            patch.deleted = True
        elif line.startswith(b"new mode "):
            patch.mode = int(line[9:], 8) & 0o7777
        elif line.startswith(b"rename from "):
            patch.rename_from = decode(line[12:])
        elif line.startswith(b"rename to "):
            patch.rename_to = decode(line[10:])
        elif line.startswith(b"copy to "):
            patch.rename_to = decode(line[8:])
        elif not re.match(rb"(old mode|similarity|dissimilarity|index|copy from) ", line):
            break
        i += 1
    if i + 1 < len(lines) and lines[i].startswith(b"--- ") and lines[i + 1].startswith(b"+++ "):
        patch.old_name, _ = _name(lines[i][4:])
        patch.new_name, _ = _name(lines[i + 1][4:])
        i += 2
        while i < len(lines) and (found := _UNIFIED.match(lines[i])):
            hunk, i = _unified_hunk(lines, i, found)
            patch.hunks.append(hunk)
    return patch, i


def _looks_normal(lines: list[bytes], i: int, found: re.Match[bytes]) -> bool:
    mark = b"> " if found[3] == b"a" else b"< "
    return i + 1 < len(lines) and lines[i + 1].startswith(mark)


_NO_NEWLINE = b"\\ No newline"


def _unified_hunk(lines: list[bytes], i: int, found: re.Match[bytes]) -> tuple[Hunk, int]:
    old_left, new_left = int(found[2] or 1), int(found[4] or 1)
    hunk = Hunk(int(found[1]), int(found[3]), [], found[5].strip())
    if found[2] == b"0":
        hunk.start += 1
    if found[4] == b"0":
        hunk.new_start += 1
    i += 1
    while old_left > 0 or new_left > 0:
        if i >= len(lines):
            raise BadPatch("unexpected end of file in patch")
        mark, text = decode(lines[i][:1]), lines[i][1:]
        if lines[i] in (b"\n", b"\r\n"):
            mark, text = " ", lines[i]
        if mark == "\\":
            _strip_newline(hunk)
            i += 1
            continue
        if mark not in " -+\t":
            raise BadPatch(f"malformed patch at line {i + 1}: {decode(lines[i])}".rstrip("\n") + "\n")
        if mark == "\t":
            mark, text = " ", lines[i]
        hunk.lines.append((mark, text))
        old_left -= mark != "+"
        new_left -= mark != "-"
        i += 1
    if i < len(lines) and lines[i].startswith(_NO_NEWLINE):
        _strip_newline(hunk)
        i += 1
    return hunk, i


def _strip_newline(hunk: Hunk) -> None:
    if hunk.lines:
        mark, text = hunk.lines[-1]
        hunk.lines[-1] = (mark, text.removesuffix(b"\n"))


def _context_hunk(lines: list[bytes], i: int) -> tuple[Hunk, int]:
    i += 1
    found = re.match(rb"\*\*\* (\d+)(?:,(\d+))? \*\*\*\*", lines[i]) if i < len(lines) else None
    if found is None:
        raise BadPatch(f"malformed patch at line {i + 1}: {decode(lines[i])}")
    start = int(found[1])
    i += 1
    old, i = _context_part(lines, i, b"--- ")
    found = re.match(rb"--- (\d+)(?:,(\d+))? ----", lines[i]) if i < len(lines) else None
    if found is None:
        raise BadPatch(f"malformed patch at line {i + 1}")
    new_start = int(found[1])
    i += 1
    new, i = _context_part(lines, i, b"***")
    if not old:
        old = [(m, t) for m, t in new if m == " "]
    if not new:
        new = [(m, t) for m, t in old if m == " "]
    merged: list[tuple[str, bytes]] = []
    a = b = 0
    while a < len(old) or b < len(new):
        while a < len(old) and old[a][0] != " ":
            merged.append(("-", old[a][1]))
            a += 1
        while b < len(new) and new[b][0] != " ":
            merged.append(("+", new[b][1]))
            b += 1
        if a < len(old) and b < len(new):
            merged.append(old[a])
            a += 1
            b += 1
        elif a < len(old) or b < len(new):
            merged.append(old[a] if a < len(old) else new[b])
            a += 1
            b += 1
    hunk = Hunk(start, new_start, merged)
    if not hunk.old():
        hunk.start += 1
    return hunk, i


def _context_part(lines: list[bytes], i: int, stop: bytes) -> tuple[list[tuple[str, bytes]], int]:
    out: list[tuple[str, bytes]] = []
    while (
        i < len(lines) and not lines[i].startswith(stop) and lines[i][:2] in (b"  ", b"- ", b"+ ", b"! ", b"\\ ")
    ) or (i < len(lines) and lines[i] == b"\n"):
        line = lines[i]
        if line.startswith(_NO_NEWLINE):
            if out:
                out[-1] = (out[-1][0], out[-1][1].removesuffix(b"\n"))
        else:
            mark = decode(line[:1]) if line != b"\n" else " "
            out.append((mark, line[2:] if line != b"\n" else line))
        i += 1
    return out, i


def _normal_hunk(lines: list[bytes], i: int, found: re.Match[bytes]) -> tuple[Hunk, int]:
    kind = found[3]
    start, new_start = int(found[1]), int(found[4])
    if kind == b"a":
        start += 1
    if kind == b"d":
        new_start += 1
    hunk = Hunk(start, new_start, [])
    i += 1
    while i < len(lines) and lines[i][:2] in (b"< ", b"> ", b"--", b"\\ "):
        line = lines[i]
        if line.startswith(b"---"):
            i += 1
            continue
        if line.startswith(_NO_NEWLINE):
            _strip_newline(hunk)
        else:
            hunk.lines.append(("-" if line[:1] == b"<" else "+", line[2:]))
        i += 1
    return hunk, i


# ----------------------------------------------------------------------------------------------------- applying


@dataclass
class Applied:
    lines: list[bytes]
    notes: list[str]
    rejects: list[Hunk]
    already: bool = False
    mismatched: bool = False


def _matches(lines: list[bytes], at: int, want: list[bytes], loose: bool) -> bool:
    if at < 0 or at + len(want) > len(lines):
        return False
    if not loose:
        return lines[at : at + len(want)] == want
    return all(
        re.sub(rb"\s+", b" ", x.strip()) == re.sub(rb"\s+", b" ", y.strip())
        for x, y in zip(lines[at : at + len(want)], want, strict=True)
    )


def _places(expected: int, low: int, high: int) -> Iterator[int]:
    """The expected place, then nearer ones before farther ones."""
    if low <= expected <= high:
        yield expected
    for distance in range(1, max(expected - low, high - expected, 0) + 1):
        if low <= expected + distance <= high:
            yield expected + distance
        if low <= expected - distance <= high:
            yield expected - distance


def apply_hunks(lines: list[bytes], hunks: list[Hunk], fuzz_limit: int, loose: bool) -> Applied:
    out: list[bytes] = []
    done = 0
    shift = 0
    result = Applied([], [], [])
    added = 0
    for number, hunk in enumerate(hunks, 1):
        placed = _place(lines, hunk, done, shift, fuzz_limit, loose)
        if placed is None:
            result.rejects.append(hunk)
            result.notes.append(f"Hunk #{number} FAILED at {hunk.start + added}.")
            result.mismatched = True
            continue
        at, fuzz, lead, tail = placed
        old, marked = hunk.old(), hunk.lines
        cut_front, cut_back = lead, tail
        body = marked[cut_front : len(marked) - cut_back]
        removed = len(old) - cut_front - cut_back
        offset = at - cut_front - (hunk.start - 1)
        out += lines[done:at]
        position = at
        for mark, text in body:
            if mark == "+":
                out.append(text)
            else:
                if mark == " ":
                    out.append(lines[position])
                position += 1
        moved = offset
        if fuzz or moved != 0:
            where = at - cut_front + 1 + added
            words = f"Hunk #{number} succeeded at {where}"
            if fuzz:
                words += f" with fuzz {fuzz}"
                result.mismatched = True
            if moved:
                words += f" (offset {moved} line{'' if abs(moved) == 1 else 's'})"
                result.mismatched = True
            result.notes.append(words + ".")
        done = at + removed
        shift = moved
        added += len(hunk.new()) - len(old)
    out += lines[done:]
    result.lines = out
    return result


def _place(
    lines: list[bytes], hunk: Hunk, done: int, shift: int, fuzz_limit: int, loose: bool
) -> tuple[int, int, int, int] | None:
    old = hunk.old()
    lead, tail = hunk.edges()
    most = max(lead, tail)
    for fuzz in range(min(fuzz_limit, most) + 1):
        front = max(0, fuzz - (most - lead))
        back = max(0, fuzz - (most - tail))
        front, back = min(front, lead), min(back, tail)
        want = old[front : len(old) - back]
        expected = hunk.start - 1 + shift + front
        high = len(lines) - len(want)
        if not old:
            expected = min(hunk.start - 1 + shift, len(lines))
            return (expected, 0, 0, 0) if expected >= done else None
        # A hunk with less context in front belongs to the beginning, with less behind to the end.
        if lead < tail and hunk.start <= 1 and fuzz == 0:
            candidates: Iterator[int] = iter([front]) if front >= done else iter([])
        else:
            candidates = _places(expected, done, high)
        for at in candidates:
            if _matches(lines, at, want, loose):
                return at, fuzz, front, back
    return None


# ------------------------------------------------------------------------------------------------------ running


@dataclass
class _Job:
    proc: Proc
    o: PatchOptions
    cwd: Path
    status: int = 0
    fuzz: int = 2

    async def say(self, text: str) -> None:
        if not self.o.silent:
            await self.proc.emit(encode(text + "\n"))

    def path(self, word: str) -> Path:
        from ramet.core import paths

        return paths.parse(word, self.cwd)


async def patch(proc: Proc, o: PatchOptions, operands: list[str]) -> int:
    if o.merge is not None:
        raise UsageError(
            "merging with conflict markers is not supported; apply without --merge and look at the .rej file",
            hint=False,
        )
    if o.strip is not None and not o.strip.isdigit():
        raise UsageError(f"strip count {o.strip} is not a number", hint=False)
    if not o.fuzz.isdigit():
        raise UsageError(f"fuzz factor {o.fuzz} is not a number", hint=False)
    if len(operands) > 2:
        raise UsageError(f"{operands[2]}: extra operand")
    source = o.input if o.input is not None else operands[1] if len(operands) > 1 else "-"
    cwd = proc.path(o.directory) if o.directory is not None else proc.cwd
    job = _Job(proc, o, cwd, fuzz=int(o.fuzz))
    if o.directory is not None and not await ops.exists(proc.fs, cwd):
        proc.complain(f"**** Can't change to directory {o.directory} : No such file or directory")
        return 2
    try:
        if source == "-" or (o.input is None and len(operands) < 2):
            data = await proc.stdin.read_all()
        else:
            data = await ops.read_bytes(proc.fs, job.path(source))
    except OSError as error:
        proc.complain(f"**** Can't open patch file {source} : {reason(error)}")
        return 2
    try:
        patches = parse_patch(data, o)
    except BadPatch as bad:
        proc.complain(f"**** {bad}")
        return 2
    if not patches:
        if data:
            proc.complain("**** Only garbage was found in the patch input.")
            return 2
        return 0
    for item in patches:
        await _apply(job, item, operands[0] if operands else None)
        await proc.budget.breathe()
    return job.status


def _stripped(name: str | None, strip: str | None) -> str | None:
    if name is None:
        return None
    if strip is None:
        return name.rpartition("/")[2]
    parts = re.split(r"/+", name)
    count = int(strip)
    return "/".join(parts[count:]) if count < len(parts) else None


async def _choose(job: _Job, item: FilePatch) -> str | None:
    """The file that a patch is for: the one that exists, else the one to be made."""
    o = job.o
    names = [item.old_name, item.new_name]
    stripped = [_stripped(n, o.strip) for n in names] + [_stripped(item.index_name, o.strip)]
    if o.strip is None and item.git is False:
        # Without -p a full name counts when it exists as it stands.
        full = [n for n in (*names, item.index_name) if n is not None]
        for name in full:
            if "/" in name and not name.startswith("/") and await lookup(job.proc, job.path(name)) is not None:
                return name
    existing = [n for n in stripped if n and await lookup(job.proc, job.path(n)) is not None]
    if existing:
        return min(existing, key=lambda n: (n.count("/"), len(n.rpartition("/")[2]), len(n)))
    creating = (
        item.new_file
        or (item.deleted if o.reverse else False)
        or (item.new_stamp_epoch if o.reverse else item.old_stamp_epoch)
        or (item.hunks and not (item.hunks[0].new() if o.reverse else item.hunks[0].old()))
    )
    candidates = [n for n in stripped if n]
    if creating and candidates:
        return min(candidates, key=lambda n: (n.count("/"), len(n)))
    return None


async def _apply(job: _Job, item: FilePatch, named: str | None) -> None:
    proc, o = job.proc, job.o
    target = named if named is not None else await _choose(job, item)
    if target is None:
        shown_name = _stripped(item.old_name or item.new_name, o.strip) or ""
        await proc.emit(encode(f"can't find file to patch at input line {3 if item.kind != 'normal' else 1}\n"))
        await proc.emit(
            b"Perhaps you used the wrong -p or --strip option?\nThe text leading up to this was:\n"
            b"--------------------------\n"
            if o.strip is not None
            else b"Perhaps you should have used the -p or --strip option?\nThe text leading up to this was:\n"
            b"--------------------------\n"
        )
        await proc.emit(
            encode(
                f"|--- {item.old_name or '/dev/null'}\n|+++ {item.new_name or '/dev/null'}\n"
                "--------------------------\nFile to patch: \nSkip this patch? [y] \nSkipping patch.\n"
            )
        )
        await proc.emit(
            encode(f"{len(item.hunks)} out of {len(item.hunks)} hunk{'' if len(item.hunks) == 1 else 's'} ignored\n")
        )
        job.status = 1
        del shown_name
        return
    path = job.path(target)
    if not path.under(job.cwd) and named is None:
        proc.complain(f"Ignoring potentially dangerous file name {target}")
        job.status = 1
        return
    stat = await lookup(proc, path, follow=True)
    data = await ops.read_bytes(proc.fs, path) if stat is not None and not stat.is_dir else b""
    verb = "checking" if o.dry_run else "patching"
    out_name = f" {shown(o.output)} (read from {shown(target)})" if o.output is not None else f" {shown(target)}"
    if item.rename_to is not None and item.rename_from is not None and not o.reverse:
        destination = _stripped("b/" + item.rename_to, o.strip) or item.rename_to
        await job.say(f"{verb} file {shown(destination)} (renamed from {shown(target)})")
    elif item.kind != "ed":
        creates = item.old_stamp_epoch and not o.reverse and not item.git
        if creates and data and item.hunks and not item.hunks[0].old():
            await job.say(
                f"The next patch would create the file {shown(target)},\nwhich already exists!  Assume -R? [n] \n"
                "Apply anyway? [n] \nSkipping patch."
            )
            await _finish_rejects(job, item, target, Applied([], [], item.hunks), ignored=True)
            return
        await job.say(f"{verb} file{out_name}")
    lines = _keep_lines(data)
    if item.kind == "ed":
        result = Applied(_run_ed(lines, item.ed_script), [], [])
    else:
        hunks = [h.reversed() for h in item.hunks] if o.reverse else item.hunks
        result = await _try(job, lines, hunks)
    for note in result.notes:
        await job.say(note)
    if result.already:
        await _finish_rejects(job, item, target, result, ignored=True)
        return
    await _store(job, item, target, path, data, result, stat is not None)
    if result.rejects:
        await _finish_rejects(job, item, target, result, ignored=False)


async def _try(job: _Job, lines: list[bytes], hunks: list[Hunk]) -> Applied:
    o = job.o
    result = apply_hunks(lines, hunks, job.fuzz, o.ignore_space)
    if result.rejects and hunks and result.rejects[0] is hunks[0]:
        back = apply_hunks(lines, [h.reversed() for h in hunks], 0, o.ignore_space)
        if not back.rejects:
            word = "Unreversed patch detected!" if o.reverse else "Reversed (or previously applied) patch detected!"
            if o.forward:
                await job.proc.emit(encode(f"{word}  Skipping patch.\n"))
                return Applied(lines, [], hunks, already=True)
            if o.batch:
                await job.proc.emit(encode(f"{word}  Assuming -R.\n"))
                return back
            if not o.force:
                await job.proc.emit(encode(f"{word}  Assume -R? [n] \nApply anyway? [n] \nSkipping patch.\n"))
                return Applied(lines, [], hunks, already=True)
    return result


async def _store(
    job: _Job, item: FilePatch, target: str, path: Path, data: bytes, result: Applied, existed: bool
) -> None:
    proc, o = job.proc, job.o
    content = b"".join(result.lines)
    if o.dry_run:
        return
    if o.output is not None:
        if o.output == "-":
            await proc.emit(content)
        else:
            await proc.fs.write(job.path(o.output), content)
        return
    if (o.backup or (result.mismatched and not o.no_backup_mismatch and not o.posix)) and (existed or o.backup):
        backup = job.path(f"{o.prefix}{target}{o.suffix}" if not o.prefix else f"{o.prefix}{target}")
        await ops.make_dirs(proc.fs, backup.parent)
        await proc.fs.write(backup, data)
    gone = (
        item.new_file
        if o.reverse
        else (
            item.deleted
            or (item.new_name is None and item.old_name is not None and bool(item.hunks))
            or item.new_stamp_epoch
        )
    )
    if o.reverse and ((item.old_name is None and item.new_name is not None) or item.old_stamp_epoch):
        gone = True
    if not content and (gone or o.remove_empty) and not result.rejects:
        if existed:
            await proc.fs.remove(path)
            parent = path.parent
            while parent != job.cwd and parent.under(job.cwd):
                try:
                    await proc.fs.remove(parent)
                except OSError:
                    break
                parent = parent.parent
        return
    if gone and content and not result.rejects:
        await proc.emit(encode(f"Not deleting file {shown(target)} as content differs from patch\n"))
        job.status = 1
    stat = await lookup(proc, path, follow=True)
    await ops.make_dirs(proc.fs, path.parent)
    destination = path
    if item.rename_to is not None and item.rename_from is not None and not o.reverse:
        destination = job.path(_stripped("b/" + item.rename_to, o.strip) or item.rename_to)
        await ops.make_dirs(proc.fs, destination.parent)
        await proc.fs.remove(path)
    if content != data or not existed or destination != path:
        await proc.fs.write(destination, content)
    mode = item.mode if item.mode is not None else stat.mode if stat is not None else None
    if mode is not None:
        await proc.fs.setattr(destination, Attrs(mode=mode))


async def _finish_rejects(job: _Job, item: FilePatch, target: str, result: Applied, *, ignored: bool) -> None:
    proc, o = job.proc, job.o
    total, bad = len(item.hunks), len(result.rejects)
    name = o.reject or f"{target}.rej"
    job.status = 1
    words = "ignored" if ignored else "FAILED"
    saving = "" if o.dry_run else f" -- saving rejects to file {shown(name)}"
    await proc.emit(encode(f"{bad} out of {total} hunk{'' if total == 1 else 's'} {words}{saving}\n"))
    if o.dry_run:
        return
    old, new = (decode(h) for h in item.headers) if item.headers else (item.old_name or target, item.new_name or target)
    if item.kind == "context" and o.reject_format != "unified":
        text = f"*** {old}\n--- {new}\n".encode() + b"".join(_context_text(h) for h in result.rejects)
    else:
        text = f"--- {old}\n+++ {new}\n".encode() + b"".join(_unified_text(h) for h in result.rejects)
    if name == "-":
        await proc.emit(text)
    else:
        await proc.fs.write(job.path(name), text)


def _unified_text(hunk: Hunk) -> bytes:
    old, new = len(hunk.old()), len(hunk.new())

    def span(start: int, count: int) -> str:
        return f"{start}" if count == 1 else f"{start if count else start - 1},{count}"

    head = (
        f"@@ -{span(hunk.start, old)} +{span(hunk.new_start, new)} @@".encode()
        + (b" " + hunk.header if hunk.header else b"")
        + b"\n"
    )
    return head + b"".join(
        encode(mark) + text + (b"" if text.endswith(b"\n") else b"\n\\ No newline at end of file\n")
        for mark, text in hunk.lines
    )


def _context_text(hunk: Hunk) -> bytes:
    old, new = len(hunk.old()), len(hunk.new())
    out = [b"***************\n", f"*** {hunk.start},{hunk.start + old - 1} ****\n".encode()]
    out += [(b"  " if m == " " else b"- ") + t for m, t in hunk.lines if m != "+"]
    out.append(f"--- {hunk.new_start},{hunk.new_start + new - 1} ----\n".encode())
    out += [(b"  " if m == " " else b"+ ") + t for m, t in hunk.lines if m != "-"]
    return b"".join(out)


def _run_ed(lines: list[bytes], script: list[bytes]) -> list[bytes]:
    """An ed script as diff -e writes it: addresses with a, c, d, and the `s/.//` for lone dots."""
    out = list(lines)
    i = 0
    last = 0
    while i < len(script):
        found = _ED.match(script[i])
        if found is None:
            if script[i].startswith(b"s/.//") and 0 < last <= len(out):
                out[last - 1] = out[last - 1][1:]
            elif script[i].startswith(b"a"):
                text, i = _ed_text(script, i + 1)
                out[last:last] = text
                last += len(text)
                continue
            i += 1
            continue
        low, kind = int(found[1]), found[3]
        high = int(found[2] or found[1])
        i += 1
        text = []
        if kind in b"ac":
            text, i = _ed_text(script, i)
        if kind == b"a":
            out[low:low] = text
            last = low + len(text)
        else:
            out[low - 1 : high] = text
            last = low - 1 + len(text)
    return out


def _ed_text(script: list[bytes], i: int) -> tuple[list[bytes], int]:
    text: list[bytes] = []
    while i < len(script) and script[i].rstrip(b"\n") != b".":
        text.append(script[i])
        i += 1
    return text, i + 1


COMMANDS = [
    Command(
        "patch",
        patch,
        PatchOptions,
        summary="Apply a diff file to an original.",
        usage="[OPTION]... [ORIGFILE [PATCHFILE]]",
        bad_usage=2,
        ignored=(
            "--binary",
            "-g= --get=",
            "--quoting-style=",
            "-T --set-time",
            "-Z --set-utc",
            "-V= --version-control=",
            "-Y= --basename-prefix=",
            "--read-only=",
            "--follow-symlinks",
        ),
        examples=[
            ("patch -p1 < change.diff", "apply to the files below here"),
            ("patch -R -p1 -i change.diff", "take it back"),
        ],
    )
]
