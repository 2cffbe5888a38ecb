"""What a command would cost: the tree of the text is walked, names and sizes are looked up, nothing is executed.

Figures are ranges. They are exact where words are known and files can be described, and open upwards (None) where only
a run could tell: a loop on a condition, the output of a substitution, a command that we know nothing about.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ramet.core import paths
from ramet.core.limits import Budget
from ramet.core.paths import Path
from ramet.core.resource import Cap
from ramet.core.stat import Kind, Stat
from ramet.shell.expand import globbing
from ramet.shell.expand.braces import expand_braces, has_braces
from ramet.shell.expand.fields import GlobWord
from ramet.shell.syntax import nodes, parse
from ramet.shell.syntax.printer import to_text
from ramet.workspace.session import Session

if TYPE_CHECKING:
    from ramet.workspace.workspace import Workspace

MAX_FILES: Final = 100_000
"""Files that an estimate looks at before it says `unknown`."""


@dataclass(frozen=True, slots=True)
class Range:
    """At least `low`, at most `high`; None is unbounded."""

    low: int = 0
    high: int | None = 0

    def __add__(self, other: Range) -> Range:
        high = None if self.high is None or other.high is None else self.high + other.high
        return Range(self.low + other.low, high)

    def times(self, count: Range) -> Range:
        if self.high == 0:
            return Range()
        high = None if self.high is None or count.high is None else self.high * count.high
        return Range(self.low * count.low, high)

    def maybe(self) -> Range:
        """The same, if it happens at all."""
        return Range(0, self.high)

    @property
    def exact(self) -> bool:
        return self.low == self.high

    def __contains__(self, value: int) -> bool:
        return self.low <= value and (self.high is None or value <= self.high)

    def __str__(self) -> str:
        return str(self.low) if self.exact else f"{self.low}..{'?' if self.high is None else self.high}"


UNKNOWN: Final = Range(0, None)
_FIGURES: Final = ("reads", "writes", "listings", "bytes_read", "network_bytes", "cache_bytes", "cache_hits")


@dataclass
class Estimate:
    """What a run would do: files read and written, directories listed, and bytes by where they come from."""

    reads: Range = field(default_factory=Range)
    writes: Range = field(default_factory=Range)
    listings: Range = field(default_factory=Range)
    bytes_read: Range = field(default_factory=Range)
    network_bytes: Range = field(default_factory=Range)
    cache_bytes: Range = field(default_factory=Range)
    cache_hits: Range = field(default_factory=Range)
    mounts: set[str] = field(default_factory=set)

    @property
    def exact(self) -> bool:
        return all(getattr(self, name).exact for name in _FIGURES)

    def __add__(self, other: Estimate) -> Estimate:
        figures = {name: getattr(self, name) + getattr(other, name) for name in _FIGURES}
        return Estimate(**figures, mounts=self.mounts | other.mounts)

    def times(self, count: Range) -> Estimate:
        return Estimate(**{name: getattr(self, name).times(count) for name in _FIGURES}, mounts=self.mounts)

    def maybe(self) -> Estimate:
        return Estimate(**{name: getattr(self, name).maybe() for name in _FIGURES}, mounts=self.mounts)

    def __str__(self) -> str:
        return ", ".join(f"{name} {getattr(self, name)}" for name in _FIGURES)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


READS_ALL: Final = _names("""
    cat tac wc sort uniq cut paste nl od xxd hexdump base64 base32 md5sum sha1sum sha224sum sha256sum sha384sum
    sha512sum b2sum cksum sum fold fmt expand unexpand column rev strings iconv zcat bzcat xzcat zstdcat diff comm join
    tsort awk sed
