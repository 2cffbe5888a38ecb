"""The expressions of find, parsed once into closures; what need not wait stays synchronous: no await per file."""

from __future__ import annotations

import errno
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from ramet.commands.clock import EPOCH, NANO, at, zone_of
from ramet.commands.dates import BadDate, parse_date
from ramet.commands.declare import UsageError, quote
from ramet.commands.find_print import compile_printf, ls_line
from ramet.commands.globs import fnmatch
from ramet.commands.modes import BadMode, change_mode, mode_of, nlink_of
from ramet.core.errors import reason
from ramet.core.paths import Path, encode
from ramet.core.proc import Proc
from ramet.core.stat import Kind, Stat
from ramet.core.streams import Null, Writer


class Found:
    """A file that the walk met."""

    __slots__ = ("depth", "path", "stat", "word")

    def __init__(self, word: str, path: Path, stat: Stat, depth: int) -> None:
        self.word, self.path, self.stat, self.depth = word, path, stat, depth

    @property
    def name(self) -> str:
        return self.word.rstrip("/").rpartition("/")[2] or "/"


@dataclass
class Settings:
    """The global options, and what an evaluation tells the walk."""

    follow: str = "P"
    max_depth: int = 1 << 30
    min_depth: int = 0
    depth_first: bool = False
    one_system: bool = False
    day_start: bool = False
    files0: str | None = None
    regex_type: str = "emacs"
    top: str = ""
    pruned: bool = False
    quit: bool = False
    status: int = 0
    names_only: bool = False
    """The expression asks for names and kinds alone, so nothing needs a stat."""


Now = Callable[[Found], bool]
Later = Callable[[Found], Awaitable[bool]]


@dataclass(frozen=True)
class Node:
    """One part of the expression: `now` when it needs no waiting, else `later`; `acts` when -print is not implied."""

    now: Now | None
    later: Later | None = None
    acts: bool = False

    async def run(self, found: Found) -> bool:
        if self.now is not None:
            return self.now(found)
        assert self.later is not None
        return await self.later(found)


@dataclass
class Expression:
    """A compiled expression with the output it has gathered and the commands it still has to run."""

    proc: Proc
    root: Node
    out: list[bytes]
    batches: list[Batch]
    files: dict[str, Writer]

    @property
    def evaluate_now(self) -> Now | None:
        return self.root.now

    async def evaluate(self, found: Found) -> None:
        await self.root.run(found)

    async def flush(self) -> None:
        if self.out:
            data = b"".join(self.out)
            self.out.clear()
            await self.proc.emit(data)

    async def finish(self) -> None:
        await self.flush()
        for batch in self.batches:
            await batch.run()
        for writer in self.files.values():
            await self.proc.close(writer)


class Batch:
    """`-exec CMD {} +`: arguments gathered until they fill a command line."""

    LIMIT = 128 * 1024

    def __init__(self, parser: _Parser, argv: list[str], in_dir: bool) -> None:
        self.parser, self.argv, self.in_dir = parser, argv, in_dir
        self.words: list[str] = []
        self.size = 0
        self.cwd: Path | None = None

    async def add(self, found: Found) -> bool:
        word = found.word
        if self.in_dir:
            directory = found.path.parent
            if self.cwd is not None and self.cwd != directory:
                await self.run()
            self.cwd = directory
            word = f"./{found.name}"
        self.words.append(word)
        self.size += len(word) + 1
        if self.size >= self.LIMIT:
            await self.run()
        return True

    async def run(self) -> None:
        if not self.words:
            return
        words, self.words, self.size = self.words, [], 0
        await self.parser.flush()
        status = await self.parser.proc.run([*self.argv, *words], stdin=Null(), cwd=self.cwd)
        if status:
            self.parser.settings.status = 1


