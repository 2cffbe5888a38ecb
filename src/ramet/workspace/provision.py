"""Estimate the cost of shell text: walk its syntax tree and look up files, without running it.

Figures are ranges: exact where words are known and files can be described, unbounded (None) where only a run could
tell, as for a loop on a condition, the output of a substitution, or an unknown command.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from ramet.core import paths
from ramet.core.limits import Budget
from ramet.core.paths import Path
from ramet.core.resource import Cap
from ramet.core.stat import Kind, Stat
from ramet.shell.expand import glob as globbing
from ramet.shell.expand.word.braces import expand_braces, has_braces
from ramet.shell.expand.word.fields import GlobWord
from ramet.shell.syntax import nodes, parse
from ramet.shell.syntax.errors import SyntaxFailure
from ramet.shell.syntax.printer import to_text
from ramet.workspace.estimate import UNKNOWN, Estimate, Range, unbounded
from ramet.workspace.session import Session

if TYPE_CHECKING:
    from ramet.workspace.workspace import Workspace

MAX_FILES: Final = 100_000
"""Files that an estimate visits before it gives up."""


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
PROGRAMS: Final = _names("awk sed sort split csplit")
"""Readers whose arguments may also make them write."""
LISTS: Final = _names("ls dir vdir")
WALKS: Final = _names("find tree du")
CHANGES: Final = _names("mkdir rmdir touch ln chmod chown truncate tee")
"""Commands that change every name they are given, and read nothing."""
MOVES: Final = _names("cp mv rm")
WRAPPERS: Final = _names("builtin command env nice nohup time timeout")
"""Commands that run another command given after their options."""
FREE: Final = _names("""
    : [ alias basename bg break cd continue date declare dirname dirs disown echo enable exit
    export expr factor false fg getopts hash hostname id jobs kill let local nproc numfmt popd printenv printf pushd pwd
    read readonly return seq set shift shopt sleep test tr true type typeset ulimit umask uname unalias unset
    wait whoami yes
""")
"""Commands that access no file."""


async def provision(ws: Workspace, session: Session, text: str, cwd: Path | None = None) -> Estimate:
    """Estimate shell text in a session, without changing the session."""
    return await _Estimator(ws, session, cwd or session.cwd).script(parse(text))


class _Estimator:
    def __init__(self, ws: Workspace, session: Session, cwd: Path) -> None:
        self.ws, self.session, self.cwd = ws, session, cwd
        self.known: dict[str, str | None] = {}
        """Variables that the text sets; None for an unknown value."""
        self.depth = 0
        self.functions: dict[str, object] = {}
        """Functions that the text defines."""
        self.walked = 0
        """Entries that the last walk visited."""
        self.changed: set[Path] = set()
        """Paths that the text has changed, of unknown size."""

    # ---------------------------------------------------------------------------------------------- the tree

    async def script(self, script: nodes.Script) -> Estimate:
        total, certain = Estimate(), True
        for statement in script.statements:
            estimate = await self.node(statement.node)
            total += estimate if certain else estimate.maybe()
            certain = certain and not _may_end(statement.node)
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
        if isinstance(node, nodes.Function):
            self.functions[node.name] = node.body
        return Estimate()  # definitions, arithmetic and tests touch no file's content

    async def pipeline(self, node: nodes.Pipeline) -> Estimate:
        """A stage whose reader may stop early may read less."""
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
            return total + self.with_unknown_words(_first_word(node))
        return total + await self.command(words) if words else total

    def with_unknown_words(self, name: str) -> Estimate:
        """Return what a command can do with unknown arguments."""
        if name in FREE or name == "cd":
            return Estimate()
        if name in LISTS or name in WALKS - {"find"}:
            return Estimate(listings=UNKNOWN)
        if name in (READS_ALL | READS_SOME) - PROGRAMS:
            return Estimate(UNKNOWN, Range(), UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)
        return unbounded()

    async def command(self, words: Sequence[str]) -> Estimate:
        name = words[0].rsplit("/", 1)[-1]
        if name in self.functions or name in self.session.state.functions:
            return await self.call(name)
        flags = [word for word in words[1:] if word.startswith("-") and word != "-"]
        operands = [word for word in words[1:] if not word.startswith("-") or word == "-"]
        if name in WRAPPERS:
            return await self.estimate_wrapped(name, words[1:])
        if name == "eval" or (name in ("sh", "bash") and words[1:2] == ["-c"]):
            return await self.inner(" ".join(words[1:]) if name == "eval" else "".join(words[2:3]))
        if name == "cd":
            if operands:
                self.cwd = paths.parse(operands[0], self.cwd)
            return Estimate()
        if name in FREE:
            return Estimate()
        if name in CHANGES:
            names = operands[1:] if name in ("chmod", "chown") else operands
            return self.estimate_change(names, deep=any("R" in flag for flag in flags))
        if name in MOVES:
            return await self.estimate_move(name, operands)
        if name in READS_ALL or name in READS_SOME or name in LISTS or name in WALKS:
            return await self.estimate_read(name, words, flags, operands)
        return unbounded(self.mounts_of(operands))

    async def call(self, name: str) -> Estimate:
        body = self.functions.get(name)
        if body is None:
            body = self.session.state.functions[name].node.body
        self.depth += 1
        try:
            return (await self.node(body)) if self.depth < 20 else unbounded()
        finally:
            self.depth -= 1

    async def estimate_wrapped(self, name: str, words: Sequence[str]) -> Estimate:
        rest = list(words)
        while rest and (rest[0].startswith("-") or (name == "env" and "=" in rest[0])):
            if rest.pop(0) in ("-u", "-n", "-k", "-s", "-S", "-C"):
                return unbounded()
        if name == "timeout":
            rest = rest[1:]
        return (await self.command(rest)).maybe() if rest else Estimate()

    async def inner(self, text: str) -> Estimate:
        self.depth += 1
        try:
            return await self.script(parse(text)) if self.depth < 20 else unbounded()
        except SyntaxFailure:
            return Estimate()
        finally:
            self.depth -= 1

    def estimate_change(self, operands: Sequence[str], deep: bool) -> Estimate:
        self.changed.update(paths.parse(word, self.cwd) for word in operands)
        # `mkdir -p` may create every parent directory.
        many = UNKNOWN if deep else Range(0, sum(len(paths.parse(word, self.cwd).parts) for word in operands))
        return Estimate(writes=many, listings=UNKNOWN if deep else Range(), mounts=self.mounts_of(operands))

    async def estimate_move(self, name: str, operands: Sequence[str]) -> Estimate:
        """Estimate copies and removals: every file below may be read and written, or moved by the backend."""
        sources = operands if name == "rm" else operands[:-1]
        found = await self.walk(sources, content=True)
        names = Range(0, None if found.listings.high is None else self.walked)
        self.changed.update(paths.parse(word, self.cwd) for word in operands)
        if name == "rm":
            return Estimate(writes=names, listings=found.listings.maybe(), mounts=found.mounts)
        bounded = found.maybe()
        bounded.writes = names.times(Range(0, 2))
        bounded.mounts = found.mounts | self.mounts_of(operands)
        return bounded

    async def estimate_read(
        self, name: str, words: Sequence[str], flags: Sequence[str], operands: list[str]
    ) -> Estimate:
        """Estimate commands that list and read, unless their arguments make them do more."""
        program = operands[0] if operands and name in PATTERN_FIRST else ""
        if name in PATTERN_FIRST and not any(flag.startswith(("-e", "-f")) for flag in flags):
            operands = operands[1:]
        if _does_more(name, flags, words, program):
            self.changed.update(paths.parse(word, self.cwd) for word in operands)
            return unbounded(self.mounts_of(operands))
        short = [flag for flag in flags if not flag.startswith("--")]
        deep = any("r" in flag or "R" in flag for flag in short)
        if name in WALKS or (name in LISTS and any("R" in flag for flag in flags)):
            walked = await self.walk(_paths_only(operands) or ["."], content=None)
            return walked.maybe() if _SHALLOW.intersection(word.split("=")[0] for word in words) else walked
        if name == "rg" or (name in ("grep", "egrep", "fgrep", "diff") and deep):
            return await self.walk(operands or ["."], content=False)
        if name in LISTS:
            return await self.estimate_listing(operands or ["."])
        stops = name in ("sed", "awk") and any("q" in word or "exit" in word for word in words)
        sized = name == "wc" and "-c" in flags  # the size needs no read
        return await self.read(operands, name in READS_ALL and not stops and not sized)

    def mounts_of(self, operands: Iterable[str]) -> set[str]:
        return {str(self.ws.fs.mount_of(paths.parse(word, self.cwd))) for word in operands if word and word != "-"}

    def was_changed(self, path: Path) -> bool:
        return any(path.under(changed) for changed in self.changed)

    async def read(self, operands: Iterable[str], whole: bool) -> Estimate:
        total = Estimate()
        for word in operands:
            if word == "-" or word.startswith("/dev/"):
                continue
            path = paths.parse(word, self.cwd)
            if self.was_changed(path):
                unknown = Estimate(Range(0, 1), Range(), Range(), UNKNOWN, UNKNOWN, UNKNOWN, Range(0, 1))
                total += Estimate(**{**unknown.__dict__, "mounts": self.mounts_of([word])})
                continue
            try:
                stat = await self.ws.fs.stat(path, follow=True)
            except OSError:
                continue  # the command reports it, and reads nothing
            if stat.kind is Kind.FILE:
                total += self.estimate_file(path, stat, whole)
        return total

    def estimate_file(self, path: Path, stat: Stat, whole: bool) -> Estimate:
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

    async def estimate_listing(self, operands: Iterable[str]) -> Estimate:
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
        """Estimate a walk of every directory; with `content` also of files (True: whole, False: partly)."""
        total, seen = Estimate(), 0
        pending = [paths.parse(word, self.cwd) for word in operands]
        self.walked = len(pending)
        while pending:
            here = pending.pop()
            if self.was_changed(here) or any(changed.under(here) for changed in self.changed):
                return total + unbounded()
            try:
                stat = await self.ws.fs.stat(here, follow=True)
                if stat.kind is not Kind.DIR:
                    if content is not None:
                        total += self.estimate_file(here, stat, content)
                    continue
                total += Estimate(listings=Range(1, 1), mounts={str(self.ws.fs.mount_of(here))})
                async for name, below in self.ws.fs.scan(here):
                    seen += 1
                    self.walked += 1
                    if seen > MAX_FILES:
                        return total + unbounded()
                    if below.kind is Kind.DIR:
                        pending.append(here / name)
                    elif content is not None and below.kind is Kind.FILE:
                        total += self.estimate_file(here / name, below, content)
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
                total += unbounded()
            elif redirect.op == "<":
                total += await self.read([target], whole=False)
            elif not target.startswith("/dev/"):
                total += Estimate(writes=Range(1, 1), mounts=self.mounts_of([target]))
                self.changed.add(paths.parse(target, self.cwd))
        return total

    # ----------------------------------------------------------------------------------------------- words

    async def substitutions(self, word: nodes.Word) -> Estimate:
        """Estimate the substitutions in a word."""
        total = Estimate()
        pending: list[object] = list(word.parts)
        while pending:
            part = pending.pop()
            if isinstance(part, nodes.CommandSub):
                total += await self.script(part.body) if part.body is not None else unbounded()
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
        """Expand words with globs; None when only a run could tell."""
        found: list[str] = []
        for word in words:
            for single in expand_braces(word, 10_000) if has_braces(word) else (word,):
                text = self.text(single)
                if text is None:
                    return None
                if _is_glob(single):
                    state = self.session.state
                    fields = [GlobWord(text, text)]
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
            return self.session.state.variables.get(part.name) if part.name.isidentifier() else None
        return None


def _first_word(node: nodes.Simple) -> str:
    first = node.words[0] if node.words else None
    if isinstance(first, nodes.Word) and len(first.parts) == 1 and isinstance(first.parts[0], nodes.Literal):
        return first.parts[0].text
    return ""


def _is_glob(word: nodes.Word) -> bool:
    return any(isinstance(part, nodes.Literal) and any(c in part.text for c in "*?[") for part in word.parts)


def _may_leave(body: nodes.Script) -> bool:
    """Return whether the text of a loop's body may end the loop early."""
    text = to_text(body)
    return any(word in text for word in ("break", "exit", "return", "continue"))


def _paths_only(operands: Sequence[str]) -> list[str]:
    """Return the operands before find's expression."""
    found: list[str] = []
    for word in operands:
        if word in ("(", "!", ")"):
            break
        found.append(word)
    return found


_SHALLOW: Final = _names("-maxdepth -mindepth -prune -quit -L -d --max-depth -s")
"""Options that may limit a walk."""
_ACTS: Final = _names("-exec -execdir -ok -okdir -delete -fprint -fprintf -fls -fprint0")


def _does_more(name: str, flags: Sequence[str], words: Sequence[str], program: str) -> bool:
    """Return whether arguments make a reader write, run something, or read files that are not operands."""
    if name == "find":
        return not _ACTS.isdisjoint(words)
    if name == "sed":
        in_place = any(flag.startswith(("-i", "--in-place")) or (flag[1:2] != "-" and "i" in flag) for flag in flags)
        return in_place or re.search(r"(^|[\s;{}\d$/])[rRwWe](\s|$)", program) is not None
    if name == "awk":
        return re.search(r"getline|system|[|>]", program) is not None or "-f" in flags
    return name in PROGRAMS and (name != "sort" or any(flag.startswith(("-o", "--output")) for flag in flags))


def _may_end(node: object) -> bool:
    """Return whether the text of a statement may end the script."""
    text = to_text(node)
    return re.search(r"\b(exit|return|exec|kill|set -[a-zA-Z]*e|set -o errexit)\b", text) is not None
