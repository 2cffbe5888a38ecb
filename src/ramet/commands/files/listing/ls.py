"""ls, dir and vdir: list directories, with one scan for names and stats."""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial

from ramet.commands.files.listing.ls_columns import columns, quoted_name
from ramet.commands.files.listing.ls_options import LsOptions
from ramet.commands.framework import file_modes as modes
from ramet.commands.framework.command import Command, UsageError, called, quote
from ramet.commands.framework.human_sizes import BlockSize
from ramet.commands.framework.inputs import is_utf8, text_width, wants_color
from ramet.commands.text.sort.compare import version_key
from ramet.concurrency.offload import offload_large
from ramet.concurrency.sizes import BATCH
from ramet.core import ops
from ramet.core.errors import reason
from ramet.core.paths import Path, encode, parse
from ramet.core.proc import Proc
from ramet.core.stat import Kind, Stat
from ramet.text.glob import fnmatch
from ramet.text.strftime import NANO, shown_at, zone_of


@dataclass(slots=True)
class Entry:
    name: str
    stat: Stat
    target: Stat | None = None
    """The stat of a link's target if shown; None if it dangles."""
    path: Path | None = None
    address: str = ""
    """The URL of --hyperlink."""


@dataclass
class Dired:
    """--dired: indent lines, and list the byte offsets of names at the end."""

    at: int = 0
    names: list[int] = field(default_factory=list)
    titles: list[int] = field(default_factory=list)

    def plain(self, line: str) -> str:
        self.at += 2 + len(encode(line))
        return "  " + line

    def row(self, row: str, label: str, name: str) -> str:
        begin = self.at + 2 + len(encode(row)) - len(encode(label))
        self.names += [begin, begin + len(encode(name))]
        return self.plain(row + "\n").removesuffix("\n")

    def titled(self, title: str, first: bool) -> str:
        self.at += not first
        self.titles += [self.at + 2, self.at + 2 + len(encode(title))]
        return self.plain(title + ":\n").removesuffix(":\n")

    def tail(self, quoting: str) -> bytes:
        rows = [("DIRED", self.names), ("SUBDIRED", self.titles)]
        told = [f"//{name}// {' '.join(map(str, places))}\n" for name, places in rows if places]
        return encode("".join(told) + f"//DIRED-OPTIONS// --quoting-style={quoting}\n")


@dataclass
class _Listing:
    """Settings of one run."""

    proc: Proc
    o: LsOptions
    format: str
    sort: str
    quoting: str
    blocks: BlockSize
    sizes: BlockSize
    colors: dict[str, str] = field(default_factory=dict)
    dired: Dired | None = None
    status: int = 0
    first: bool = True
    end: str = "\n"
    need_targets: bool = False
    style: str = "locale"

    def complain(self, message: str, status: int) -> None:
        self.proc.complain(message)
        self.status = max(self.status, status)


def _format(o: LsOptions) -> str:
    """Return what the last of the options about it says, but that -1 does not end the long format."""
    chosen = ""
    for name, stored in o.order:
        if name in ("no_owner", "no_group_long", "numeric", "full_time"):
            chosen = "long"
        elif name == "format" and not (stored == "single-column" and chosen == "long"):
            chosen = {"verbose": "long", "horizontal": "across"}.get(str(stored), str(stored))
    return chosen