""")
"""Commands that read every file they are given to its end."""
READS_SOME: Final = _names("head tail grep egrep fgrep cmp file less more jq rg split csplit")
"""Commands that may stop early."""
PATIENT: Final = (READS_ALL - {"sed", "awk", "diff", "comm", "join"}) | {"tr", "tee"}
"""Commands that read their standard input to its end."""
PATTERN_FIRST: Final = _names("grep egrep fgrep rg sed awk jq")
"""Commands whose first operand is a program, not a file."""
LISTS: Final = _names("ls dir vdir")
WALKS: Final = _names("find tree du")
CHANGES: Final = _names("cp mv rm mkdir rmdir touch ln chmod chown truncate tee install dd tar unzip gzip")
FREE: Final = _names("""
    : [ alias basename bg break builtin cd command continue date declare dirname dirs disown echo enable env eval exit
    export expr factor false fg getopts hash hostname id jobs kill let local nproc numfmt popd printenv printf pushd pwd
    read readonly return seq set shift shopt sleep test time tr trap true type typeset ulimit umask uname unalias unset
    wait whoami yes
""")
"""Commands that touch no file of their own."""


async def provision(ws: Workspace, session: Session, text: str, cwd: Path | None = None) -> Estimate:
    """The estimate for shell text in a session, which it leaves as it is."""
    return await _Walk(ws, session, cwd or session.cwd).script(parse(text))


class _Walk:
    def __init__(self, ws: Workspace, session: Session, cwd: Path) -> None:
        self.ws, self.session, self.cwd = ws, session, cwd
        self.known: dict[str, str | None] = {}
        """Variables that the text itself binds; None is bound to something unknown."""
        self.depth = 0

    # ---------------------------------------------------------------------------------------------- the tree

    async def script(self, script: nodes.Script) -> Estimate:
        total = Estimate()
        for statement in script.statements:
            total += await self.node(statement.node)
        return total

    async def node(self, node: object) -> Estimate:
        if isinstance(node, nodes.Simple):
            return await self.simple(node)
        if isinstance(node, nodes.Pipeline):
            return await self.pipeline(node)
        if isinstance(node, nodes.AndOr):
            rest = await self.all(item for _, item in node.rest)
            return await self.node(node.first) + rest.maybe()
        if isinstance(node, nodes.Group | nodes.Subshell):
            return await self.script(node.body) + await self.redirects(node.redirects)
        if isinstance(node, nodes.If):
            return await self.branches(node) + await self.redirects(node.redirects)
        if isinstance(node, nodes.For):
            return await self.loop_over(node) + await self.redirects(node.redirects)
        if isinstance(node, nodes.While):
            turns = await self.script(node.condition) + await self.script(node.body)
            return turns.times(UNKNOWN) + await self.redirects(node.redirects)
        if isinstance(node, nodes.ForArith):
            return (await self.script(node.body)).times(UNKNOWN) + await self.redirects(node.redirects)
        if isinstance(node, nodes.Select):
            return (await self.script(node.body)).times(UNKNOWN)
        if isinstance(node, nodes.Case):
            bodies = await self.all_scripts(item.body for item in node.items)
            return bodies.maybe() + await self.redirects(node.redirects)
        if isinstance(node, nodes.Coproc):
            return await self.node(node.body)
        return Estimate()  # definitions, arithmetic and tests touch no file's content

    async def pipeline(self, node: nodes.Pipeline) -> Estimate:
        """A stage whose reader may stop early reads perhaps not everything."""
        total, patient = Estimate(), True
        for stage in reversed(node.stages):
            estimate = await self.node(stage)
            if not patient:
                for name in ("bytes_read", "network_bytes", "cache_bytes"):
                    setattr(estimate, name, getattr(estimate, name).maybe())
            patient = patient and isinstance(stage, nodes.Simple) and _first_word(stage) in PATIENT
            total += estimate
        return total

    async def all(self, items: Iterable[object]) -> Estimate:
        total = Estimate()
        for item in items:
            total += await self.node(item)
        return total

    async def all_scripts(self, scripts: Iterable[nodes.Script]) -> Estimate:
        total = Estimate()
        for script in scripts:
            total += await self.script(script)
        return total

    async def branches(self, node: nodes.If) -> Estimate:
        (condition, body), *others = node.clauses
        total = await self.script(condition) + (await self.script(body)).maybe()
        for other, then in others:
            total += (await self.script(other)).maybe() + (await self.script(then)).maybe()
        if node.orelse is not None:
            total += (await self.script(node.orelse)).maybe()
        return total

    async def loop_over(self, node: nodes.For) -> Estimate:
        words = await self.words(node.words) if node.words is not None else list(self.session.state.params)
        if words is None:
            self.known[node.name] = None
            return (await self.script(node.body)).times(UNKNOWN)
        total = Estimate()
        for word in words[:MAX_FILES]:
            self.known[node.name] = word
            total += await self.script(node.body)
        return total.maybe() if _may_leave(node.body) else total

    # ----------------------------------------------------------------------------------------- one command

    async def simple(self, node: nodes.Simple) -> Estimate:
        total = await self.redirects(node.redirects)
        for assignment in node.assigns:
            self.known[assignment.name] = None
            if isinstance(assignment.value, nodes.Word):
                total += await self.substitutions(assignment.value)
                if not node.words and assignment.subscript is None and not assignment.append:
                    self.known[assignment.name] = self.text(assignment.value)
        given = [word for word in node.words if isinstance(word, nodes.Word)]
        for word in given:
            total += await self.substitutions(word)
        words = await self.words(given)
        if words is None:
            return total + Estimate(UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)
        return total + await self.command(words) if words else total

    async def command(self, words: Sequence[str]) -> Estimate:
        name = words[0].rsplit("/", 1)[-1]
        function = self.session.state.functions.get(name)
        if function is not None:
            self.depth += 1
            try:
                return await self.node(function.node.body) if self.depth < 20 else _anything()
            finally:
                self.depth -= 1
        flags = [word for word in words[1:] if word.startswith("-") and word != "-"]
        operands = [word for word in words[1:] if not word.startswith("-") or word == "-"]
        if name == "cd":
            if operands:
                self.cwd = paths.parse(operands[0], self.cwd)
            return Estimate()
        if name in PATTERN_FIRST and not any(flag.startswith(("-e", "-f")) for flag in flags):
            operands = operands[1:]
        short = [flag for flag in flags if not flag.startswith("--")]
        recursive = name == "rg" or (name in ("grep", "egrep", "fgrep") and any("r" in f or "R" in f for f in short))
        if name in WALKS or (name in LISTS and any("R" in flag for flag in flags)):
            return await self.walk(_paths_only(operands) or ["."], content=None)
        if recursive:
            return await self.walk(operands or ["."], content=False)
        if name in LISTS:
            return await self.listing(operands or ["."])
        if name in READS_ALL or name in READS_SOME:
            stops = name in ("sed", "awk") and any("q" in word or "exit" in word for word in words)
            sized = name == "wc" and "-c" in flags  # the size alone needs no reading
            whole = name in READS_ALL and not stops and not sized
            return await self.read(operands, whole)
        if name in FREE:
            return Estimate()
        if name in CHANGES:
            return Estimate(UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, self.touched(operands))
        return _anything()

    def touched(self, operands: Iterable[str]) -> set[str]:
        return {str(self.ws.fs.mount_of(paths.parse(word, self.cwd))) for word in operands if word and word != "-"}

    async def read(self, operands: Iterable[str], whole: bool) -> Estimate:
        total = Estimate()
        for word in operands:
            if word == "-" or word.startswith("/dev/"):
                continue
            path = paths.parse(word, self.cwd)
            try:
                stat = await self.ws.fs.stat(path, follow=True)
            except OSError:
                continue  # the command will say so; it reads nothing
            if stat.kind is Kind.FILE:
                total += self.reading(path, stat, whole)
        return total

    def reading(self, path: Path, stat: Stat, whole: bool) -> Estimate:
        prefix = self.ws.fs.mount_of(path)
        size = Range(stat.size, stat.size) if stat.size is not None else UNKNOWN
        amount = size if whole else size.maybe()
        one = Range(1, 1)
        estimate = Estimate(reads=one, bytes_read=amount, mounts={str(prefix)})
        local = Cap.LOCAL in self.ws.fs.mounts[prefix].caps
        if not local:
            entry = self.ws.cached_files.entries.get(path)
            if entry is not None and entry.fresh(self.ws.settings.clock()):
                estimate.cache_hits, estimate.cache_bytes = one, amount
            else:
                estimate.network_bytes = amount if stat.size is None or whole else size.maybe()
        return estimate

    async def listing(self, operands: Iterable[str]) -> Estimate:
        total = Estimate()
        for word in operands:
            path = paths.parse(word, self.cwd)
            try:
                stat = await self.ws.fs.stat(path, follow=True)
            except OSError:
                continue
            if stat.kind is Kind.DIR:
                total += Estimate(listings=Range(1, 1), mounts={str(self.ws.fs.mount_of(path))})
        return total

    async def walk(self, operands: Iterable[str], content: bool | None) -> Estimate:
        """Every directory below; with `content` also the files (True: to their end, False: perhaps not)."""
        total, seen = Estimate(), 0
        pending = [paths.parse(word, self.cwd) for word in operands]
        while pending:
            here = pending.pop()
            try:
                stat = await self.ws.fs.stat(here, follow=True)
                if stat.kind is not Kind.DIR:
                    if content is not None:
                        total += self.reading(here, stat, content)
                    continue
                total += Estimate(listings=Range(1, 1), mounts={str(self.ws.fs.mount_of(here))})
                async for name, below in self.ws.fs.scan(here):
                    seen += 1
                    if seen > MAX_FILES:
                        return total + _anything()
                    if below.kind is Kind.DIR:
                        pending.append(here / name)
                    elif content is not None and below.kind is Kind.FILE:
                        total += self.reading(here / name, below, content)
            except OSError:
                continue
        return total

    async def redirects(self, redirects: Iterable[nodes.Redirect]) -> Estimate:
        total = Estimate()
        for redirect in redirects:
            total += await self.substitutions(redirect.target)
            if redirect.here is not None or redirect.op in ("<<", "<<-", "<<<", ">&", "<&"):
                continue
            target = self.text(redirect.target)
            if target is None:
                total += _anything()
            elif redirect.op == "<":
                total += await self.read([target], whole=False)
            elif not target.startswith("/dev/"):
                total += Estimate(writes=Range(1, 1), mounts=self.touched([target]))
        return total

    # ----------------------------------------------------------------------------------------------- words

    async def substitutions(self, word: nodes.Word) -> Estimate:
        """The cost of what runs inside a word."""
        total = Estimate()
        pending: list[object] = list(word.parts)
        while pending:
            part = pending.pop()
            if isinstance(part, nodes.CommandSub):
                total += await self.script(part.body) if part.body is not None else _anything()
            elif isinstance(part, nodes.ProcessSub):
                total += await self.script(part.body)
            elif isinstance(part, nodes.DoubleQuoted):
                pending.extend(part.parts)
            elif isinstance(part, nodes.ArithSub):
                pending.extend(part.body.parts)
            elif isinstance(part, nodes.Param):
                for argument in part.args:
                    pending.extend(argument.parts)
        return total

    async def words(self, words: Iterable[nodes.Word]) -> list[str] | None:
        """What the words expand to, with globs; None when only a run could tell."""
        found: list[str] = []
        for word in words:
            for single in expand_braces(word, 10_000) if has_braces(word) else (word,):
                text = self.text(single)
                if text is None:
                    return None
                if _is_glob(single):
                    state = self.session.state
                    fields = [_glob(text)]
                    budget = Budget(self.ws.settings.limits)
                    found += await globbing.expand(self.ws.fs, self.cwd, fields, state.shopts, None, budget)
                else:
                    found.append(text)
        return found

    def text(self, word: nodes.Word) -> str | None:
        parts = [self.part(part) for part in word.parts]
        if any(part is None for part in parts):
            return None
        joined = "".join(part for part in parts if part is not None)
        first = word.parts[0] if word.parts else None
        if (
            isinstance(first, nodes.Literal)
            and first.text.startswith("~")
            and (joined == "~" or joined.startswith("~/"))
        ):
            return self.ws.settings.user.home + joined[1:]
        return joined

    def part(self, part: object) -> str | None:
        if isinstance(part, nodes.Literal | nodes.SingleQuoted):
            return part.text
        if isinstance(part, nodes.Escaped):
            return part.char
        if isinstance(part, nodes.AnsiQuoted):
            return part.value
        if isinstance(part, nodes.DoubleQuoted):
            texts = [self.part(inner) for inner in part.parts]
            return None if any(text is None for text in texts) else "".join(text for text in texts if text is not None)
        if isinstance(part, nodes.Param) and part.form == "value" and not part.op and part.subscript is None:
            if part.name in self.known:
                return self.known[part.name]
            return self.session.state.store.get(part.name) if part.name.isidentifier() else None
        return None


def _first_word(node: nodes.Simple) -> str:
    first = node.words[0] if node.words else None
    if isinstance(first, nodes.Word) and len(first.parts) == 1 and isinstance(first.parts[0], nodes.Literal):
        return first.parts[0].text
    return ""


def _glob(text: str) -> GlobWord:
    word = GlobWord(text)
    word.pattern = text
    return word


def _anything() -> Estimate:
    return Estimate(UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)


def _is_glob(word: nodes.Word) -> bool:
    return any(isinstance(part, nodes.Literal) and any(c in part.text for c in "*?[") for part in word.parts)


def _may_leave(body: nodes.Script) -> bool:
    """Whether a loop's body can end the loop early (as far as its text shows)."""
    text = to_text(body)
    return any(word in text for word in ("break", "exit", "return", "continue"))


def _paths_only(operands: Sequence[str]) -> list[str]:
    """The starting points of a walk: what comes before find's expression."""
    found: list[str] = []
    for word in operands:
        if word in ("(", "!", ")"):
            break
        found.append(word)
    return found