async def parse_expression(proc: Proc, words: list[str], settings: Settings) -> Expression:
    """The expression of a command line; UsageError in find's words."""
    parser = _Parser(proc, words, settings)
    root = await parser.comma() if words else None
    if parser.at < len(words):
        word = words[parser.at]
        if word == ")":
            raise UsageError("invalid expression; you have too many ')'")
        raise UsageError(f"paths must precede expression: `{word}'")
    if root is None:
        root = Node(None)
        root = parser.print_node(b"\n")
    elif not root.acts:
        root = _both(root, parser.print_node(b"\n"))
    return Expression(proc, root, parser.out, parser.batches, parser.files)


def _both(a: Node, b: Node) -> Node:
    acts = a.acts or b.acts
    if a.now is not None and b.now is not None:
        first, second = a.now, b.now
        return Node(lambda f: first(f) and second(f), acts=acts)

    async def later(found: Found) -> bool:
        return await a.run(found) and await b.run(found)

    return Node(None, later, acts)


def _either(a: Node, b: Node) -> Node:
    acts = a.acts or b.acts
    if a.now is not None and b.now is not None:
        first, second = a.now, b.now
        return Node(lambda f: first(f) or second(f), acts=acts)

    async def later(found: Found) -> bool:
        return await a.run(found) or await b.run(found)

    return Node(None, later, acts)


def _list(a: Node, b: Node) -> Node:
    async def later(found: Found) -> bool:
        await a.run(found)
        return await b.run(found)

    return Node(None, later, a.acts or b.acts)


def _negated(a: Node) -> Node:
    if a.now is not None:
        test = a.now
        return Node(lambda f: not test(f), acts=a.acts)

    async def later(found: Found) -> bool:
        return not await a.run(found)

    return Node(None, later, a.acts)


_KINDS = {
    "f": Kind.FILE,
    "d": Kind.DIR,
    "l": Kind.LINK,
    "p": Kind.FIFO,
    "s": Kind.SOCKET,
    "c": Kind.DEVICE,
    "b": None,
    "D": None,
}
_SIZES = {"": 512, "b": 512, "c": 1, "w": 2, "k": 1024, "M": 1024**2, "G": 1024**3}
_TIMES = {"atime": 86400, "ctime": 86400, "mtime": 86400, "amin": 60, "cmin": 60, "mmin": 60}