def _decide(proc: Proc, o: LsOptions) -> _Listing:
    for given, what in ((o.width, "line width"), (o.tab, "tab size")):
        if given is not None and not given.isdigit():
            raise UsageError(f"invalid {what}: {quote(given)}", hint=False)
    format_ = _format(o)
    terminal = proc.stdout.terminal
    if not format_:
        columns = proc.argv[0] == "dir" or (terminal and not o.zero)
        format_ = "long" if proc.argv[0] == "vdir" else "vertical" if columns else "single-column"
    sort = o.sort or ("time" if o.time_kind not in ("mtime", "modification") and format_ != "long" else "name")
    if o.unsorted:
        sort = "none"
    unit = BlockSize(1024)
    sizes = BlockSize(1)
    if o.block_size is not None:
        unit = sizes = BlockSize.parse(o.block_size)
    if o.human:
        unit = sizes = BlockSize(base=int(o.human))
    quoting = (
        o.quoting
        or proc.env.get("QUOTING_STYLE", "")
        or ("escape" if proc.argv[0] in ("dir", "vdir") else "shell-escape" if terminal and not o.zero else "literal")
    )
    if quoting in ("locale", "clocale") and is_utf8(proc):
        quoting = "curly"
    listing = _Listing(proc, o, format_, sort, quoting, unit, sizes, end="\0" if o.zero else "\n")
    if o.zero and format_ in ("vertical", "across"):
        listing.format = "single-column"
    if wants_color(proc, o.color) and _colorful(proc):
        listing.colors = _colors(proc)
    listing.need_targets = o.follow or format_ == "long" or bool(listing.colors) or o.indicator not in ("none", "slash")
    style = "full-iso" if o.full_time else o.time_style or proc.env.get("TIME_STYLE", "locale")
    style = style.removeprefix("posix-")
    if not style.startswith("+") and format_ == "long":
        options = [s for s in ("full-iso", "long-iso", "iso", "locale") if s.startswith(style)]
        if not options or not style:
            raise UsageError(
                f"invalid argument {quote(style)} for 'time style'\nValid arguments are:\n  - [posix-]full-iso\n "
                " - [posix-]long-iso\n"
                "  - [posix-]iso\n  - [posix-]locale\n  - +FORMAT (e.g., +%H:%M) for a 'date'-style format"
            )
        style = options[0]
    listing.style = style
    if o.dired and format_ == "long" and not _links(listing):
        listing.dired = Dired()
        listing.colors = {}
    return listing


_DEFAULT_COLORS = {
    "di": "01;34",
    "ln": "01;36",
    "pi": "33",
    "so": "01;35",
    "bd": "01;33",
    "cd": "01;33",
    "ex": "01;32",
    "su": "37;41",
    "sg": "30;43",
    "st": "37;44",
    "ow": "34;42",
    "tw": "30;42",
    "rs": "0",
}


def _colorful(proc: Proc) -> bool:
    """Return whether to use colours: without LS_COLORS only on known terminals."""
    if proc.env.get("LS_COLORS") or proc.env.get("COLORTERM"):
        return True
    kinds = (
        "ansi",
        "color",
        "cygwin",
        "gnome",
        "kitty",
        "konsole",
        "linux",
        "rxvt",
        "screen",
        "tmux",
        "vt100",
        "xterm",
    )
    return any(kind in proc.env.get("TERM", "").lower() for kind in kinds)


def _colors(proc: Proc) -> dict[str, str]:
    table = dict(_DEFAULT_COLORS)
    for part in proc.env.get("LS_COLORS", "").split(":"):
        key, _, code = part.partition("=")
        if key and code:
            table[key] = code
    return table


async def ls(proc: Proc, o: LsOptions, operands: list[str]) -> int:
    listing = _decide(proc, o)
    files: list[Entry] = []
    directories: list[tuple[str, Path, Stat]] = []
    for word in operands or ["."]:
        try:
            path = proc.path(word)
            stat = await proc.fs.stat(path)
            target = None
            if stat.kind is Kind.LINK:
                target = await _target(proc, path)
                if target is None and (word.endswith("/") or o.follow or o.follow_args == "all"):
                    stat = await proc.fs.stat(path, follow=True)
                if target is not None and word.endswith("/") and target.kind is not Kind.DIR:
                    listing.complain(f"cannot access {quote(word)}: Not a directory", 2)
                    continue
            elif word.endswith("/") and stat.kind is not Kind.DIR:
                listing.complain(f"cannot access {quote(word)}: Not a directory", 2)
                continue
        except OSError as error:
            listing.complain(f"cannot access {quote(word)}: {reason(error)}", 2)
            continue
        follow = o.follow or o.follow_args == "all" or (word.endswith("/") and target is not None)
        # A link to a directory is listed as the directory unless the long format asks about the link.
        implied = listing.format != "long" and not o.directory and o.indicator != "always" and o.indicator != "classify"
        effective = (
            target
            if target is not None and (follow or ((implied or o.follow_args == "dir") and target.is_dir))
            else stat
        )
        if effective.is_dir and not o.directory:
            directories.append((word, path, effective))
        else:
            files.append(Entry(word, effective, target if effective is stat else None, path))
    _sort_entries(listing, files)
    await _show(listing, files, None)
    titled = len(operands) > 1 or o.recursive
    order = [(Entry(word, stat, None, path)) for word, path, stat in directories]
    _sort_entries(listing, order)
    for entry in order:
        assert entry.path is not None
        await _list_directory(listing, entry.name, entry.path, titled, first=listing.first and not files)
    if listing.dired is not None:
        await proc.emit(listing.dired.tail(listing.quoting))
    return listing.status


