"""tree: draw a directory tree as text, JSON, XML or HTML."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape

from ramet.commands.files.listing.tree_html import OUTRO, Notes, address, anchor, bracketed, intro, note_on, notes_of
from ramet.commands.framework import file_modes as modes
from ramet.commands.framework.command import Command, UsageError, choose, flag, several, value
from ramet.commands.framework.human_sizes import human
from ramet.commands.framework.inputs import slurp
from ramet.commands.search.gitignore import Rule, ignored, parse
from ramet.commands.text.sort.compare import version_key
from ramet.core import ops
from ramet.core.paths import Path, decode, encode
from ramet.core.proc import Proc
from ramet.core.stat import Kind, Stat
from ramet.text.glob import fnmatch
from ramet.text.strftime import NANO, at, strftime, zone_of


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
    form: str = choose(
        {"-J": "json", "-X": "xml"}, default="", help={"-J": "print the tree as JSON", "-X": "print the tree as XML"}
    )
    metafirst: bool = flag("--metafirst", help="print what is known of a file before the lines")
    from_file: bool = flag("--fromfile", help="read paths from files (. is stdin) instead of directories")
    output: str | None = value("-o", metavar="FILE", help="output to file")
    base: str | None = value("-H", metavar="URL", help="print the tree as HTML with URL as the top directory")
    title: str = value("-T", metavar="TITLE", default="Directory Tree", help="the title of the HTML")
    no_links: bool = flag("--nolinks", help="turn off hyperlinks in the HTML")
    intro: str | None = value("--hintro", metavar="FILE", help="use FILE as the beginning of the HTML")
    outro: str | None = value("--houtro", metavar="FILE", help="use FILE as the end of the HTML")
    colored: bool = flag("-C", help="with -H, name the kinds of files; colours are for terminals")
    notes: bool = flag("--info", help="print the notes that .info files have on names")
    notes_file: str | None = value("--infofile", metavar="FILE", help="accepted: notes are those of .info files")
    links: bool = flag("--fflinks", help="with --fromfile, NAME -> TARGET is a link")
    gitignore: bool = flag("--gitignore", help="filter by .gitignore files")
    gitfile: str | None = value("--gitfile", metavar="FILE", help="read patterns as of .gitignore from FILE")


@dataclass
class _Node:
    name: str
    path: Path
    stat: Stat
    leads: bool = False
    """A directory, or a link to one."""
    children: list[_Node] | None = None
    note: str = ""
    size: int = 0
    path_text: str = ""
    """Its path as the user would type it."""
    told: list[str] = field(default_factory=list)
    """The note of an .info file."""


@dataclass
class _Tree:
    proc: Proc
    o: TreeOptions
    level: int
    dirs: int = 0
    files: int = 0
    seen: set[Path] = field(default_factory=set)
    """Directories that were read, for links that lead back to them."""

    async def load(self, node: _Node, depth: int, rules: list[Rule], all_wanted: bool = False) -> None:
        o = self.o
        node.size = modes.size_of(node.stat)
        if node.stat.kind is not Kind.DIR or depth >= self.level:
            return
        self.seen.add(node.path)
        try:
            entries = await ops.entries(self.proc.fs, node.path)
        except OSError:
            node.note = "  [error opening dir]"
            return
        if o.gitignore:
            rules = rules + await self._ignoring(node.path)
        children: list[_Node] = []
        notes = await self._notes(node.path) if o.notes else []
        for name, stat in entries:
            child = _Node(name, node.path / name, stat, stat.kind is Kind.DIR)
            child.told = note_on(notes, name)
            if stat.kind is Kind.LINK:
                with suppress(OSError):
                    child.leads = (await self.proc.fs.stat(child.path, follow=True)).kind is Kind.DIR
            if self._wanted(child, all_wanted) and not (rules and ignored(rules, str(child.path), child.leads)):
                children.append(child)
        if o.file_limit and len(children) > int(o.file_limit):
            node.note = f"  [{len(children)} entries exceeds filelimit, not opening dir]"
            return
        self._sort(children)
        node.children = []
        for child in children:
            if child.stat.kind is Kind.LINK and child.leads and o.follow:
                await self._follow(child, depth + 1, rules)
            else:
                whole = all_wanted or (o.match_dirs and self._matches(child.name, o.patterns))
                await self.load(child, depth + 1, rules, whole)
            if o.prune and not o.dirs_only and child.stat.kind is Kind.DIR and not child.children:
                continue
            node.children.append(child)
            node.size += child.size
        if o.disk_usage:
            self._sort(node.children)
        await self.proc.budget.yield_turn()

    async def _follow(self, child: _Node, depth: int, rules: list[Rule]) -> None:
        real = await self.proc.fs.resolve(child.path)
        if real in self.seen:
            child.note = "  [recursive, not followed]"
            return
        behind = _Node(child.name, real, await self.proc.fs.stat(real))
        await self.load(behind, depth, rules)
        child.children, child.size = behind.children, behind.size

    async def _ignoring(self, directory: Path) -> list[Rule]:
        try:
            text = decode(await ops.read_bytes(self.proc.fs, directory / ".gitignore"))
        except OSError:
            return []
        return parse(text, str(directory).rstrip("/") + "/")

    async def _notes(self, directory: Path) -> Notes:
        try:
            return notes_of(decode(await ops.read_bytes(self.proc.fs, directory / ".info")))
        except OSError:
            return []

    def _wanted(self, node: _Node, all_wanted: bool) -> bool:
        o = self.o
        if node.name.startswith(".") and not o.all:
            return False
        if o.dirs_only and not node.leads:
            return False
        if self._matches(node.name, o.ignore):
            return False
        is_dir = node.stat.kind is Kind.DIR or (o.follow and node.leads)
        return not o.patterns or is_dir or all_wanted or self._matches(node.name, o.patterns)

    def _matches(self, name: str, patterns: tuple[str, ...]) -> bool:
        for text in patterns:
            for piece in text.split("|"):
                if fnmatch(name, piece.rstrip("/"), icase=self.o.ignore_case):
                    return True
        return False

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
            nodes.sort(key=lambda n: -(n.size or modes.size_of(n.stat)))
        if o.reverse:
            nodes.reverse()
        if o.dirs_first or o.files_first:
            nodes.sort(key=lambda n: n.leads != o.dirs_first)

    def count(self, node: _Node) -> None:
        """Count files and directories; links to directories are directories."""
        if node.leads:
            self.dirs += 1
        else:
            self.files += 1
        for child in node.children or ():
            self.count(child)

    # ------------------------------------------------------------------ what is known of a file

    def size(self, node: _Node) -> int:
        return node.size if self.o.disk_usage else modes.size_of(node.stat)

    def facts(self, node: _Node) -> list[tuple[str, str, str]]:
        """Return what was asked for: its name, its text as such, and its text in brackets."""
        o, stat = self.o, node.stat
        found: list[tuple[str, str, str]] = []
        if o.inodes:
            found.append(("inode", str(stat.inode or 0), f"{stat.inode or 0:7d}"))
        if o.perms:
            text = modes.mode_string(stat.kind, modes.mode_of(stat))
            found += [("mode", f"{modes.mode_of(stat):04o}", ""), ("prot", text, text)]
        if o.user:
            found.append(("user", self.proc.user.name, f"{self.proc.user.name:<8}"))
        if o.group:
            found.append(("group", self.proc.user.group, f"{self.proc.user.group:<8}"))
        size = self.size(node)
        if o.human or o.si:
            found.append(("size", str(size), f"{human(size, 1000 if o.si else 1024):>4}"))
        elif o.size or o.disk_usage:
            found.append(("size", str(size), f"{size:11d}"))
        if o.date or o.time_format:
            moment = stat.mtime_ns or 0
            recent = 0 <= self.proc.now() - moment / NANO < 31556952 / 2
            form = o.time_format or ("%b %e %H:%M" if recent else "%b %e  %Y")
            text = strftime(form, *at(moment, zone_of(self.proc)))
            found.append(("time", text, text))
        return found

    def label(self, node: _Node, shown: str, lead: str = "") -> str:
        o, stat = self.o, node.stat
        known = [text for _, _, text in self.facts(node) if text]
        info = f"[{' '.join(known)}]  " if known else ""
        text = f'"{shown}"' if o.quote else shown
        if stat.kind is Kind.LINK:
            text += f' -> "{stat.target}"' if o.quote else f" -> {stat.target}"
        if o.classify:
            executable = stat.kind is Kind.FILE and modes.mode_of(stat) & 0o111
            text += "/" if node.leads else "*" if executable else ""
        return (info + lead if o.metafirst else lead + info) + text + node.note

    def draw(self, node: _Node, prefix: str, path: str, out: list[str]) -> None:
        drawn = "ascii" if self.o.charset and "utf" not in self.o.charset.lower() else "utf"
        branch, last, pipe, blank = _LINES[self.o.ascii or drawn]
        children = node.children or []
        for i, child in enumerate(children):
            ending = i == len(children) - 1
            full = f"{path.rstrip('/')}/{child.name}"
            lead = "" if self.o.no_indent else prefix + (last if ending else branch)
            if self.o.ascii == "ansi" and lead:
                lead = f"\033(0{lead}\033(B"
            out.append(self.label(child, full if self.o.full_path else child.name, lead))
            if child.told:
                below = "" if self.o.no_indent else prefix + (blank if ending else pipe)
                out += [below + line for line in bracketed(child.told, utf=not self.o.ascii and drawn == "utf")]
            self.draw(child, prefix + (blank if ending else pipe), full, out)

    # ------------------------------------------------------------------ HTML

    def as_html(self, node: _Node, prefix: str, path: str, out: list[str], lead: str = "") -> None:
        """Append the HTML lines of a node and its children."""
        o = self.o
        assert o.base is not None
        known = [text for _, _, text in self.facts(node) if text]
        info = f"[{' '.join(known)}]    ".replace(" ", "&nbsp;") if known else ""
        top = not path
        shown = (o.base.rstrip("/") or o.base) if top else f"{node.path_text}" if o.full_path else node.name
        if node.note and top:
            out.append(f"{anchor(shown, None)}{node.note}<br>")
            return
        where = None if o.no_links else address(o.base, path.removeprefix("/"), directory=node.leads)
        kind = self._kind(node) if o.colored else ""
        start = "" if o.no_indent else "\t" + lead
        out.append(f"{start}{info}{anchor(shown, where, kind)}{node.note}<br>")
        drawn = "ascii" if o.charset and "utf" not in o.charset.lower() else "utf"
        branch, last, pipe, blank = _LINES[drawn]
        children = node.children or []
        for i, child in enumerate(children):
            ending = i == len(children) - 1
            child.path_text = f"{node.path_text}/{child.name}"
            inner = prefix + (last if ending else branch)
            self.as_html(child, prefix + (blank if ending else pipe), f"{path}/{child.name}", out, inner)

    def _kind(self, node: _Node) -> str:
        if node.leads:
            return "DIR"
        if node.stat.kind is Kind.FILE and modes.mode_of(node.stat) & 0o111:
            return "EXEC"
        return {Kind.FIFO: "FIFO", Kind.SOCKET: "SOCK", Kind.DEVICE: "CHAR"}.get(node.stat.kind, "NORM")

    # ------------------------------------------------------------------ for programs

    def as_json(self, node: _Node, name: str, depth: int, out: list[str]) -> None:
        kind = _KINDS.get(node.stat.kind, "file")
        pairs = [f'"type":"{kind}"', f'"name":{json.dumps(name, ensure_ascii=False)}']
        if node.told:
            said = "\n".join(node.told)
            pairs.append(f'"info":{json.dumps(said, ensure_ascii=False)}')
        if kind == "link":
            pairs.append(f'"target":{json.dumps(node.stat.target or "", ensure_ascii=False)}')
        for fact, text, _ in self.facts(node):
            pairs.append(f'"{fact}":{text if fact in ("size", "inode") else json.dumps(text, ensure_ascii=False)}')
        if node.note:
            pairs.append(f'"contents":[{{"error": "{node.note.strip(" []")}"}}]')
        indent = "  " * depth
        if not node.children:
            out.append(f"{indent}{{{','.join(pairs)}}}")
            return
        inner: list[str] = []
        for child in node.children:
            self.as_json(child, f"{name}/{child.name}" if self.o.full_path else child.name, depth + 1, inner)
        out.append(f'{indent}{{{",".join(pairs)},"contents":[\n' + ",\n".join(inner) + f"\n{indent}]}}")

    def as_xml(self, node: _Node, name: str, depth: int, out: list[str]) -> None:
        kind = _KINDS.get(node.stat.kind, "file")
        attributes = [("name", name)]
        if kind == "link":
            attributes.append(("target", node.stat.target or ""))
        attributes += [(fact, text) for fact, text, _ in self.facts(node)]
        start = f"{'  ' * depth}<{kind}" + "".join(f' {key}="{escape(text)}"' for key, text in attributes) + ">"
        if node.note:
            start += f"<error>{node.note.strip(' []')}</error>"
        if not node.children:
            out.append(f"{start}</{kind}>\n")
            return
        out.append(start + "\n")
        for child in node.children:
            self.as_xml(child, f"{name}/{child.name}" if self.o.full_path else child.name, depth + 1, out)
        out.append(f"{'  ' * depth}</{kind}>\n")


_KINDS = {Kind.DIR: "directory", Kind.LINK: "link", Kind.FIFO: "fifo", Kind.SOCKET: "socket", Kind.DEVICE: "char"}
_LINES = {
    "utf": ("├── ", "└── ", "│\u00a0\u00a0 ", "    "),
    "ascii": ("|-- ", "`-- ", "|   ", "    "),
    "ansi": ("tqq ", "mqq ", "x   ", "    "),
    "cp437": ("\udcc3\udcc4\udcc4 ", "\udcc0\udcc4\udcc4 ", "\udcb3   ", "    "),
}
"""Prefixes of names: before one of several, before the last, and below either."""
_DIRECTORY, _FILE = Stat(Kind.DIR), Stat(Kind.FILE)


def _listed(text: str, state: _Tree, name: str, path: Path) -> _Node:
    """Return the tree of paths that a text has one of in each line."""
    top = _Node(name, path, _DIRECTORY, leads=True, children=[])
    for line in text.split("\n"):
        node = top
        target = None
        if state.o.links:
            line, _, target = line.partition(" -> ")
        parts = [part for part in line.rstrip("/").split("/") if part]
        for depth, part in enumerate(parts[: state.level]):
            found = next((child for child in node.children or () if child.name == part), None)
            if found is None:
                found = _Node(part, node.path, _FILE)
                node.children = [*(node.children or ()), found]
            if depth + 1 < len(parts) or line.endswith("/"):
                found.stat, found.leads = _DIRECTORY, True
            node = found
        if target and node is not top:
            node.stat = Stat(Kind.LINK, target=target)

    def chosen(node: _Node) -> None:
        if node.children:
            wanted = [c for c in node.children if c.name == "." or state._wanted(c, False)]
            state._sort(wanted)
            node.children = wanted
            for child in wanted:
                chosen(child)

    chosen(top)
    return top


async def tree(proc: Proc, o: TreeOptions, operands: list[str]) -> int:
    if o.level is not None and (not o.level.isdigit() or int(o.level) == 0):
        raise UsageError("Invalid level, must be greater than 0.", hint=False)
    state = _Tree(proc, o, int(o.level) if o.level else 1 << 30)
    status = 0
    roots: list[_Node] = []
    for word in operands or ["."]:
        path = proc.path(word)
        if o.from_file:
            roots.append(_listed(decode(await slurp(proc, "-" if word == "." else word)), state, word, path))
            continue
        try:
            stat = await proc.fs.stat(path, follow=True)
        except OSError:
            roots.append(_Node(word, path, _DIRECTORY, note="  [error opening dir]"))
            status = 2
            continue
        node = _Node(word, path, stat, stat.kind is Kind.DIR)
        rules = parse(decode(await slurp(proc, o.gitfile)), f"{str(path).rstrip('/')}/") if o.gitfile else []
        await state.load(node, 0, rules)
        if stat.kind is not Kind.DIR:
            node.note = "  [error opening dir]"
        roots.append(node)
    for node in roots:
        if node.leads or node.stat.kind is not Kind.DIR:
            state.count(node)
    target = await proc.create(o.output) if o.output is not None else proc.stdout
    target.write(encode(await _page(state, roots) if o.base is not None else _printed(state, roots)))
    await proc.close(target)
    return status


async def _page(state: _Tree, roots: list[_Node]) -> str:
    o, out = state.o, list[str]()
    begin = intro(o.title) if o.intro is None else decode(await slurp(state.proc, o.intro))
    end = OUTRO if o.outro is None else decode(await slurp(state.proc, o.outro))
    for node in roots:
        node.path_text = node.name.rstrip("/")
        state.as_html(node, "", "", out)
    out.append("<br><br><p>\n")
    if not o.no_report:
        out += [_count_line(state), ""]
    out.append("</p>")
    return begin + "".join(line + "\n" for line in out) + end


def _count_line(state: _Tree) -> str:
    dirs = f"{state.dirs} director{'y' if state.dirs == 1 else 'ies'}"
    return dirs + ("" if state.o.dirs_only else f", {state.files} file{'' if state.files == 1 else 's'}")


def _printed(state: _Tree, roots: list[_Node]) -> str:
    o, out = state.o, list[str]()
    if o.form == "json":
        for node in roots:
            state.as_json(node, node.name, 1, out)
        files = "" if o.dirs_only else f',"files":{state.files}'
        report = "" if o.no_report else f',\n  {{"type":"report","directories":{state.dirs}{files}}}'
        return "[\n" + ",\n".join(out) + f"\n{report}\n]\n"
    if o.form == "xml":
        for node in roots:
            state.as_xml(node, node.name, 1, out)
        files = "" if o.dirs_only else f"    <files>{state.files}</files>\n"
        if not o.no_report:
            out.append(f"  <report>\n    <directories>{state.dirs}</directories>\n{files}  </report>\n")
        return '<?xml version="1.0" encoding="UTF-8"?>\n<tree>\n' + "".join(out) + "</tree>\n"
    for node in roots:
        out.append(state.label(node, node.name))
        state.draw(node, "", node.name, out)
    if not o.no_report:
        used = ""
        if o.disk_usage:
            total = sum(_used(node) for node in roots)
            used = f"{human(total, 1000 if o.si else 1024):>4}" if o.human or o.si else f"{total:12d} bytes"
            used += " used in "
        out.append(f"\n{used}{_count_line(state)}")
    return "".join(line + "\n" for line in out)


def _used(node: _Node) -> int:
    """Return the size of everything below a directory."""
    return sum(child.size for child in node.children or ())


COMMANDS = [
    Command(
        "tree",
        tree,
        TreeOptions,
        summary="List contents of directories in a tree-like format.",
        usage="[OPTION]... [DIRECTORY]...",
        ignored=("-n", "-N", "-q", "-x", "-R"),
        refused={
            "--device": "files are on no device",
        },
    ),
]
