"""tree: a directory as a drawing."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands import modes
from ramet.commands.clock import NANO, at, strftime, zone_of
from ramet.commands.declare import Command, UsageError, choose, flag, several, value
from ramet.commands.globs import fnmatch
from ramet.commands.sizes import human
from ramet.commands.sort.comparing import version_key
from ramet.core import ops
from ramet.core.paths import Path, encode
from ramet.core.proc import Proc
from ramet.core.stat import Kind, Stat


@dataclass(frozen=True, slots=True)
class TreeOptions:
    all: bool = flag("-a", help="list all files, including hidden ones")
    dirs_only: bool = flag("-d", help="list directories only")
    follow: bool = flag("-l", help="follow symbolic links like directories")
    full_path: bool = flag("-f", help="print the full path prefix for each file")
    level: str | None = value("-L", metavar="LEVEL", help="descend only LEVEL directories deep")
    patterns: tuple[str, ...] = several("-P", metavar="PATTERN", help="list only those files that match the pattern")
    ignore: tuple[str, ...] = several("-I", metavar="PATTERN", help="do not list files that match the pattern")
    ignore_case: bool = flag("--ignore-case", help="ignore case when pattern matching")
    match_dirs: bool = flag("--matchdirs", help="include directory names in -P pattern matching")
    no_report: bool = flag("--noreport", help="turn off the file/directory count at the end")
    no_indent: bool = flag("-i", help="don't print indentation lines")
    ascii: str = choose({"-A": "ansi", "-S": "cp437"}, default="", help="which line graphics to use")
    charset: str | None = value("--charset", metavar="X", help="use charset X for indentation lines")
    quote: bool = flag("-Q", help="quote filenames with double quotes")
    perms: bool = flag("-p", help="print the protections for each file")
    user: bool = flag("-u", help="display file owner or UID number")
    group: bool = flag("-g", help="display file group owner or GID number")
    size: bool = flag("-s", help="print the size in bytes of each file")
    human: bool = flag("-h", help="print the size in a more human readable way")
    si: bool = flag("--si", help="like -h, but use powers of 1000")
    disk_usage: bool = flag("--du", help="print size of directories by their contents")
    date: bool = flag("-D", help="print the date of last modification")
    time_format: str | None = value("--timefmt", metavar="FORMAT", help="print and format time according to FORMAT")
    classify: bool = flag("-F", help="append '/', '=', '*', '@', '|' or '>' as per ls -F")
    inodes: bool = flag("--inodes", help="print inode number of each file")
    sort: str = choose(
        {"-v": "version", "-t": "time", "-c": "time", "-U": "none"},
        default="name",
        help="sort by version, by time, or not",
    )
    sort_word: str | None = value(
        "--sort", metavar="X", choices=("name", "version", "size", "mtime", "ctime", "none"), help="select sort"
    )
    reverse: bool = flag("-r", help="reverse the order of the sort")
    dirs_first: bool = flag("--dirsfirst", help="list directories before files")
    files_first: bool = flag("--filesfirst", help="list files before directories")
    prune: bool = flag("--prune", help="prune empty directories from the output")
    file_limit: str | None = value(
        "--filelimit", metavar="N", help="do not descend dirs with more than N files in them"
    )
    json: bool = flag("-J", help="print a JSON representation of the tree")
    output: str | None = value("-o", metavar="FILE", help="output to file")
    gitignore: bool = flag("--gitignore", help="filter by .gitignore files")


@dataclass
class _Node:
    name: str
    path: Path
    stat: Stat
    children: list[_Node] | None = None
    note: str = ""
    size: int = 0


@dataclass
class _Tree:
    proc: Proc
    o: TreeOptions
    level: int
    dirs: int = 0
    files: int = 0

    async def load(self, node: _Node, depth: int) -> None:
        o = self.o
        node.size = modes.size_of(node.stat)
        if node.stat.kind is not Kind.DIR or depth >= self.level:
            return
        try:
            entries = await ops.entries(self.proc.fs, node.path)
        except OSError:
            node.note = " [error opening dir]"
            return
        if o.file_limit and len(entries) > int(o.file_limit):
            node.note = f" [{len(entries)} entries exceeds filelimit, not opening dir]"
            return
        node.children = []
        for name, stat in entries:
            if not self._wanted(name, stat):
                continue
            child = _Node(name, node.path / name, stat)
            if stat.kind is Kind.LINK and o.follow:
                try:
                    child.stat = await self.proc.fs.stat(child.path, follow=True)
                except OSError:
                    pass
            await self.load(child, depth + 1)
            if o.prune and child.children is not None and not child.children:
                continue
            node.children.append(child)
            node.size += child.size
        self._sort(node.children)
        await self.proc.budget.breathe()

    def _wanted(self, name: str, stat: Stat) -> bool:
        o = self.o
        if name.startswith(".") and not o.all:
            return False
        if o.dirs_only and stat.kind is not Kind.DIR:
            return False
        if self._matches(name, o.ignore):
            return False
        return not (o.patterns and (stat.kind is not Kind.DIR or o.match_dirs) and not self._matches(name, o.patterns))

    def _matches(self, name: str, patterns: tuple[str, ...]) -> bool:
        return any(
            fnmatch(name, piece.rstrip("/"), icase=self.o.ignore_case) for text in patterns for piece in text.split("|")
        )

    def _sort(self, nodes: list[_Node]) -> None:
        o = self.o
        how = o.sort_word or o.sort
        if how != "none":
            nodes.sort(key=lambda n: encode(n.name))
        if how == "version":
            nodes.sort(key=lambda n: version_key(n.name))
        elif how in ("time", "mtime", "ctime"):
            nodes.sort(key=lambda n: n.stat.mtime_ns or 0)
        elif how == "size":
            nodes.sort(key=lambda n: -n.size)
        if o.reverse:
            nodes.reverse()
        if o.dirs_first or o.files_first:
            nodes.sort(key=lambda n: (n.stat.kind is Kind.DIR) != o.dirs_first)

    def label(self, node: _Node, shown: str) -> str:
        o, stat = self.o, node.stat
        info: list[str] = []
        if o.inodes:
            info.append(f"{stat.inode or 0:7d}")
        if o.perms:
            info.append(modes.mode_string(stat.kind, modes.mode_of(stat)))
        if o.user:
            info.append(f"{self.proc.user.name:<8}")
        if o.group:
            info.append(f"{self.proc.user.group:<8}")
        size = node.size if o.disk_usage else modes.size_of(stat)
        if o.human or o.si:
            info.append(f"{human(size, 1000 if o.si else 1024):>4}")
        elif o.size or o.disk_usage:
            info.append(f"{size:11d}")
        if o.date or o.time_format:
            moment = stat.mtime_ns or 0
            recent = 0 <= self.proc.now() - moment / NANO < 31556952 / 2
            info.append(
                strftime(o.time_format or ("%b %e %H:%M" if recent else "%b %e  %Y"), *at(moment, zone_of(self.proc)))
            )
        text = f'"{shown}"' if o.quote else shown
        if o.classify:
            text += (
                "/" if stat.kind is Kind.DIR else "*" if stat.kind is Kind.FILE and modes.mode_of(stat) & 0o111 else ""
            )
        if stat.kind is Kind.LINK:
            text += f" -> {stat.target}"
        return (f"[{' '.join(info)}]  " if info else "") + text + node.note

    def draw(self, node: _Node, prefix: str, path: str, out: list[str]) -> None:
        branch, last, pipe, blank = _LINES["ascii" if self.o.charset and "utf" not in self.o.charset.lower() else "utf"]
        children = node.children or []
        for i, child in enumerate(children):
            ending = i == len(children) - 1
            full = f"{path.rstrip('/')}/{child.name}"
            shown = full if self.o.full_path else child.name
            lead = "" if self.o.no_indent else prefix + (last if ending else branch)
            out.append(lead + self.label(child, shown))
            if child.stat.kind is Kind.DIR:
                self.dirs += 1
            else:
                self.files += 1
            self.draw(child, prefix + (blank if ending else pipe), full, out)

    def as_json(self, node: _Node, name: str) -> dict[str, object]:
        kind = {Kind.DIR: "directory", Kind.LINK: "link"}.get(node.stat.kind, "file")
        item: dict[str, object] = {"type": kind, "name": name}
        if node.stat.kind is Kind.LINK:
            item["target"] = node.stat.target or ""
        if kind == "directory":
            item["contents"] = [self.as_json(c, c.name) for c in node.children or []]
        return item


_LINES = {"utf": ("├── ", "└── ", "│\u00a0\u00a0 ", "    "), "ascii": ("|-- ", "`-- ", "|   ", "    ")}


async def tree(proc: Proc, o: TreeOptions, operands: list[str]) -> int:
    if o.level is not None and (not o.level.isdigit() or int(o.level) == 0):
        raise UsageError("Invalid level, must be greater than 0.", hint=False)
    state = _Tree(proc, o, int(o.level) if o.level else 1 << 30)
    status = 0
    out: list[str] = []
    items: list[object] = []
    for word in operands or ["."]:
        try:
            path = proc.path(word)
            stat = await proc.fs.stat(path, follow=True)
        except OSError as error:
            out.append(f"{word}  [error opening dir]")
            del error
            status = 2
            continue
        node = _Node(word, path, stat)
        await state.load(node, 0)
        if stat.kind is not Kind.DIR:
            node.note = "  [error opening dir]"
            status = 2
        else:
            state.dirs += 1
        if o.json:
            items.append(state.as_json(node, word))
        out.append(state.label(node, word))
        state.draw(node, "", word, out)
    text = "".join(line + "\n" for line in out)
    dirs = f"{state.dirs} director{'y' if state.dirs == 1 else 'ies'}"
    files = "" if o.dirs_only else f", {state.files} file{'' if state.files == 1 else 's'}"
    if o.json:
        import json

        count_files = sum(_count(i) for i in items)
        items.append(
            {"type": "report", "directories": sum(_count(i, "directory") for i in items), "files": count_files}
        )
        text = json.dumps(items, indent=2, ensure_ascii=False) + "\n"
    elif not o.no_report:
        text += f"\n{dirs}{files}\n"
    target = await proc.create(o.output) if o.output is not None else proc.stdout
    target.write(encode(text))
    await proc.close(target)
    return status


def _count(item: object, kind: str = "file") -> int:
    if not isinstance(item, dict):
        return 0
    own = 1 if item.get("type") == kind or (kind == "file" and item.get("type") == "link") else 0
    return own + sum(_count(child, kind) for child in item.get("contents", ()))


COMMANDS = [
    Command(
        "tree",
        tree,
        TreeOptions,
        summary="List contents of directories in a tree-like format.",
        usage="[OPTION]... [DIRECTORY]...",
        ignored=("-n", "-C", "-N", "-q", "-x", "--nolinks"),
    ),
]