async def _target(proc: Proc, path: Path) -> Stat | None:
    try:
        return await proc.fs.stat(path, follow=True)
    except OSError:
        return None


async def _list_directory(listing: _Listing, word: str, path: Path, titled: bool, first: bool) -> None:
    proc, o = listing.proc, listing.o
    pending: list[tuple[str, Path, frozenset[Path]]] = [(word, path, frozenset())]
    top = True
    while pending:
        name, where, above = pending.pop()
        try:
            if o.follow and o.recursive:
                # A link may point to a directory above.
                here = await proc.fs.resolve(where)
                if here in above:
                    listing.complain(f"{called(name)}: not listing already-listed directory", 2)
                    continue
                above = above | {here}
            found = await ops.entries(proc.fs, where)
        except OSError as error:
            listing.complain(f"cannot open directory {quote(name)}: {reason(error)}", 2 if top else 1)
            continue
        finally:
            top = False
        await proc.budget.yield_turn()
        if titled:
            title = _quoted_title(listing, name)
            if _links(listing):
                title = _linked(title, await _address(listing, where))
            if listing.dired is not None:
                title = listing.dired.titled(title, first)
            await proc.emit(encode(f"{'' if first else listing.end}{title}:{listing.end}"))
        first = listing.first = False
        if o.all or o.unsorted or o.hide or o.ignore or o.backups:
            entries = [Entry(name, stat) for name, stat in found if _wanted(listing, name)]
        else:
            entries = [Entry(name, stat) for name, stat in found if not name.startswith(".")]
        if listing.need_targets:
            for entry in entries:
                if entry.stat.kind is Kind.LINK:
                    entry.target = await _target(proc, where / entry.name)
                    if o.follow:
                        if entry.target is None and not _needs_stat(listing):
                            continue  # only its name is shown
                        if entry.target is None:
                            shown_name = entry.name if name == "." else f"{name}/{entry.name}"
                            listing.complain(f"cannot access {quote(shown_name)}: No such file or directory", 1)
                        else:
                            entry.stat, entry.target = entry.target, None
        if o.all == "all" or o.unsorted:
            entries.append(Entry(".", await proc.fs.stat(where, follow=True)))
            entries.append(Entry("..", await proc.fs.stat(where.parent, follow=True)))
        _sort_entries(listing, entries)
        await _show(listing, entries, where)
        if o.recursive:
            prefix = name if name.endswith("/") else name + "/"
            below = [e.name for e in reversed(entries) if e.stat.is_dir and e.name not in (".", "..")]
            pending.extend((prefix + child, where / child, above) for child in below)


def _needs_stat(listing: _Listing) -> bool:
    """Return whether more is shown of a file than its name, or asked of it to find its place."""
    o = listing.o
    shown_with = listing.format == "long" or listing.colors or o.indicator != "none" or o.inode or o.blocks
    return bool(shown_with or listing.sort in ("size", "time") or o.recursive or o.dirs_first)


def _wanted(listing: _Listing, name: str) -> bool:
    o = listing.o
    if not o.all and not o.unsorted and (name.startswith(".") or any(fnmatch(name, p) for p in o.hide)):
        return False
    if o.backups and name.endswith("~"):
        return False
    return not any(fnmatch(name, p, period=True) for p in o.ignore)


