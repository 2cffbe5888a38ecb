"""du: disk usage of files and trees, in blocks of 4 KiB."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ramet.commands.framework import file_modes as modes
from ramet.commands.framework.command import (
    Command,
    UsageError,
    called,
    choose,
    flag,
    mixed,
    optional,
    ordered,
    quote,
    several,
    value,
)
from ramet.commands.framework.files0_from import Listed, listed
from ramet.commands.framework.human_sizes import BlockSize
from ramet.commands.framework.inputs import slurp
from ramet.core import ops
from ramet.core.errors import reason
from ramet.core.paths import Path, decode, encode
from ramet.core.proc import Proc
from ramet.core.stat import Kind, Stat
from ramet.text.glob import fnmatch
from ramet.text.strftime import at, strftime, zone_of


@dataclass(frozen=True, slots=True)
class DuOptions:
    null: bool = flag("-0", "--null", help="end each output line with NUL, not newline")
    all: bool = flag("-a", "--all", help="write counts for all files, not just directories")
    apparent: bool = flag("--apparent-size", help="print apparent sizes rather than device usage")
    unit: str | None = mixed(
        value("-B", "--block-size", metavar="SIZE", help="scale sizes by SIZE before printing them"),
        choose(
            {"-h --human-readable": "human-readable", "--si": "si", "-k": "1K", "-m": "1M"},
            help="print sizes in that unit",
        ),
        default=None,
    )
    bytes: bool = flag("-b", "--bytes", help="equivalent to '--apparent-size --block-size=1'")
    order: tuple[tuple[str, object], ...] = ordered()
    total: bool = flag("-c", "--total", help="produce a grand total")
    follow: str = choose(
        {"-D -H --dereference-args": "args", "-L --dereference": "all", "-P --no-dereference": ""},
        default="",
        help="which symbolic links to follow",
    )
    depth: str | None = value(
        "-d", "--max-depth", metavar="N", help="print the total for a directory only if it is N or fewer levels below"
    )
    files0: str | None = value(
        "--files0-from", metavar="F", help="summarize usage of the NUL-terminated file names in file F"
    )
    inodes: bool = flag("--inodes", help="list inode usage information instead of block usage")
    count_links: bool = flag("-l", "--count-links", help="count sizes many times if hard linked")
    separate: bool = flag("-S", "--separate-dirs", help="for directories do not include size of subdirectories")
    summarize: bool = flag("-s", "--summarize", help="display only a total for each argument")
    threshold: str | None = value(
        "-t",
        "--threshold",
        metavar="SIZE",
        help="exclude entries smaller than SIZE if positive, or greater if negative",
    )
    time: str | None = optional(
        "--time",
        metavar="WORD",
        const="mtime",
        choices=("atime", "access", "use", "ctime", "status"),
        help="show time of the last modification",
    )
    time_style: str = value("--time-style", metavar="STYLE", default="long-iso", help="show times using STYLE")
    exclude_from: tuple[str, ...] = several(
        "-X", "--exclude-from", metavar="FILE", help="exclude files that match any pattern in FILE"
    )
    exclude: tuple[str, ...] = several("--exclude", metavar="PATTERN", help="exclude files that match PATTERN")
    one_system: bool = flag("-x", "--one-file-system", help="skip directories on different file systems")


@dataclass
class _Du:
    proc: Proc
    o: DuOptions
    unit: BlockSize
    depth: int
    excluded: list[str]
    threshold: int
    seen: set[tuple[Path, int]]
    out: list[str]
    status: int = 0
    above: set[Path] = field(default_factory=set)
    many: bool = False
    """Whether there are several operands, of which one may lie within another."""

    def cost(self, stat: Stat) -> int:
        if self.o.inodes:
            return 1
        if self.o.apparent or self.o.bytes:
            return modes.size_of(stat)
        return modes.allocated(stat)

    def line(self, size: int, word: str, newest: int) -> None:
        if self.threshold and (size < self.threshold if self.threshold > 0 else size > -self.threshold):
            return
        shown_size = str(size) if self.o.inodes else self.unit.show(size)
        when = ""
        if self.o.time is not None:
            style = {"full-iso": "%Y-%m-%d %H:%M:%S.%N %z", "long-iso": "%Y-%m-%d %H:%M", "iso": "%Y-%m-%d"}.get(
                self.o.time_style, self.o.time_style.lstrip("+")
            )
            when = strftime(style, *at(newest, zone_of(self.proc))) + "\t"
        self.out.append(f"{shown_size}\t{when}{word}{chr(0) if self.o.null else chr(10)}")

    def skip(self, word: str, name: str) -> bool:
        return any(fnmatch(name, p) or fnmatch(word, p) for p in self.excluded)


async def du(proc: Proc, o: DuOptions, operands: list[str]) -> int:
    if o.depth is not None and not re.fullmatch(r"\d+", o.depth):
        raise UsageError(f"invalid maximum depth {quote(o.depth)}")
    if o.all and o.summarize:
        raise UsageError("cannot both summarize and show all entries")
    if o.summarize and o.depth is not None and int(o.depth) != 0:
        raise UsageError(f"warning: summarizing conflicts with --max-depth={o.depth}")
    if o.summarize and o.depth is not None:
        proc.complain("warning: summarizing is the same as using --max-depth=0")
    if o.inodes and (o.apparent or o.bytes):
        proc.complain("warning: options --apparent-size and -b are ineffective with --inodes")
    last = next((name for name, _ in reversed(o.order) if name in ("bytes", "unit")), "")
    unit = (
        BlockSize(1)
        if last == "bytes"
        else BlockSize.parse(o.unit)
        if o.unit is not None
        else BlockSize(_env_unit(proc))
    )
    excluded = list(o.exclude)
    for word in o.exclude_from:
        excluded += [decode(line) for line in (await slurp(proc, word)).split(b"\n") if line]
    threshold = 0
    if o.threshold is not None:
        sign = -1 if o.threshold.startswith("-") else 1
        threshold = sign * BlockSize.parse(o.threshold.lstrip("+-"), "--threshold").unit
    words = [Listed(word) for word in operands or ["."]]
    if o.files0 is not None:
        try:
            words = await listed(proc, o.files0, operands)
        except IsADirectoryError as error:
            proc.complain(f"{called(o.files0)}: read error: {reason(error)}")
            return 1
        except OSError as error:
            proc.complain(f"cannot open {quote(o.files0)} for reading: {reason(error)}")
            return 1
    depth = 0 if o.summarize else int(o.depth) if o.depth is not None else 1 << 30
    state = _Du(proc, o, unit, depth, excluded, threshold, set(), [], many=len(words) > 1)
    total = newest = 0
    for word, problem in words:
        if problem or not word:
            proc.complain(problem or "invalid zero-length file name")
            state.status = 1
            continue
        if excluded and state.skip(word, word.rstrip("/").rpartition("/")[2]):
            continue
        try:
            path = proc.path(word)
            stat = await proc.stat(word, follow=bool(o.follow))
        except OSError as error:
            proc.complain(f"cannot access {quote(word)}: {reason(error)}")
            state.status = 1
            continue
        size, latest = await _measure(state, word, path, stat, 0)
        total += size
        newest = max(newest, latest)
        await _flush(state)
    if o.total:
        state.line(total, "total", newest)
    await _flush(state)
    return state.status


def _env_unit(proc: Proc) -> int:
    text = proc.env.get("DU_BLOCK_SIZE") or proc.env.get("BLOCK_SIZE") or proc.env.get("BLOCKSIZE") or ""
    if text:
        return BlockSize.parse(text).unit
    return 512 if "POSIXLY_CORRECT" in proc.env else 1024


async def _flush(state: _Du) -> None:
    if state.out:
        data = encode("".join(state.out))
        state.out.clear()
        await state.proc.emit(data)


async def _measure(state: _Du, word: str, path: Path, stat: Stat, depth: int) -> tuple[int, int]:
    """Return size and newest time of a file or tree; print its lines."""
    o, fs = state.o, state.proc.fs
    linked = (stat.nlink or 1) > 1 and stat.kind is not Kind.DIR
    if stat.inode is not None and not o.count_links and (linked or state.many):
        key = (fs.mount_of(path), stat.inode)
        if key in state.seen:
            return 0, 0
        state.seen.add(key)
    if o.follow == "all" and stat.kind is Kind.DIR:
        place = await fs.resolve(path)
        if place in state.above:
            return 0, 0  # a link to a directory above
        state.above.add(place)
        try:
            return await _sum(state, word, path, stat, depth)
        finally:
            state.above.discard(place)
    return await _sum(state, word, path, stat, depth)


async def _sum(state: _Du, word: str, path: Path, stat: Stat, depth: int) -> tuple[int, int]:
    o, fs = state.o, state.proc.fs
    accessed = o.time in ("atime", "access", "use")
    own, newest = state.cost(stat), (stat.accessed_ns if accessed else stat.mtime_ns) or 0
    if stat.kind is not Kind.DIR:
        if depth == 0 or (o.all and depth <= state.depth):
            state.line(own, word, newest)
        return own, newest
    total = separate = own
    try:
        entries = sorted(await ops.entries(fs, path))
    except OSError as error:
        state.proc.complain(f"cannot read directory {quote(word)}: {reason(error)}")
        state.status = 1
        entries = []
    prefix = word if word.endswith("/") else word + "/"
    here = fs.mount_of(path)
    blocks = not (o.inodes or o.apparent or o.bytes)
    for place, (name, below) in enumerate(entries):
        if not place & 255:
            await state.proc.budget.yield_turn()
        if state.excluded and state.skip(prefix + name, name):
            continue
        if o.follow == "all" and below.kind is Kind.LINK:
            try:
                below = await fs.stat(path / name, follow=True)
            except OSError:
                pass
        if below.kind is Kind.FILE and not o.all and not state.many and below.nlink in (None, 1):
            size = -(-(below.size or 0) // modes.BLOCK) * modes.BLOCK if blocks else state.cost(below)
            latest = (below.accessed_ns if accessed else below.mtime_ns) or 0
        else:
            if o.one_system and below.kind is Kind.DIR and fs.mount_of(path / name) != here:
                continue
            size, latest = await _measure(state, prefix + name, path / name, below, depth + 1)
        total += size
        if below.kind is not Kind.DIR:
            separate += size
        if latest > newest:
            newest = latest
    await state.proc.budget.yield_turn()
    if depth <= state.depth:
        state.line(separate if o.separate else total, word, newest)
    return total, newest


COMMANDS = [
    Command(
        "du",
        du,
        DuOptions,
        summary="Summarize disk usage of the set of FILEs, recursively for directories.",
        examples=[("du -sh DIR", "one number for people"), ("du -h --max-depth=1 | sort -h", "what is big here")],
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
