"""fd: find files by pattern, without hidden and ignored files by default."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ramet import patterns
from ramet.commands.files.cp import lookup
from ramet.commands.framework.command import (
    Command,
    UsageError,
    choose,
    flag,
    help_text,
    mixed,
    several,
    value,
    version_text,
)
from ramet.commands.framework.file_modes import mode_of
from ramet.commands.framework.human_dates import BadDate, parse_date
from ramet.commands.framework.posix_regex import offload_long
from ramet.concurrency.sizes import LONG_PATTERN
from ramet.core import ops
from ramet.core.errors import reason
from ramet.core.paths import Path, decode, encode
from ramet.core.proc import Proc
from ramet.core.stat import Kind, Stat
from ramet.core.streams import Null
from ramet.patterns import PatternError
from ramet.text.glob import fnmatch
from ramet.text.strftime import NANO, zone_of


@dataclass(frozen=True, slots=True)
class FdOptions:
    hidden: bool = flag("-H", "--hidden", help="search hidden files and directories")
    no_ignore: bool = flag("-I", "--no-ignore", help="do not respect .(git|fd)ignore files")
    no_ignore_vcs: bool = flag("--no-ignore-vcs", help="do not respect .gitignore files")
    no_require_git: bool = flag("--no-require-git", help="respect .gitignore outside of repositories as well")
    ignore_files: tuple[str, ...] = several(
        "--ignore-file", metavar="PATH", help="one more file of patterns of what to leave out"
    )
    also: tuple[str, ...] = several("--and", metavar="PATTERN", help="one more pattern that has to match")
    prune: bool = flag("--prune", help="do not go into directories that match")
    batch_size: int = value(
        "--batch-size", metavar="SIZE", default=0, convert=int, help="names per command of -X; 0 is no limit"
    )
    unrestricted: bool = flag("-u", "--unrestricted", help="alias for -HI")
    case: str = choose(
        {"-s --case-sensitive": "s", "-i --ignore-case": "i"},
        default="",
        help="case-sensitive or insensitive search (default: smart case)",
    )
    glob: bool = choose(
        {"-g --glob": True, "--regex": False},
        default=False,
        help={"-g --glob": "glob-based search", "--regex": "regular-expression based search (default)"},
    )
    fixed: bool = flag("-F", "--fixed-strings", help="treat pattern as a literal string")
    absolute: bool = flag("-a", "--absolute-path", help="show absolute instead of relative paths")
    list: bool = flag("-l", "--list-details", help="use a long listing format with file metadata")
    follow: bool = flag("-L", "--follow", help="follow symbolic links")
    full_path: bool = flag("-p", "--full-path", help="search full absolute path (default: filename only)")
    max_depth: str | None = value("-d", "--max-depth", "--maxdepth", metavar="DEPTH", help="set maximum search depth")
    min_depth: str | None = value("--min-depth", metavar="DEPTH", help="only show results at this depth or deeper")
    exact_depth: str | None = value("--exact-depth", metavar="DEPTH", help="only show results at exactly this depth")
    exclude: tuple[str, ...] = several(
        "-E", "--exclude", metavar="PATTERN", help="exclude entries that match the given glob pattern"
    )
    types: tuple[str, ...] = several(
        "-t", "--type", metavar="TYPE", help="filter by type: f, d, l, x (executable), e (empty)"
    )
    extensions: tuple[str, ...] = several("-e", "--extension", metavar="EXT", help="filter by file extension")
    sizes: tuple[str, ...] = several("-S", "--size", metavar="SIZE", help="limit results by size: +10k, -1M")
    newer: str | None = value(
        "--changed-within",
        "--change-newer-than",
        "--changed-after",
        "--newer",
        metavar="DATE|DUR",
        help="filter by file modification time (newer than)",
    )
    older: str | None = value(
        "--changed-before",
        "--change-older-than",
        "--older",
        metavar="DATE|DUR",
        help="filter by file modification time (older than)",
    )
    execute: tuple[str, ...] = several("--exec-word", metavar="WORD", help="one word of the command of -x")
    batch: tuple[str, ...] = several("--exec-batch-word", metavar="WORD", help="one word of the command of -X")
    print0: bool = flag("-0", "--print0", help="separate results by the null character")
    limit: str | None = mixed(
        value("--max-results", metavar="COUNT", help="limit number of search results"),
        flag("-1", const="1", help="limit search to a single result"),
        default=None,
    )
    quiet: bool = flag("-q", "--quiet", "--has-results", help="print nothing; exit 0 if a result was found")
    search_path: tuple[str, ...] = several(
        "--search-path", metavar="PATH", help="provide paths to search as an alternative to operands"
    )
    base: str | None = value("--base-directory", metavar="PATH", help="change current working directory")
    one_system: bool = flag("--one-file-system", "--xdev", help="do not descend into a different file system")
    strip_cwd: bool = flag("--strip-cwd-prefix", help="strip './' prefix from output")
    slash: str | None = value("--path-separator", metavar="SEPARATOR", help="what stands between the parts of paths")
    version: bool = flag("-V", help="print version")
    asked: bool = flag("-h", help="print help")


def _exec_words(words: list[str]) -> list[str]:
    """`-x CMD ... ;` and `-X CMD ...`: the rest of the line, up to a semicolon, is a command."""
    for i, word in enumerate(words):
        if word in ("-x", "--exec", "-X", "--exec-batch"):
            name = "--exec-batch-word" if word in ("-X", "--exec-batch") else "--exec-word"
            rest = words[i + 1 :]
            end = rest.index(";") if ";" in rest else len(rest)
            return [*words[:i], *(f"{name}={w}" for w in rest[:end]), *rest[end + 1 :]]
    return words


async def fd(proc: Proc, o: FdOptions, operands: list[str]) -> int:
    if o.asked or o.version:
        await proc.emit(encode(help_text(COMMANDS[0]) if o.asked else version_text(COMMANDS[0])))
        return 0
    base = proc.path(o.base) if o.base is not None else proc.cwd
    roots = [*operands[1:], *o.search_path]
    tests: list[_Test] = []
    for text in (operands[0] if operands else "", *o.also):
        try:
            tests.append(await offload_long(proc, (text,), partial(_test, text, o)))
        except PatternError as error:
            proc.stderr.write(encode(f"[fd error]: {error}\n"))
            return 1
    depth = [int(d) if d and d.isdigit() else default for d, default in ((o.min_depth, 1), (o.max_depth, 1 << 30))]
    if o.exact_depth and o.exact_depth.isdigit():
        depth = [int(o.exact_depth)] * 2
    names = {"file": "f", "directory": "d", "dir": "d", "symlink": "l", "executable": "x", "empty": "e"}
    kinds = {names.get(t, t) for t in o.types}
    if kinds - set("fdlxespbc"):
        raise UsageError(
            f"error: invalid value '{sorted(kinds - set('fdlxe'))[0]}' for '--type <filetype>'", hint=False
        )
    job = _Search(proc, o, tests, depth[0], depth[1], kinds)
    job.bare = not roots and not o.absolute
    more = [rule for name in o.ignore_files for rule in await _rules(proc, proc.path(name), proc.cwd)]
    valid = False
    for root in roots or [""]:
        path = (
            proc.path(root)
            if root.startswith("/")
            else (base if not root else proc.path(root) if o.base is None else base / root)
        )
        stat = await lookup(proc, path, follow=True)
        if stat is None or not stat.is_dir:
            proc.stderr.write(encode(f"[fd error]: Search path '{root}' is not a directory.\n"))
            continue
        valid = True
        prefix = str(path) + "/" if o.absolute else (root.rstrip("/") + "/" if root else "")
        job.in_repository = not o.no_ignore_vcs and (o.no_require_git or await _is_repository(proc, path))
        await job.walk(path, prefix, 1, more + await job.ignores(path))
        if job.done:
            break
    if not valid:
        proc.stderr.write(b"[fd error]: No valid search paths given.\n")
        return 1
    return await job.finish()


_Test = Callable[[str], object]


def _test(text: str, o: FdOptions) -> _Test:
    """Return a test of a name or path against the pattern."""
    icase = o.case == "i" or (not o.case and text == text.lower())
    if o.glob and text:
        return lambda name: fnmatch(name, text, icase=icase, pathname=o.full_path)
    if len(text) > LONG_PATTERN and not o.fixed:
        matcher = patterns.compile(encode(text), patterns.RUST, icase=icase)
        return lambda name: matcher.test(encode(name))
    # RE2 cannot hang, whatever the pattern.
    import re2

    options = re2.Options()
    options.case_sensitive = not icase
    options.log_errors = False
    try:
        search: _Test = re2.compile(re.escape(text) if o.fixed else text, options).search
    except re2.error as error:
        why = decode(error.args[0]) if isinstance(error.args[0], bytes) else str(error)
        raise PatternError(f"regex parse error:\n    {text}\nerror: {why}\n\n{_ADVICE}") from None
    return search


_ADVICE = (
    "Note: You can use the '--fixed-strings' option to search for a literal string instead of a regular expression. "
    "Alternatively, you can also use the '--glob' option to match on a glob pattern."
)


async def _is_repository(proc: Proc, directory: Path) -> bool:
    while True:
        if await lookup(proc, directory / ".git", follow=True) is not None:
            return True
        if str(directory) == "/":
            return False
        directory = directory.parent


async def _rules(proc: Proc, path: Path, base: Path) -> list[tuple[Path, str]]:
    try:
        data = await ops.read_bytes(proc.fs, path)
    except OSError:
        return []
    lines = (decode(line).strip() for line in data.split(b"\n"))
    return [(base, line) for line in lines if line and not line.startswith("#")]


def _ignored(rules: list[tuple[Path, str]], path: Path, is_dir: bool) -> bool:
    result = False
    for base, rule in rules:
        negated = rule.startswith("!")
        pattern = rule[1:] if negated else rule
        if pattern.endswith("/"):
            if not is_dir:
                continue
            pattern = pattern.rstrip("/")
        below = str(path.below(base)).lstrip("/")
        if "/" in pattern.rstrip("/"):
            hit = fnmatch(below, pattern.lstrip("/"), pathname=True)
        else:
            hit = fnmatch(path.name, pattern)
        if hit:
            result = not negated
    return result


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "y": 31557600}
_SIZE = re.compile(r"([+-]?)(\d+)(b|k|m|g|t|ki|mi|gi|ti|B|K|M|G|T|Ki|Mi|Gi|Ti)?")


class _Search:
    """One run: matches are printed, passed to a command, or counted."""

    def __init__(self, proc: Proc, o: FdOptions, tests: list[_Test], low: int, high: int, kinds: set[str]) -> None:
        self.proc, self.o, self.tests, self.low, self.high, self.kinds = proc, o, tests, low, high, kinds
        self.in_repository = False
        self.bare = False
        """Whether names omit the leading `./`; commands get it, so that a name with a leading dash is not an option."""
        self.ignoring = not (o.no_ignore or o.unrestricted)
        self.hidden = o.hidden or o.unrestricted
        if o.limit is not None and not o.limit.isdecimal():
            raise UsageError(f"invalid value '{o.limit}' for '--max-results'", hint=False)
        self.limit = int(o.limit) if o.limit else 1 << 60
        for text in o.sizes:
            if _SIZE.fullmatch(text) is None:
                raise UsageError(f"'{text}' is not a valid size constraint. See 'fd --help'.", 2, hint=False)
        self.words: list[str] = []
        self.count = 0
        self.status = 0
        now = int(proc.now() * NANO)
        self.newer = self._moment(o.newer, now)
        self.older = self._moment(o.older, now)

    def _moment(self, text: str | None, now: int) -> int | None:
        if text is None:
            return None
        found = re.fullmatch(
            r"(\d+)\s*(s|sec|secs|m|min|mins|h|hour|hours|d|day|days|w|week|weeks|month|months|y|year|years)", text
        )
        if found:
            unit = 30 * 86400 if found[2].startswith("month") else _UNITS[found[2][0]]
            return now - int(found[1]) * unit * NANO
        try:
            if not text[:1].isdecimal():
                raise BadDate(text)
            return parse_date(text, now, zone_of(self.proc))
        except BadDate:
            raise UsageError(f"'{text}' is not a valid date or duration. See 'fd --help'.", 1, hint=False) from None

    @property
    def done(self) -> bool:
        return self.count >= self.limit or (self.o.quiet and self.count > 0)

    async def ignores(self, directory: Path) -> list[tuple[Path, str]]:
        """Read the ignore rules of a directory."""
        if not self.ignoring:
            return []
        names = (".gitignore", ".fdignore", ".ignore") if self.in_repository else (".fdignore", ".ignore")
        return [rule for name in names for rule in await _rules(self.proc, directory / name, directory)]

    async def walk(self, path: Path, prefix: str, depth: int, rules: list[tuple[Path, str]]) -> None:
        try:
            entries = sorted([entry async for entry in self.proc.fs.scan(path)])
        except OSError as error:
            self.proc.stderr.write(encode(f"[fd error]: {prefix}: {reason(error)}\n"))
            return
        await self.proc.budget.yield_turn()
        for name, stat in entries:
            if self.done:
                return
            here = path / name
            if name.startswith(".") and not self.hidden:
                continue
            if any(fnmatch(name, p.rstrip("/")) or fnmatch(prefix + name, p, pathname=True) for p in self.o.exclude):
                continue
            if name == ".git" and not self.o.no_ignore and not self.o.unrestricted:
                continue
            if self.o.follow and stat.kind is Kind.LINK:
                stat = await lookup(self.proc, here, follow=True) or stat
            if rules and _ignored(rules, here, stat.is_dir):
                continue
            hit = depth >= self.low and self._name(name, here) and await self._filters(name, here, stat)
            if hit:
                await self._hit(prefix + name + ("/" if stat.is_dir else ""))
            if stat.is_dir and depth < self.high and not (hit and self.o.prune):
                await self.walk(here, f"{prefix}{name}/", depth + 1, rules + await self.ignores(here))

    def _name(self, name: str, path: Path) -> bool:
        test = str(path) if self.o.full_path else name
        return all(found(test) for found in self.tests)

    async def _filters(self, name: str, path: Path, stat: Stat) -> bool:
        o = self.o
        if self.kinds and not await self._kind(path, stat):
            return False
        if o.extensions and not any(name.lower().endswith("." + e.lower().lstrip(".")) for e in o.extensions):
            return False
        for text in o.sizes:
            found = _SIZE.fullmatch(text)
            assert found is not None
            unit = (found[3] or "b").lower()
            factor = (1024 if unit.endswith("i") else 1000) ** "bkmgt".index(unit[0])
            size, wanted = stat.size or 0, int(found[2]) * factor
            if (
                stat.kind is not Kind.FILE
                or (found[1] == "+" and size < wanted)
                or (found[1] == "-" and size > wanted)
                or (not found[1] and size != wanted)
            ):
                return False
        if self.newer is not None and (stat.mtime_ns or 0) < self.newer:
            return False
        return self.older is None or (stat.mtime_ns or 0) <= self.older

    async def _kind(self, path: Path, stat: Stat) -> bool:
        base = self.kinds & set("fdl")
        if base and {Kind.FILE: "f", Kind.DIR: "d", Kind.LINK: "l"}.get(stat.kind) not in base:
            return False
        if "x" in self.kinds and not (stat.kind is Kind.FILE and mode_of(stat) & 0o111):
            return False
        if "e" in self.kinds:
            if stat.is_dir:
                async for _ in self.proc.fs.scan(path):
                    return False
                return True
            return stat.size == 0
        return True

    async def _hit(self, word: str) -> None:
        self.count += 1
        o = self.o
        if o.quiet:
            return
        if (o.execute or o.batch or o.print0) and self.bare and not o.strip_cwd:
            word = "./" + word
        if o.slash is not None:
            word = word.replace("/", o.slash)
        if o.execute:
            status = await self.proc.run(_filled(o.execute, word), stdin=Null())
            self.status = self.status or (1 if status else 0)
        else:
            self.words.append(word)
            if len(self.words) >= 1000 and not o.batch and not o.list:
                await self._flush()

    async def _flush(self) -> None:
        end = "\0" if self.o.print0 else "\n"
        await self.proc.emit(encode("".join(w + end for w in self.words)))
        self.words.clear()

    async def finish(self) -> int:
        o = self.o
        if o.quiet:
            return 0 if self.count else 1
        if o.list and self.words:
            return await self.proc.run(["ls", "-l", "-h", "-d", "--", *self.words])
        if o.batch and self.words:
            size = o.batch_size or len(self.words)
            for start in range(0, len(self.words), size):
                chunk = [word.rstrip("/") for word in self.words[start : start + size]]
                argv: list[str] = []
                for part in o.batch:
                    argv += chunk if part == "{}" else [part]
                if "{}" not in o.batch:
                    argv += chunk
                self.status = 1 if await self.proc.run(argv, stdin=Null()) else self.status
            return self.status
        await self._flush()
        return self.status


def _filled(argv: tuple[str, ...], word: str) -> list[str]:
    plain = word.rstrip("/")
    name = plain.rpartition("/")[2]
    stem = plain[: plain.rfind(".")] if "." in name.lstrip(".") else plain
    table = {
        "{}": plain,
        "{/}": name,
        "{//}": plain.rpartition("/")[0] or ".",
        "{.}": stem.removeprefix("./"),
        "{/.}": stem.rpartition("/")[2],
    }
    out = [re.sub(r"\{(?:/|//|\.|/\.)?\}", lambda m: table[m[0]], part) for part in argv]
    return out if out != list(argv) else [*argv, plain]


COMMANDS = [
    Command(
        name,
        fd,
        FdOptions,
        summary="A simple, fast and user-friendly alternative to find.",
        usage="[OPTION]... [PATTERN [PATH]...]",
        rewrite=_exec_words,
        bad_usage=2,
        ignored=(
            "-c= --color=",
            "-j= --threads=",
            "--show-errors",
            "--no-global-ignore-file",
            "--no-ignore-parent",
            "--hyperlink[=",
        ),
        refused={"-o= --owner=": "everything belongs to the workspace's user"},
        examples=[
            ("fd -e py", "all Python files"),
            ("fd -t d node_modules", "directories of that name"),
            ("fd -H -g '*.env'", "hidden files too, by glob"),
        ],
        version_letters="V",
        help_letters="h",
    )
    for name in ("fd", "fdfind")
]