def _sort_entries(listing: _Listing, entries: list[Entry]) -> None:
    kind, o = listing.sort, listing.o
    if kind == "none":
        return
    by_name: Callable[[Entry], object] = lambda e: e.name if e.name.isascii() else encode(e.name).decode("latin-1")  # noqa: E731
    entries.sort(key=by_name)  # type: ignore[arg-type]
    if kind == "time":
        moment = _moment(o)
        entries.sort(key=lambda e: -moment(e.stat))
    elif kind == "size":
        entries.sort(key=lambda e: -modes.size_of(e.stat))
    elif kind == "version":
        entries.sort(key=lambda e: version_key(e.name))
    elif kind == "extension":
        entries.sort(key=lambda e: e.name[e.name.rfind(".") :] if "." in e.name else "")
    elif kind == "width":
        entries.sort(key=lambda e: text_width(e.name))
    if o.reverse:
        entries.reverse()
    if o.dirs_first:
        entries.sort(key=lambda e: not (e.stat.is_dir or (e.target is not None and e.target.is_dir)))


# ------------------------------------------------------------------------------------------------------- showing


def _quoted(listing: _Listing, name: str) -> str:
    style = listing.quoting
    if style == "literal":
        if listing.o.control == "hide":
            return "".join(c if c.isprintable() else "?" for c in name)
        return name
    return quoted_name(name, style)


def _quoted_title(listing: _Listing, name: str) -> str:
    """Return the title of a directory listing, quoted if it holds a colon."""
    if listing.quoting == "escape":
        return " ".join([_quoted(listing, part) for part in name.split(" ")]).replace(":", "\\:")
    return _quoted(listing, name).replace(":", "\\:") if listing.quoting == "c" else _quoted(listing, name)


def _suffix(listing: _Listing, entry: Entry, stat: Stat) -> str:
    style = listing.o.indicator
    if style in ("none", "never", "no", "auto", "tty", "if-tty"):
        return ""
    if stat.kind is Kind.DIR:
        return "/"
    if style == "slash":
        return ""
    if stat.kind is Kind.LINK:
        return "@"
    if stat.kind is Kind.FIFO:
        return "|"
    if stat.kind is Kind.SOCKET:
        return "="
    if style != "file-type" and stat.kind is Kind.FILE and modes.mode_of(stat) & 0o111:
        return "*"
    return ""


def _paint(listing: _Listing, text: str, name: str, stat: Stat, dangling: bool) -> str:
    code = _code(listing.colors, name, stat, dangling)
    if not code:
        return text
    return f"\x1b[{code}m{text}\x1b[0m"


def _code(colors: dict[str, str], name: str, stat: Stat, dangling: bool) -> str:
    if stat.kind is Kind.DIR:
        mode = modes.mode_of(stat)
        if mode & 0o1002 == 0o1002:
            return colors["tw"]
        if mode & 0o002:
            return colors["ow"]
        return colors["st"] if mode & 0o1000 else colors["di"]
    if stat.kind is Kind.LINK:
        return colors.get("or", colors["ln"]) if dangling else colors["ln"]
    if stat.kind is Kind.FIFO:
        return colors["pi"]
    if modes.mode_of(stat) & 0o111:
        return colors["ex"]
    for key, code in colors.items():
        if key.startswith("*") and name.endswith(key[1:]):
            return code
    return colors.get("fi", "")


def _links(listing: _Listing) -> bool:
    return listing.o.hyperlink in ("always", "yes", "force")


async def _address(listing: _Listing, path: Path | None) -> str:
    """Return the file as a terminal can open it; of a link that leads nowhere, where it would lead."""
    fs, seen = listing.proc.fs, path or listing.proc.cwd
    try:
        seen = await fs.resolve(seen)
    except OSError:
        stat = await fs.stat(seen)
        seen = parse(stat.target or "", seen.parent) if stat.kind is Kind.LINK else seen
    text = "".join(chr(b) if chr(b) in _PLAIN_IN_ADDRESS else f"%{b:02x}" for b in encode(str(seen)))
    return f"file://{listing.proc.user.host}{text}"


_PLAIN_IN_ADDRESS = frozenset(string.ascii_letters + string.digits + "-._~/")


def _linked(text: str, address: str) -> str:
    return f"\x1b]8;;{address}\a{text}\x1b]8;;\a" if address else text