class _Parser:
    """Recursive descent over the words of the expression."""

    def __init__(self, proc: Proc, words: list[str], settings: Settings) -> None:
        self.proc, self.words, self.settings = proc, words, settings
        self.at = 0
        self.out: list[bytes] = []
        self.batches: list[Batch] = []
        self.files: dict[str, Writer] = {}
        self.now = int(proc.now() * NANO)
        self.follow_stats = settings.follow == "L"

    async def flush(self) -> None:
        if self.out:
            data = b"".join(self.out)
            self.out.clear()
            await self.proc.emit(data)

    # ----------------------------------------------------------------------------------------------- operators

    def peek(self) -> str | None:
        return self.words[self.at] if self.at < len(self.words) else None

    async def comma(self) -> Node:
        node = await self.either()
        while self.peek() == ",":
            self.at += 1
            node = _list(node, await self.either())
        return node

    async def either(self) -> Node:
        node = await self.both()
        while self.peek() in ("-o", "-or"):
            self.at += 1
            self._operand("-o")
            node = _either(node, await self.both())
        return node

    async def both(self) -> Node:
        node = await self.negation()
        while (word := self.peek()) is not None and word not in ("-o", "-or", ",", ")"):
            if word in ("-a", "-and"):
                self.at += 1
                self._operand(word)
            node = _both(node, await self.negation())
        return node

    def _operand(self, operator: str) -> None:
        if self.peek() in (None, ")", "-o", "-or", "-a", "-and", ","):
            raise UsageError(f"expected an expression after '{operator}'")

    async def negation(self) -> Node:
        word = self.peek()
        if word in ("!", "-not"):
            self.at += 1
            if self.peek() is None:
                raise UsageError(f"expected an expression after '{word}'")
            return _negated(await self.negation())
        if word == "(":
            self.at += 1
            if self.peek() == ")":
                raise UsageError("invalid expression; empty parentheses are not allowed.")
            if self.peek() is None:
                raise UsageError(
                    "invalid expression; expected to find a ')' but didn't see one. "
                    "Perhaps you need an extra predicate after '('"
                )
            node = await self.comma()
            if self.peek() != ")":
                raise UsageError("invalid expression; I was expecting to find a ')' somewhere but did not see one.")
            self.at += 1
            return node
        if word in ("-o", "-or", "-a", "-and", ","):
            raise UsageError(f"invalid expression; you have used a binary operator '{word}' with nothing before it.")
        return await self.primary()

    async def primary(self) -> Node:
        word = self.words[self.at]
        if not word.startswith("-") or word == "-":
            if word == ")":
                raise UsageError("invalid expression; you have too many ')'")
            raise UsageError(f"paths must precede expression: `{word}'")
        self.at += 1
        name = word[1:]
        handler = getattr(self, f"p_{name.replace('-', '_')}", None) if re.fullmatch(r"[a-zA-Z0-9_-]+", name) else None
        if handler is not None:
            result = handler()
            node: Node = await result if isinstance(result, Awaitable) else result
            return node
        if name in _TIMES:
            return self.age(name, self.argument(word))
        found = re.fullmatch(r"newer([aBcm])([aBcmt])", name)
        if found is not None:
            return await self.newer(found[2], self.argument(word))
        raise UsageError(f"unknown predicate `{word}'")

    def argument(self, option: str) -> str:
        if self.at >= len(self.words):
            raise UsageError(f"missing argument to `{option}'")
        self.at += 1
        return self.words[self.at - 1]

    def number(self, option: str, text: str) -> tuple[str, float]:
        found = re.fullmatch(r"([+-]?)(\d+(?:\.\d*)?|\.\d+)", text)
        if found is None:
            raise UsageError(f"invalid argument `{text}' to `{option}'")
        return found[1], float(found[2])

    def compare(self, option: str, value: Callable[[Found], float], text: str) -> Node:
        sign, wanted = self.number(option, text)
        if sign == "+":
            return Node(lambda f: value(f) > wanted)
        if sign == "-":
            return Node(lambda f: value(f) < wanted)
        return Node(lambda f: value(f) == wanted)

    # --------------------------------------------------------------------------------------------------- names

    def p_name(self) -> Node:
        pattern = self.argument("-name")
        if not any(c in pattern for c in "*?[\\"):
            return Node(lambda f: f.name == pattern)
        return Node(lambda f: fnmatch(f.name, pattern))

    def p_iname(self) -> Node:
        pattern = self.argument("-iname")
        return Node(lambda f: fnmatch(f.name, pattern, icase=True))

    def p_path(self, icase: bool = False, option: str = "-path") -> Node:
        pattern = self.argument(option)
        return Node(lambda f: fnmatch(f.word, pattern, icase=icase))

    def p_wholename(self) -> Node:
        return self.p_path(option="-wholename")

    def p_ipath(self) -> Node:
        return self.p_path(True, "-ipath")

    def p_iwholename(self) -> Node:
        return self.p_path(True, "-iwholename")

    def p_lname(self, icase: bool = False) -> Node:
        pattern = self.argument("-ilname" if icase else "-lname")
        return Node(lambda f: f.stat.kind is Kind.LINK and fnmatch(f.stat.target or "", pattern, icase=icase))

    def p_ilname(self) -> Node:
        return self.p_lname(True)

    def p_regex(self, icase: bool = False) -> Node:
        from ramet.patterns import POSIX_BASIC, POSIX_EXTENDED, PatternError, compile

        pattern = self.argument("-iregex" if icase else "-regex")
        kind = self.settings.regex_type
        basic = kind in ("posix-basic", "ed", "grep", "sed", "posix-minimal-basic")
        if kind in ("emacs", "findutils-default"):
            pattern = _from_emacs(pattern)
        try:
            matcher = compile(encode(pattern), POSIX_BASIC if basic else POSIX_EXTENDED, icase=icase)
        except PatternError as error:
            raise UsageError(f"failed to compile regular expression '{pattern}': {error}") from None

        def test(found: Found) -> bool:
            raw = encode(found.word)
            return matcher.search(raw) == (0, len(raw))

        return Node(test)

    def p_iregex(self) -> Node:
        return self.p_regex(True)

    def p_regextype(self) -> Node:
        kind = self.argument("-regextype")
        known = (
            "findutils-default",
            "ed",
            "emacs",
            "gnu-awk",
            "grep",
            "posix-awk",
            "awk",
            "posix-basic",
            "posix-egrep",
            "egrep",
            "posix-extended",
            "posix-minimal-basic",
            "sed",
        )
        if kind not in known:
            listed = ", ".join(f"'{k}'" for k in known)
            raise UsageError(f"Unknown regular expression type {quote(kind)}; valid types are {listed}.")
        self.settings.regex_type = kind
        return _TRUE

    # --------------------------------------------------------------------------------------------------- kinds

    def p_type(self, option: str = "-type") -> Node:
        text = self.argument(option)
        kinds: set[Kind] = set()
        for i, letter in enumerate(text.split(",")):
            if not letter:
                raise UsageError(
                    f"Last file type in list argument to {option} is missing, i.e., list is ending on: ','"
                    if i
                    else f"Arguments to {option} should contain at least one letter"
                )
            if len(letter) > 1:
                raise UsageError(f"Must separate multiple arguments to {option} using: ','")
            if letter not in _KINDS:
                raise UsageError(f"Unknown argument to {option}: {letter}")
            kind = _KINDS[letter]
            if kind is not None:
                kinds.add(kind)
        if option == "-xtype":
            return self.xtype(kinds)
        if len(kinds) == 1:
            only = next(iter(kinds))
            return Node(lambda f: f.stat.kind is only)
        return Node(lambda f: f.stat.kind in kinds)

    def xtype(self, kinds: set[Kind]) -> Node:
        fs = self.proc.fs

        async def later(found: Found) -> bool:
            if found.stat.kind is not Kind.LINK:
                return found.stat.kind in kinds
            try:
                return (await fs.stat(found.path, follow=True)).kind in kinds
            except OSError:
                return Kind.LINK in kinds

        return Node(None, later)

    def p_xtype(self) -> Node:
        return self.p_type("-xtype")

    def p_size(self) -> Node:
        text = self.argument("-size")
        found = re.fullmatch(r"([+-]?)(\d+)([bcwkMG]?)", text)
        if found is None:
            raise UsageError(
                f"Invalid argument `{text}' to -size"
                if not re.fullmatch(r"[+-]?\d*\D", text)
                else f"invalid -size type `{text[-1]}'"
            )
        unit, wanted, sign = _SIZES[found[3]], int(found[2]), found[1]

        def units(f: Found) -> int:
            size = (
                4096
                if f.stat.kind is Kind.DIR
                else len(encode(f.stat.target or ""))
                if f.stat.kind is Kind.LINK
                else f.stat.size or 0
            )
            return -(-size // unit)

        if sign == "+":
            return Node(lambda f: units(f) > wanted)
        return Node(lambda f: units(f) < wanted) if sign == "-" else Node(lambda f: units(f) == wanted)

    def p_empty(self) -> Node:
        fs = self.proc.fs

        async def later(found: Found) -> bool:
            if found.stat.kind is Kind.FILE:
                return found.stat.size == 0
            if found.stat.kind is Kind.DIR:
                async for _ in fs.scan(found.path):
                    return False
                return True
            return False

        return Node(None, later)

    def p_links(self) -> Node:
        return self.compare("-links", lambda f: nlink_of(f.stat), self.argument("-links"))

    def p_inum(self) -> Node:
        return self.compare("-inum", lambda f: f.stat.inode or 0, self.argument("-inum"))

    def p_samefile(self) -> Awaitable[Node]:
        word = self.argument("-samefile")

        async def make() -> Node:
            try:
                stat = await self.proc.fs.stat(self.proc.path(word), follow=self.settings.follow != "P")
                path = self.proc.path(word)
            except OSError as error:
                raise UsageError(f"{quote(word)}: {reason(error)}") from None
            return Node(lambda f: f.path == path or (stat.inode is not None and f.stat.inode == stat.inode))

        return make()

    def p_true(self) -> Node:
        return _TRUE

    def p_false(self) -> Node:
        return Node(lambda f: False)

    def p_fstype(self) -> Node:
        wanted = self.argument("-fstype")
        return Node(lambda f: wanted == "ramet")

    # ------------------------------------------------------------------------------------------- owners and modes

    def p_perm(self) -> Node:
        text = self.argument("-perm")
        how, spec = (text[0], text[1:]) if text[:1] in ("-", "/") else ("", text)
        try:
            bits = change_mode(spec, 0, False, 0)
        except BadMode:
            raise UsageError(f"invalid mode {quote(text)}") from None
        if how == "-":
            return Node(lambda f: mode_of(f.stat) & bits == bits)
        if how == "/":
            return Node(lambda f: bits == 0 or bool(mode_of(f.stat) & bits))
        return Node(lambda f: mode_of(f.stat) == bits)

    def access(self, bit: int) -> Node:
        return Node(lambda f: bool(mode_of(f.stat) & bit << 6) or f.stat.kind is Kind.LINK)

    def p_readable(self) -> Node:
        return self.access(4)

    def p_writable(self) -> Node:
        return self.access(2)

    def p_executable(self) -> Node:
        return self.access(1)

    def p_user(self) -> Node:
        wanted = self.argument("-user")
        user = self.proc.user
        if wanted not in (user.name, "root") and not wanted.isdigit():
            raise UsageError(f"{quote(wanted)} is not the name of a known user")
        same = wanted in (user.name, str(user.uid))
        return Node(lambda f: same)

    def p_group(self) -> Node:
        wanted = self.argument("-group")
        user = self.proc.user
        if wanted not in (user.group, "root") and not wanted.isdigit():
            raise UsageError(f"{quote(wanted)} is not the name of an existing group")
        same = wanted in (user.group, str(user.gid))
        return Node(lambda f: same)

    def p_uid(self) -> Node:
        uid = self.proc.user.uid
        return self.compare("-uid", lambda f: uid, self.argument("-uid"))

    def p_gid(self) -> Node:
        gid = self.proc.user.gid
        return self.compare("-gid", lambda f: gid, self.argument("-gid"))

    def p_nouser(self) -> Node:
        return Node(lambda f: False)

    def p_nogroup(self) -> Node:
        return Node(lambda f: False)

    # --------------------------------------------------------------------------------------------------- times

    def age(self, name: str, text: str) -> Node:
        """`-mtime N`: whole days ago; only modification times are kept here, so all three kinds mean them."""
        option = f"-{name}"
        sign, wanted = self.number(option, text)
        unit = _TIMES[name] * NANO
        base = self.now
        if self.settings.day_start:
            when, _ = at(self.now, zone_of(self.proc))
            midnight = datetime(when.year, when.month, when.day, tzinfo=when.tzinfo) + timedelta(days=1)
            base = int((midnight - EPOCH).total_seconds()) * NANO

        def old(f: Found) -> float:
            return (base - (f.stat.mtime_ns or 0)) / unit

        if sign == "+":
            return Node(lambda f: old(f) >= wanted + 1) if unit == 86400 * NANO else Node(lambda f: old(f) > wanted)
        if sign == "-":
            return Node(lambda f: old(f) < wanted)
        if unit == 86400 * NANO:
            return Node(lambda f: wanted <= old(f) < wanted + 1)
        return Node(lambda f: wanted - 1 < old(f) <= wanted)

    def p_used(self) -> Node:
        self.number("-used", self.argument("-used"))
        return Node(lambda f: False)

    def p_newer(self) -> Awaitable[Node]:
        return self.newer("m", self.argument("-newer"))

    def p_anewer(self) -> Awaitable[Node]:
        return self.newer("m", self.argument("-anewer"))

    def p_cnewer(self) -> Awaitable[Node]:
        return self.newer("m", self.argument("-cnewer"))

    async def newer(self, how: str, word: str) -> Node:
        if how == "t":
            try:
                limit = parse_date(word, self.now, zone_of(self.proc))
            except BadDate:
                raise UsageError(f"I cannot figure out how to interpret {quote(word)} as a date or time") from None
        else:
            try:
                limit = (await self.proc.fs.stat(self.proc.path(word), follow=True)).mtime_ns or 0
            except OSError as error:
                raise UsageError(f"{quote(word)}: {reason(error)}") from None
        return Node(lambda f: (f.stat.mtime_ns or 0) > limit)

    # ------------------------------------------------------------------------------------------------- options

    def p_maxdepth(self) -> Node:
        self.settings.max_depth = self.whole("-maxdepth")
        return _TRUE

    def p_mindepth(self) -> Node:
        self.settings.min_depth = self.whole("-mindepth")
        return _TRUE

    def whole(self, option: str) -> int:
        text = self.argument(option)
        if not text.isdigit():
            raise UsageError(f"Expected a positive decimal integer argument to {option}, but got {quote(text)}")
        return int(text)

    def p_depth(self) -> Node:
        self.settings.depth_first = True
        return _TRUE

    p_d = p_depth

    def p_daystart(self) -> Node:
        self.settings.day_start = True
        return _TRUE

    def p_follow(self) -> Node:
        self.settings.follow = "L"
        return _TRUE

    def p_xdev(self) -> Node:
        self.settings.one_system = True
        return _TRUE

    p_mount = p_xdev

    def p_files0_from(self) -> Node:
        self.settings.files0 = self.argument("-files0-from")
        return _TRUE

    def p_noleaf(self) -> Node:
        return _TRUE

    p_warn = p_nowarn = p_ignore_readdir_race = p_noignore_readdir_race = p_noleaf

    # ------------------------------------------------------------------------------------------------- actions

    def print_node(self, end: bytes) -> Node:
        add = self.out.append

        def show(found: Found) -> bool:
            add(encode(found.word) + end)
            return True

        return Node(show, acts=True)

    def p_print(self) -> Node:
        return self.print_node(b"\n")

    def p_print0(self) -> Node:
        return self.print_node(b"\0")

    def p_printf(self) -> Node:
        render = compile_printf(self.proc, self.argument("-printf"), self.settings)
        return self.emit(render, None)

    def emit(self, render: Callable[[Found], bytes | Awaitable[bytes]], target: str | None) -> Node:
        async def later(found: Found) -> bool:
            made = render(found)
            data = made if isinstance(made, bytes) else await made
            if target is None:
                self.out.append(data)
            else:
                writer = self.files[target]
                writer.write(data)
                if writer.full:
                    await writer.drain()
            return True

        return Node(None, later, acts=True)

    async def output(self, option: str) -> str:
        word = self.argument(option)
        if word not in self.files:
            try:
                self.files[word] = await self.proc.create(word)
            except OSError as error:
                raise UsageError(f"{quote(word)}: {reason(error)}") from None
        return word

    async def p_fprint(self) -> Node:
        target = await self.output("-fprint")
        return self.emit(lambda f: encode(f.word) + b"\n", target)

    async def p_fprint0(self) -> Node:
        target = await self.output("-fprint0")
        return self.emit(lambda f: encode(f.word) + b"\0", target)

    async def p_fprintf(self) -> Node:
        target = await self.output("-fprintf")
        return self.emit(compile_printf(self.proc, self.argument("-fprintf"), self.settings), target)

    def p_ls(self) -> Node:
        return self.emit(lambda f: ls_line(self.proc, f), None)

    async def p_fls(self) -> Node:
        target = await self.output("-fls")
        return self.emit(lambda f: ls_line(self.proc, f), target)

    def p_prune(self) -> Node:
        settings = self.settings

        def prune(found: Found) -> bool:
            settings.pruned = True
            return True

        return Node(prune)

    def p_quit(self) -> Node:
        settings = self.settings

        def stop(found: Found) -> bool:
            settings.quit = True
            return True

        return Node(stop, acts=True)

    def p_delete(self) -> Node:
        self.settings.depth_first = True
        proc = self.proc

        async def later(found: Found) -> bool:
            if found.word in (".", "./"):
                return True
            try:
                await proc.fs.remove(found.path)
            except OSError as error:
                if error.errno == errno.ENOENT:
                    return True
                proc.complain(f"cannot delete {quote(found.word)}: {reason(error)}")
                self.settings.status = 1
                return False
            return True

        return Node(None, later, acts=True)

    def command(self, option: str) -> tuple[list[str], bool]:
        """The words of -exec up to `;` or `{} +`."""
        start = self.at
        while self.at < len(self.words):
            word = self.words[self.at]
            if word == ";":
                break
            if word == "+" and self.at > start and self.words[self.at - 1] == "{}":
                argv = self.words[start : self.at - 1]
                self.at += 1
                if any("{}" in w for w in argv):
                    raise UsageError("Only one instance of {} is supported with -exec ... +".replace("-exec", option))
                return argv, True
            self.at += 1
        else:
            raise UsageError(f"missing argument to `{option}'")
        argv = self.words[start : self.at]
        self.at += 1
        if not argv:
            raise UsageError(f"invalid argument `;' to `{option}'")
        return argv, False

    def execute(self, option: str, in_dir: bool, ask: bool) -> Node:
        argv, batched = self.command(option)
        if batched:
            batch = Batch(self, argv, in_dir)
            self.batches.append(batch)
            return Node(None, batch.add, acts=True)
        proc = self.proc

        async def later(found: Found) -> bool:
            word = f"./{found.name}" if in_dir else found.word
            words = [part.replace("{}", word) for part in argv]
            await self.flush()
            if ask:
                proc.stderr.write(encode(f"< {words[0]} ... {found.word} > ? "))
                if (await proc.stdin.readline())[:1] not in (b"y", b"Y"):
                    return False
            cwd = found.path.parent if in_dir else None
            return await proc.run(words, stdin=Null() if ask else None, cwd=cwd) == 0

        return Node(None, later, acts=True)

    def p_exec(self) -> Node:
        return self.execute("-exec", False, False)

    def p_execdir(self) -> Node:
        return self.execute("-execdir", True, False)

    def p_ok(self) -> Node:
        return self.execute("-ok", False, True)

    def p_okdir(self) -> Node:
        return self.execute("-okdir", True, True)


_TRUE = Node(lambda f: True)


def _from_emacs(pattern: str) -> str:
    """Emacs syntax as an extended regular expression: groups and alternation are escaped, braces are plain."""
    out: list[str] = []
    i = 0
    while i < len(pattern):
        c = pattern[i]
        if c == "\\" and i + 1 < len(pattern):
            following = pattern[i + 1]
            out.append(following if following in "(|)" else c + following)
            i += 2
            continue
        if c == "[":
            end = pattern.find("]", i + 2 if pattern[i + 1 : i + 2] != "^" else i + 3)
            if end > 0:
                out.append(pattern[i : end + 1])
                i = end + 1
                continue
        out.append("\\" + c if c in "(|){}" else c)
        i += 1
    return "".join(out)
