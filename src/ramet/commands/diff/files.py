"""Compare two files, or two directories entry by entry, and print the differences."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from ramet.commands.diff import output as output
from ramet.commands.diff.changes import Change, changes
from ramet.commands.diff.line_formats import Formats
from ramet.commands.diff.options import DiffOptions
from ramet.concurrency.offload import interrupt_check, offload
from ramet.concurrency.sizes import BATCH, LARGE
from ramet.core.errors import LimitExceeded, reason
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.stat import Kind, Stat
from ramet.core.streams import Reader
from ramet.text.glob import fnmatch
from ramet.text.strftime import at, strftime, zone_of


@dataclass
class Comparison:
    """State of one run: resolved options and exit status."""

    proc: Proc
    o: DiffOptions
    format: str
    style: output.Style
    key: Callable[[bytes], bytes] | None
    ignored: Callable[[list[bytes]], bool] | None
    excluded: list[str] = field(default_factory=list)
    formats: Formats | None = None
    status: int = 0
    command: str = ""

    def trouble(self, message: str) -> None:
        self.proc.complain(message)
        self.status = 2


async def _stat(job: Comparison, word: str) -> Stat | None:
    if word == "-" or job.proc.descriptor(word) is not None:
        return Stat(Kind.FILE)
    return await job.proc.fs.stat(job.proc.path(word), follow=not job.o.no_deref)


async def pair(job: Comparison, a: str, b: str, *, found: bool = False) -> None:
    """Compare two operands; `found`: one was looked up in a directory by the name of the other."""
    o = job.o
    stats: list[Stat | None] = []
    missing = 0
    for word, new in ((a, o.new_file or o.one_way_new), (b, o.new_file)):
        try:
            stats.append(await _stat(job, word))
        except OSError as error:
            stats.append(None)
            missing += 1
            if not (new and error.errno == errno.ENOENT and not found) or missing == 2:
                job.trouble(f"{word}: {reason(error)}")
    if job.status == 2 and None in stats:
        return
    left, right = stats
    if found and left is not None and right is not None and left.is_dir != right.is_dir:
        await _unlike(job, a, b, left, right, inside=True)
        return
    if left is not None and right is not None and left.is_dir != right.is_dir:
        # A file against a directory means the file of that name in it.
        if left.is_dir:
            a = f"{a.rstrip('/')}/{b.rstrip('/').rpartition('/')[2]}"
        else:
            b = f"{b.rstrip('/')}/{a.rstrip('/').rpartition('/')[2]}"
        await pair(job, a, b, found=True)
        return
    if left is not None and right is not None and left.is_dir and right.is_dir:
        if o.ifdef is not None or job.formats is not None:
            job.trouble("-D option not supported with directories")
        elif job.proc.path(a) != job.proc.path(b):  # a directory equals itself
            await _directories(job, a, b)
        return
    if left is not None and right is not None:
        if await _unlike(job, a, b, left, right, inside=False):
            return
        if left.kind is Kind.FIFO and a == b and not o.identical:
            return  # the same pipe equals itself
    await _files(job, a, b, left, right, header=False)


async def _directories(job: Comparison, a: str, b: str) -> None:
    proc, o = job.proc, job.o
    listings: list[dict[str, Stat]] = []
    for word in (a, b):
        entries = {}
        if word:
            try:
                entries = {
                    n: s async for n, s in proc.fs.scan(proc.path(word)) if not any(fnmatch(n, p) for p in job.excluded)
                }
            except FileNotFoundError:
                entries = {}
        listings.append(entries)
    first, second = listings
    fold: Callable[[str], str] = (lambda n: n.lower()) if o.ignore_name_case else (lambda n: n)
    right_names = {fold(n): n for n in second}
    names = sorted({fold(n) for n in first} | set(right_names), key=encode)
    left_names = {fold(n): n for n in first}
    for name in names:
        if o.starting is not None and name < o.starting:
            continue
        x, y = left_names.get(name), right_names.get(name)
        path_a, path_b = f"{a.rstrip('/')}/{x or name}", f"{b.rstrip('/')}/{y or name}"
        if x is None or y is None:
            await _only(job, a, b, x, y, path_a, path_b, first, second)
            continue
        await _entry(job, path_a, path_b, first[x], second[y])
        await proc.budget.yield_turn()


async def _only(
    job: Comparison,
    a: str,
    b: str,
    x: str | None,
    y: str | None,
    path_a: str,
    path_b: str,
    first: dict[str, Stat],
    second: dict[str, Stat],
) -> None:
    o = job.o
    stat = first[x] if x is not None else second[y or ""]
    if (o.new_file or (o.one_way_new and x is None)) and stat.kind not in _SPECIAL:
        if stat.is_dir:
            if o.recursive:
                await _directories(job, path_a, path_b)
            return
        await _files(
            job, path_a, path_b, first[x] if x is not None else None, second[y] if y is not None else None, header=True
        )
        return
    await job.proc.emit(encode(f"Only in {a if x is not None else b}: {x if x is not None else y}\n"))
    job.status = max(job.status, 1)


async def _entry(job: Comparison, path_a: str, path_b: str, left: Stat, right: Stat) -> None:
    proc, o = job.proc, job.o
    if not o.no_deref:
        try:
            if left.kind is Kind.LINK:
                left = await proc.fs.stat(proc.path(path_a), follow=True)
            if right.kind is Kind.LINK:
                right = await proc.fs.stat(proc.path(path_b), follow=True)
        except OSError as error:
            job.trouble(f"{path_a if left.kind is Kind.LINK else path_b}: {reason(error)}")
            return
    if left.is_dir and right.is_dir:
        if o.recursive:
            await _directories(job, path_a, path_b)
        else:
            await proc.emit(encode(f"Common subdirectories: {path_a} and {path_b}\n"))
        return
    if not await _unlike(job, path_a, path_b, left, right, inside=True):
        await _files(job, path_a, path_b, left, right, header=True)


_SPECIAL = {
    Kind.FIFO: "fifo",
    Kind.SOCKET: "socket",
    Kind.DEVICE: "character special file",
}
_NAMES = _SPECIAL | {Kind.DIR: "directory", Kind.LINK: "symbolic link", Kind.FILE: "regular file"}


async def _unlike(job: Comparison, a: str, b: str, left: Stat, right: Stat, *, inside: bool) -> bool:
    """Report entries that are not compared by content: links, different types, special files."""
    links = (left.kind is Kind.LINK) + (right.kind is Kind.LINK)
    if links == 2:
        if left.target != right.target:
            await job.proc.emit(encode(f"Symbolic links {a} and {b} differ\n"))
            job.status = max(job.status, 1)
        return True
    if not links and (not inside or left.kind is right.kind is Kind.FILE):
        return False
    names = [
        "regular empty file" if stat.kind is Kind.FILE and stat.size == 0 else _NAMES[stat.kind]
        for stat in (left, right)
    ]
    await job.proc.emit(encode(f"File {a} is a {names[0]} while file {b} is a {names[1]}\n"))
    job.status = max(job.status, 1)
    return True


_HEAD = 32768
"""Bytes of a file in which a NUL makes it binary."""


class _Content:
    """Content of one file, read block by block."""

    def __init__(self, job: Comparison, word: str, stat: Stat | None) -> None:
        self.job, self.word, self.stat = job, word, stat
        self.reader: Reader | None = None
        self.head = b""
        self.size = 0
        self.ahead = b""
        """Bytes read and not yet consumed."""
        self.rest: list[bytes] = []
        """Blocks after the common beginning."""

    async def open(self) -> None:
        if self.stat is not None:
            self.reader = await self.job.proc.open(self.word)

    async def close(self) -> None:
        if self.reader is not None:
            await self.job.proc.close(self.reader)

    async def more(self) -> bytes:
        if not self.ahead and self.reader is not None:
            self.ahead = await self.reader.read()
            self.size += len(self.ahead)
            limit = self.job.proc.budget.limits.string_bytes
            if self.size > limit:
                raise LimitExceeded("string_bytes", limit)
            if len(self.head) < _HEAD:
                self.head += self.ahead[: _HEAD - len(self.head)]
        return self.ahead

    async def finish(self) -> None:
        while block := await self.more():
            self.rest.append(block)
            self.ahead = b""


async def _read_both(job: Comparison, first: _Content, second: _Content) -> list[bytes] | None:
    """Read both files and return their common leading blocks; None after a reported error."""
    common: list[bytes] = []
    word = first.word
    try:
        await first.open()
        word = second.word
        if first.word == second.word == "-":
            await first.finish()
            return first.rest
        await second.open()
        while True:
            word = first.word
            mine = await first.more()
            word = second.word
            theirs = await second.more()
            size = min(len(mine), len(theirs))
            if not size or mine[:size] != theirs[:size]:
                break
            common.append(mine[:size])
            first.ahead, second.ahead = mine[size:], theirs[size:]
        if not (job.o.brief and job.key is None and job.ignored is None):
            word = first.word
            await first.finish()
            word = second.word
            await second.finish()
    except OSError as error:
        job.trouble(f"{word}: {reason(error)}")
        return None
    finally:
        await first.close()
        await second.close()
    return common


async def _files(job: Comparison, a: str, b: str, left: Stat | None, right: Stat | None, *, header: bool) -> None:
    proc, o = job.proc, job.o
    one, two = _Content(job, a, left), _Content(job, b, right)
    common = await _read_both(job, one, two)
    if common is None:
        return
    in_columns = job.format == "side-by-side" and not job.style.suppress_common
    shows_same = in_columns or job.formats is not None or o.ifdef is not None
    same = a == b == "-" or not (one.rest or one.ahead or two.rest or two.ahead)
    identical = encode(f"Files {a} and {b} are identical\n") if o.identical else b""
    if same:
        if not shows_same or o.brief:
            await proc.emit(identical)
            return
    elif one.ahead or two.ahead:
        await proc.emit(encode(f"Files {_shown_name(job, a, 0)} and {_shown_name(job, b, 1)} differ\n"))
        job.status = max(job.status, 1)
        return
    if not same and not o.text and (b"\0" in one.head or b"\0" in two.head):
        # Differing binary files are reported, not compared by line.
        if o.brief:
            await proc.emit(encode(f"Files {_shown_name(job, a, 0)} and {_shown_name(job, b, 1)} differ\n"))
            job.status = max(job.status, 1)
        else:
            await proc.emit(encode(f"Binary files {_shown_name(job, a, 0)} and {_shown_name(job, b, 1)} differ\n"))
            job.status = max(job.status, 1)
        return
    lines_a, lines_b = await _lines_of_both(job, common, [] if same else one.rest, [] if same else two.rest)
    first = _side(job, a, left, lines_a, 0)
    second = _side(job, b, right, lines_b, 1)
    large = one.size + two.size > LARGE
    compare = partial(_compare, job, first, second)
    # The time is quadratic in the number of lines if few of them are equal.
    many = len(lines_a) + len(lines_b) > BATCH
    found = await offload(proc.budget, compare) if large or many else compare()
    if not found:
        if job.format in ("ed", "forward-ed") and not o.brief:
            _tell_unended(job, first, second)
        if not shows_same or o.brief:
            await proc.emit(identical)
            return
    else:
        job.status = max(job.status, 1)
    if o.brief:
        await proc.emit(encode(f"Files {_shown_name(job, a, 0)} and {_shown_name(job, b, 1)} differ\n"))
        return
    if header:
        await proc.emit(encode(f"{job.command} {_escaped(a)} {_escaped(b)}\n"))
    if o.ifdef is not None:
        pieces = output.ifdef(first, second, found, o.ifdef, job.style)
    elif job.formats is not None:
        pieces = job.formats.merged(first, second, found)
    else:
        pieces = output.FORMATS[job.format](first, second, found, job.style)
    step = partial(_batch, iter(pieces))
    while batch := await offload(proc.budget, step) if large else step():
        await proc.emit(b"".join(batch))
        await proc.budget.yield_turn()
    if not found:
        await proc.emit(identical)
    elif job.format in ("ed", "forward-ed"):
        _tell_unended(job, first, second)


def _batch(pieces: Iterator[bytes]) -> list[bytes]:
    return list(islice(pieces, 2 * BATCH))


def _tell_unended(job: Comparison, *sides: output.Side) -> None:
    """Report missing last newlines, which an ed script cannot express."""
    for side in sides:
        if not side.ended:
            job.proc.complain(f"{side.name}: No newline at end of file\n")
            job.status = 2


class _Lines:
    """Lines of incoming blocks; the last line is open, and empty if the text ends in a newline."""

    def __init__(self, lines: list[bytes], open_line: list[bytes], strip: bool) -> None:
        self.lines, self.open, self.strip = lines, open_line, strip

    async def add(self, job: Comparison, blocks: list[bytes]) -> None:
        for block in blocks:
            pieces = block.split(b"\n")
            if len(pieces) > 1:
                pieces[0] = b"".join((*self.open, pieces[0]))
                self.open = [pieces.pop()]
                self.lines += [line.removesuffix(b"\r") for line in pieces] if self.strip else pieces
            else:
                self.open.append(block)
            await job.proc.budget.yield_turn()

    def all(self) -> list[bytes]:
        last = b"".join(self.open)
        self.lines.append(last.removesuffix(b"\r") if self.strip else last)
        return self.lines


async def _lines_of_both(
    job: Comparison, common: list[bytes], first: list[bytes], second: list[bytes]
) -> tuple[list[bytes], list[bytes]]:
    """Split both files into lines; the common beginning is split once."""
    strip = bool(job.o.strip_cr)
    shared = _Lines([], [], strip)
    await shared.add(job, common)
    one, two = _Lines(shared.lines.copy(), shared.open.copy(), strip), shared
    await one.add(job, first)
    await two.add(job, second)
    return one.all(), two.all()


def _side(job: Comparison, word: str, stat: Stat | None, lines: list[bytes], index: int) -> output.Side:
    ended = not lines[-1]
    if ended:
        lines.pop()
    if index < len(job.o.labels):
        label = encode(job.o.labels[index])
    else:
        moment = (
            stat.mtime_ns
            if stat is not None and stat.mtime_ns is not None
            else 0
            if stat is None
            else int(job.proc.now() * 10**9)
        )
        pattern = "%Y-%m-%d %H:%M:%S.%N %z"
        if job.format == "context" and job.proc.env.get("LC_ALL") == "C":
            pattern = "%a %b %e %T %Y"
        label = encode(f"{_escaped(word)}\t{strftime(pattern, *at(moment, zone_of(job.proc)))}")
    return output.Side(word, label, lines, ended)


def _shown_name(job: Comparison, word: str, index: int) -> str:
    return job.o.labels[index] if index < len(job.o.labels) else word


_ESCAPES = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}


def _escaped(word: str) -> str:
    """Format a name for headers: C-quoted if it has spaces, quotes or unprintable bytes."""
    raw = encode(word)
    if not any(byte <= 32 or byte > 127 or byte in b'"\\' for byte in raw):
        return word
    parts = [
        f"\\{_ESCAPES[byte]}" if byte in _ESCAPES else f"\\{byte:03o}" if byte < 32 or byte > 127 else chr(byte)
        for byte in raw
    ]
    return f'"{"".join(parts)}"'


def _compare(job: Comparison, a: output.Side, b: output.Side) -> list[Change]:
    key = job.key
    xs: list[bytes] = a.lines if key is None else [key(line) for line in a.lines]
    ys: list[bytes] = b.lines if key is None else [key(line) for line in b.lines]
    blind = job.o.all_space or job.o.space_change or job.o.trailing or job.format in ("ed", "forward-ed")
    if not (blind or (a.ended and b.ended)) and a.lines and b.lines:
        # A last line without its newline differs from the same line with one.
        xs = xs if a.ended else [*xs[:-1], b"".join((xs[-1], b"\n"))]
        ys = ys if b.ended else [*ys[:-1], b"".join((ys[-1], b"\n"))]

    found = changes(xs, ys, minimal=job.o.minimal, check=interrupt_check(job.proc.budget))
    if job.ignored is not None:
        test = job.ignored
        kept = [c for c in found if not test(a.lines[c.a : c.b] + b.lines[c.c : c.d])]
        if not kept:
            return []
        real = set(kept)
        if job.format in ("unified", "context"):
            # Ignored changes are shown inside hunks with real changes.
            groups = [g for g in output._hunks(found, job.style.context) if any(c in real for c in g)]
            return [c for g in groups for c in g]
        return kept
    return found