def _label(listing: _Listing, entry: Entry, *, arrow: bool = False) -> str:
    """Return the name as shown: quoted, coloured, with its indicator and perhaps `-> target`."""
    stat = entry.stat
    text = _linked(_quoted(listing, entry.name), entry.address)
    if listing.colors:
        text = _paint(listing, text, entry.name, stat, stat.kind is Kind.LINK and entry.target is None)
    if arrow and stat.kind is Kind.LINK:
        target = _linked(_quoted(listing, stat.target or ""), entry.address)
        if listing.colors and entry.target is not None:
            target = _paint(listing, target, stat.target or "", entry.target, False)
        text += f" -> {target}"
        if entry.target is not None and listing.o.indicator != "none":
            text += _suffix(listing, entry, entry.target)
        return text
    if listing.o.indicator != "none":
        text += _suffix(listing, entry, stat)
    return text


async def _show(listing: _Listing, entries: list[Entry], where: Path | None) -> None:
    proc = listing.proc
    if where is not None and (listing.format == "long" or listing.o.blocks):
        total = f"total {listing.blocks.show(sum(modes.allocated(e.stat) for e in entries))}{listing.end}"
        await proc.emit(encode(total if listing.dired is None else listing.dired.plain(total)))
    if not entries:
        return
    listing.first = False
    if _links(listing):
        for entry in entries:
            entry.address = await _address(listing, entry.path if where is None else where / entry.name)
    await proc.emit(await offload_large(proc.budget, len(entries), partial(_render, listing, entries), BATCH))


def _render(listing: _Listing, entries: list[Entry]) -> bytes:
    """Return the entries of one directory, or those named, as they are written."""
    first_color = "\x1b[0m" if listing.colors and listing.format != "long" else ""
    if listing.format == "long":
        rows = _long_rows(listing, entries)
        if listing.dired is not None:
            rows = [
                listing.dired.row(row, _label(listing, entry, arrow=True), _quoted(listing, entry.name))
                for row, entry in zip(rows, entries, strict=True)
            ]
        text = listing.end.join(rows) + listing.end
        if listing.colors and "\x1b[" in text:
            text = text.replace("\x1b[", "\x1b[0m\x1b[", 1)
    elif _is_bare(listing):
        text = listing.end.join([entry.name for entry in entries]) + listing.end
    else:
        prefixes = _prefixes(listing, entries)
        labels = [p + _label(listing, e) for p, e in zip(prefixes, entries, strict=True)]
        widths = [
            text_width(p + _quoted(listing, e.name)) + len(_suffix(listing, e, e.stat))
            for p, e in zip(prefixes, entries, strict=True)
        ]
        text = _arrange(listing, labels, widths)
        if first_color and "\x1b[" in text:
            text = text.replace("\x1b[", "\x1b[0m\x1b[", 1)
    return encode(text)


def _is_bare(listing: _Listing) -> bool:
    """Return whether a line is a name and nothing else, as when a program reads it."""
    o = listing.o
    shown_with = o.inode or o.blocks or o.context or listing.colors or o.indicator != "none" or _links(listing)
    return (
        not shown_with
        and listing.format == "single-column"
        and listing.quoting == "literal"
        and o.control != "hide"
    )  # fmt: skip


def _prefixes(listing: _Listing, entries: list[Entry]) -> list[str]:
    parts: list[list[str]] = [[] for _ in entries]
    commas = listing.format == "commas"
    if listing.o.inode:
        column = [str(e.stat.inode or 0) for e in entries]
        width = 0 if commas else max(map(len, column))
        for row, text in zip(parts, column, strict=True):
            row.append(text.rjust(width) + " ")
    if listing.o.blocks:
        column = [listing.blocks.show(modes.allocated(e.stat)) for e in entries]
        width = 0 if commas else max(map(len, column))
        for row, text in zip(parts, column, strict=True):
            row.append(text.rjust(width) + " ")
    if listing.o.context and listing.format != "long":
        for row in parts:
            row.append("? ")
    return ["".join(row) for row in parts]


def _line_width(listing: _Listing) -> int:
    text = listing.o.width if listing.o.width is not None else listing.proc.env.get("COLUMNS", "")
    if listing.o.width is not None and not (text or "").isdigit():
        raise UsageError(f"invalid line width: {quote(text or '')}", hint=False)
    if not text or not text.isdigit():
        return 80
    return int(text) or 1 << 30


