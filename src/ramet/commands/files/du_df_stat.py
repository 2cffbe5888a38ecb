"""du, df and stat: what the tree takes, as an imaginary disk of 4 KiB blocks would show it."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable
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
from ramet.core.errors import fail, reason
from ramet.core.paths import Path, decode, encode
from ramet.core.proc import Proc
from ramet.core.stat import Kind, Stat
from ramet.core.streams import FileStream
from ramet.text.glob import fnmatch
from ramet.text.strftime import NANO, at, shown_at, strftime, zone_of

# ----------------------------------------------------------------------------------------------------------- du


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
    """The size of a file or of a directory with everything below; prints what is to be printed."""
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
            return 0, 0  # a link that leads back to where the way came from
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


# ----------------------------------------------------------------------------------------------------------- df


@dataclass(frozen=True, slots=True)
class DfOptions:
    all: bool = flag("-a", "--all", help="include pseudo, duplicate, inaccessible file systems")
    unit: str | None = mixed(
        value("-B", "--block-size", metavar="SIZE", help="scale sizes by SIZE before printing them"),
        choose(
            {"-h --human-readable": "human-readable", "-H --si": "si", "-k": "1K", "-m": "1M"},
            help="print sizes in that unit",
        ),
        default=None,
    )
    inodes: bool = flag("-i", "--inodes", help="list inode information instead of block usage")
    local: bool = flag("-l", "--local", help="limit listing to local file systems")
    portability: bool = flag("-P", "--portability", help="use the POSIX output format")
    output: str | None = optional(
        "--output", metavar="FIELD_LIST", const="", help="use the output format defined by FIELD_LIST"
    )
    total: bool = flag("--total", help="produce a grand total")
    type: tuple[str, ...] = several("-t", "--type", metavar="TYPE", help="limit listing to file systems of type TYPE")
    print_type: bool = flag("-T", "--print-type", help="print file system type")
    exclude: tuple[str, ...] = several(
        "-x", "--exclude-type", metavar="TYPE", help="limit listing to file systems not of type TYPE"
    )


async def df(proc: Proc, o: DfOptions, operands: list[str]) -> int:
    """Mounts have no fixed size: the sizes shown are those of an ample disk, with what the tree holds left out."""
    fields = _df_fields(o)
    points: list[Path] = []
    status = 0
    for word in operands or ["/"]:
        try:
            path = proc.path(word)
            await proc.fs.stat(path, follow=True)
            point = proc.fs.mount_of(path)
        except OSError as error:
            proc.complain(f"{called(word)}: {reason(error)}")
            status = 1
            continue
        if point not in points or operands:
            points.append(point)
    if not operands:
        mounted = getattr(proc.fs, "mounts", None)
        if mounted is not None:
            points = sorted(mounted)
    if (o.type and "ramet" not in o.type) or "ramet" in o.exclude:
        points = []
        if not status:
            proc.complain("no file systems processed")
            return 1
    if not points:
        return status
    unit = BlockSize.parse(o.unit) if o.unit is not None else BlockSize(1024)
    title = "Size" if o.unit in ("human-readable", "si") else f"{o.unit or '1K'}-blocks"
    if o.portability and title.endswith("-blocks"):
        title = f"{unit.unit}-blocks"
    titles = {
        **_DF_TITLES,
        "size": title,
        "avail": "Avail" if title == "Size" or o.output is not None else "Available",
        "pcent": "Capacity" if o.portability else "Use%",
    }
    rows = [[titles[name] for name in fields]]
    named: list[str] = operands or ["-"] * len(points)
    listed: list[tuple[Path | None, str]] = list(zip(points, named, strict=False))
    for place, word in [*listed, *([(None, "-")] if o.total else [])]:
        amount = unit.show(_DF_SIZE * (1 if place is not None else len(points)))
        cells = {
            "source": "ramet" if place is not None else "total",
            "fstype": "ramet" if place is not None else "-",
            "itotal": "0", "iused": "0", "iavail": "0", "ipcent": "-",
            "size": amount, "used": unit.show(0), "avail": amount, "pcent": "0%",
            "file": word, "target": str(place) if place is not None else "-",
        }  # fmt: skip
        rows.append([cells[name] for name in fields])
    widths = [max(_DF_WIDTHS.get(name, 5), *(len(row[i]) for row in rows)) for i, name in enumerate(fields)]
    left = {i for i, name in enumerate(fields) if name in ("source", "fstype", "file", "target")}
    for row in rows:
        sized = zip(row, widths, strict=True)
        padded = [c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(sized)]
        await proc.emit(encode(" ".join(padded).rstrip() + "\n"))
    return status


_DF_SIZE = 64 * 1024**3
_DF_TITLES = {
    "source": "Filesystem", "fstype": "Type", "itotal": "Inodes", "iused": "IUsed", "iavail": "IFree",
    "ipcent": "IUse%", "used": "Used", "file": "File", "target": "Mounted on",
}  # fmt: skip
_DF_WIDTHS = {"source": 14, "fstype": 4, "pcent": 4, "ipcent": 4, "file": 4, "target": 0}


def _df_fields(o: DfOptions) -> list[str]:
    """The columns, by --output or by the kind of listing."""
    every = ["source", "fstype", "itotal", "iused", "iavail", "ipcent", "size", "used", "avail", "pcent"]
    every += ["file", "target"]
    if o.output is None:
        counts = ["itotal", "iused", "iavail", "ipcent"] if o.inodes else ["size", "used", "avail", "pcent"]
        return ["source", *(["fstype"] if o.print_type else []), *counts, "target"]
    for letter, used in (("-i", o.inodes), ("-P", o.portability), ("-T", o.print_type)):
        if used:
            raise UsageError(f"options {letter} and --output are mutually exclusive")
    fields = o.output.split(",") if o.output else every
    for place, name in enumerate(fields):
        if name not in every:
            raise UsageError(f"option --output: field {quote(name)} unknown")
        if name in fields[:place]:
            raise UsageError(f"option --output: field {quote(name)} used more than once")
    return fields


# --------------------------------------------------------------------------------------------------------- stat


@dataclass(frozen=True, slots=True)
class StatOptions:
    follow: bool = flag("-L", "--dereference", help="follow links")
    system: bool = flag("-f", "--file-system", help="display file system status instead of file status")
    format: tuple[str, str] | None = mixed(
        value(
            "-c",
            "--format",
            metavar="FORMAT",
            convert=lambda t: ("c", t),
            help="use the specified FORMAT; a newline after each use",
        ),
        value(
            "--printf",
            metavar="FORMAT",
            convert=lambda t: ("p", t),
            help="like --format, but interpret backslash escapes, and no newline",
        ),
        default=None,
    )
    terse: bool = flag("-t", "--terse", help="print the information in terse form")
    cached: str | None = value("--cached", metavar="MODE", help="how to use cached attributes")


_KIND_WORDS = {
    Kind.FILE: "regular file",
    Kind.DIR: "directory",
    Kind.LINK: "symbolic link",
    Kind.FIFO: "fifo",
    Kind.SOCKET: "socket",
    Kind.DEVICE: "character special file",
}


async def stat_(proc: Proc, o: StatOptions, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    status = 0
    for word in operands:
        if word == "-" and o.system:
            proc.complain("using '-' to denote standard input does not work in file system mode")
            status = 1
            continue
        try:
            path = proc.path(word)
            if word == "-":
                info = await proc.stdin.stat() if isinstance(proc.stdin, FileStream) else Stat(Kind.FIFO)
            else:
                slash = word.endswith("/")
                info = await proc.fs.stat(path, follow=o.follow or slash)
                if slash and info.kind is not Kind.DIR:
                    raise fail(errno.ENOTDIR, word)
        except OSError as error:
            what = "cannot read file system information for" if o.system else "cannot statx"
            proc.complain(f"{what} {quote(word)}: {reason(error)}")
            status = 1
            continue
        if o.system:
            text = _system(proc, o, word, path)
        elif o.format is not None:
            kind, pattern = o.format
            text = _render(proc, pattern, word, path, info, kind == "p") + ("\n" if kind == "c" else "")
        elif o.terse:
            text = _render(proc, "%n %s %b %f %u %g %D %i %h %t %T %X %Y %Z %W %o", word, path, info, False) + "\n"
        else:
            text = _long(proc, word, path, info)
        await proc.emit(encode(text))
    return status


def _long(proc: Proc, word: str, path: Path, info: Stat) -> str:
    lines = [
        "  File: " + (f"{word} -> {info.target}" if info.kind is Kind.LINK else word),
        _render(proc, "  Size: %-10s\tBlocks: %-10b IO Block: %-6o %F", word, path, info, False),
        _render(proc, "Device: %Hd,%Ld\tInode: %-10i  Links: %h", word, path, info, False),
        _render(proc, "Access: (%04a/%10.10A)  Uid: (%5u/%8U)   Gid: (%5g/%8G)", word, path, info, False),
        _render(proc, "Access: %x\nModify: %y\nChange: %z\n Birth: %w", word, path, info, False),
    ]
    return "\n".join(lines) + "\n"


_DIRECTIVE = re.compile(r"%([-+ #0']*)(\d*)(?:\.(\d*))?([HL]?[a-zA-Z%]|\Z)|\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.?)", re.S)
_DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
_ESCAPES = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    '"': '"',
    "\\": "\\",
}


def _render(proc: Proc, pattern: str, word: str, path: Path, info: Stat, escapes: bool) -> str:
    tz = zone_of(proc)
    moments = {"X": info.accessed_ns or 0, "Y": info.mtime_ns or 0, "Z": info.mtime_ns or 0}
    human = "%Y-%m-%d %H:%M:%S.%N %z"
    user = proc.user
    mode = modes.mode_of(info)
    kind = "regular empty file" if info.kind is Kind.FILE and not info.size else _KIND_WORDS[info.kind]

    major, minor = _DEVICES.get(path.name, (0, 0)) if info.kind is Kind.DEVICE else (0, 0)

    def seconds(letter: str, precision: str | None) -> str:
        whole, nanos = divmod(moments[letter], NANO)
        digits = 0 if precision is None else int(precision or 9)
        return f"{whole}.{f'{nanos:09d}'[:digits].ljust(digits, '0')}" if digits else str(whole)

    table: dict[str, Callable[[], str]] = {
        "a": lambda: f"{mode:o}",
        "A": lambda: modes.mode_string(info.kind, mode),
        "b": lambda: str(modes.allocated(info) // 512),
        "B": lambda: "512",
        "C": lambda: "?",
        "d": lambda: "1",
        "D": lambda: "1",
        "Hd": lambda: "0",
        "Ld": lambda: "1",
        "f": lambda: f"{modes.TYPE_BITS[info.kind] | mode:x}",
        "F": lambda: kind,
        "g": lambda: str(user.gid),
        "G": lambda: user.group,
        "h": lambda: str(modes.nlink_of(info)),
        "i": lambda: str(info.inode or 0),
        "m": lambda: str(proc.fs.mount_of(path)),
        "n": lambda: word,
        "N": lambda: quote(word) + (f" -> {quote(info.target or '')}" if info.kind is Kind.LINK else ""),
        "o": lambda: "4096",
        "r": lambda: str(major << 8 | minor),
        "R": lambda: f"{major << 8 | minor:x}",
        "Hr": lambda: str(major),
        "Lr": lambda: str(minor),
        "s": lambda: str(modes.size_of(info)),
        "t": lambda: f"{major:x}",
        "T": lambda: f"{minor:x}",
        "u": lambda: str(user.uid),
        "U": lambda: user.name,
        "w": lambda: "-",
        "W": lambda: "0",
        "x": lambda: shown_at(human, moments["X"], tz),
        "y": lambda: shown_at(human, moments["Y"], tz),
        "z": lambda: shown_at(human, moments["Z"], tz),
    }

    def expand(found: re.Match[str]) -> str:
        flags, width, precision, letter, escape = found.groups()
        if escape is not None:
            if not escapes:
                return found[0]
            if not escape:
                proc.complain("warning: backslash at end of format")
                return "\\"
            if escape[0] in "01234567":
                return decode(bytes([int(escape, 8) & 255]))
            if escape[0] == "x" and len(escape) > 1:
                return decode(bytes([int(escape[1:], 16)]))
            if escape not in _ESCAPES:
                proc.complain(f"warning: unrecognized escape '\\{escape}'")
            return _ESCAPES.get(escape, escape)
        if letter in ("%", "") and len(found[0]) > 1 + len(letter):
            raise UsageError(f"{quote(found[0])}: invalid directive", hint=False)
        if letter in ("%", ""):
            return "%"
        if letter in "XYZ":
            text = seconds(letter, precision)
        elif letter in table:
            text = table[letter]()
            if precision is not None:
                text = text[: int(precision or 0)]
        else:
            return "?"
        if "#" in flags:
            text = {"a": "0" + text, "f": "0x" + text}.get(letter, text)
        wide = int(width or 0)
        if "+" in flags and letter in "sXYZWi" and text[:1].isdigit():
            text = "+" + text
        if "-" in flags:
            return text.ljust(wide)
        return text.rjust(wide, "0") if "0" in flags else text.rjust(wide)

    return _DIRECTIVE.sub(expand, pattern)


def _system(proc: Proc, o: StatOptions, word: str, path: Path) -> str:
    blocks = 64 * 1024**3 // 4096
    table = {
        "n": word,
        "i": "0",
        "l": "255",
        "s": "4096",
        "S": "4096",
        "t": "0",
        "T": "ramet",
        "b": str(blocks),
        "f": str(blocks),
        "a": str(blocks),
        "c": "0",
        "d": "0",
        "%": "%",
    }
    if o.format is not None:
        return re.sub(r"%(.)", lambda m: table.get(m[1], "?"), o.format[1]) + ("\n" if o.format[0] == "c" else "")
    return (
        f'  File: "{word}"\n    ID: 0        Namelen: 255     Type: ramet\n'
        "Block size: 4096       Fundamental block size: 4096\n"
        f"Blocks: Total: {blocks:<10d} Free: {blocks:<10d} Available: {blocks}\nInodes: Total: {0:<10d} Free: 0\n"
    )


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
    Command(
        "df",
        df,
        DfOptions,
        summary="Report the mounts; sizes are nominal, mounts have no fixed size.",
        ignored=("--sync", "--no-sync", "-v"),
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
    Command(
        "stat",
        stat_,
        StatOptions,
        summary="Display file or file system status.",
        usage="[OPTION]... FILE...",
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