def _arrange(listing: _Listing, labels: list[str], widths: list[int]) -> str:
    end = listing.end
    if listing.format == "single-column":
        return end.join(labels) + end
    limit = _line_width(listing)
    if listing.format == "commas":
        out: list[str] = []
        column = 0
        for i, (label, width) in enumerate(zip(labels, widths, strict=True)):
            if i:
                if column + 2 + width < limit:
                    out.append(", ")
                    column += 2
                else:
                    out.append("," + end)
                    column = 0
            out.append(label)
            column += width
        return "".join(out) + end
    tab = int(listing.o.tab) if listing.o.tab is not None and listing.o.tab.isdigit() else 8
    if listing.o.width == "0":
        tab = 0
    return columns(labels, widths, limit, listing.format == "across", tab, end)


# ---------------------------------------------------------------------------------------------------------- long


def _long_rows(listing: _Listing, entries: list[Entry]) -> list[str]:
    proc, o = listing.proc, listing.o
    owner = str(proc.user.uid) if o.numeric else proc.user.name
    group = str(proc.user.gid) if o.numeric else proc.user.group
    links = [str(modes.nlink_of(e.stat)) for e in entries]
    sizes = [listing.sizes.show(modes.size_of(e.stat)) for e in entries]
    times = _times(listing, entries)
    link_width, size_width = max(map(len, links)), max(map(len, sizes))
    time_width = max(map(len, times))
    who = (
        ("" if o.no_owner else f"{owner} ")
        + ("" if o.no_group or o.no_group_long else f"{group} ")
        + (f"{owner} " if o.author else "")
    )
    if o.context:
        who += "? "
    rows: list[str] = []
    plain = listing.quoting == "literal" and o.control != "hide" and o.indicator == "none"
    simple = plain and not (listing.colors or _links(listing))
    for prefix, entry, link, size, when in zip(_prefixes(listing, entries), entries, links, sizes, times, strict=True):
        stat = entry.stat
        label = entry.name if simple and stat.kind is not Kind.LINK else _label(listing, entry, arrow=True)
        mode = modes.mode_string(stat.kind, modes.mode_of(stat))
        rows.append(
            f"{prefix}{mode} {link.rjust(link_width)} {who}{size.rjust(size_width)} {when.rjust(time_width)} {label}"
        )
    return rows


def _times(listing: _Listing, entries: list[Entry]) -> list[str]:
    tz = zone_of(listing.proc)
    style = listing.style
    moment = _moment(listing.o)
    now = listing.proc.now()
    # Half of a Gregorian year, as GNU counts it.
    recent = (now - 31556952 / 2, now)
    if style == "full-iso":
        return [shown_at("%Y-%m-%d %H:%M:%S.%N %z", moment(e.stat), tz) for e in entries]
    if style.startswith("+"):
        old, _, new = style[1:].partition("\n")
        formats = (old, new if "\n" in style else old)
    else:
        formats = {
            "long-iso": ("%Y-%m-%d %H:%M",) * 2,
            "iso": ("%Y-%m-%d ", "%m-%d %H:%M"),
            "locale": ("%b %e  %Y", "%b %e %H:%M"),
        }[style]

    @lru_cache(maxsize=4096)
    def shown_time(minute: int, nanos: int) -> str:
        is_recent = recent[0] < minute / NANO <= recent[1]
        return shown_at(formats[1] if is_recent else formats[0], minute + nanos, tz)

    if style.startswith("+"):
        return [shown_time(moment(e.stat), 0) for e in entries]
    return [shown_time(moment(e.stat) // NANO * NANO, 0) for e in entries]


def _moment(o: LsOptions) -> Callable[[Stat], int]:
    """Return which time to show and to sort by; that of the last change stands for those that are not kept."""
    if o.time_kind in ("atime", "access", "use"):
        return lambda stat: stat.accessed_ns or 0
    return lambda stat: stat.mtime_ns or 0


_SUMMARY = "List information about the FILEs (the current directory by default)."
COMMANDS = [
    Command(
        name,
        ls,
        LsOptions,
        summary=_SUMMARY,
        bad_usage=2,
        examples=[
            ("ls -la", "everything, in long format"),
            ("ls -lt | head", "the newest first"),
            ("ls -lhS", "the biggest first, sizes for people"),
        ],
        original="GNU coreutils 9.1",
        curly_quotes=name == "ls",
        bad_choice=1,
        write_error=("write error: ", 2),
    )
    for name in ("ls", "dir", "vdir")
]
