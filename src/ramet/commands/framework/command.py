"""Command declarations: one options class gives the parser, `--help`, error messages and documentation.

Parsing is GNU getopt_long's: options and operands mix, `--` ends options, long names may be abbreviated, short flags
combine, values attach (`-n5`, `--lines=5`) or follow. Messages and exit codes are GNU's.

    @dataclass(frozen=True, slots=True)
    class HeadOptions:
        lines: str = value("-n", "--lines", metavar="[-]NUM", default="10", help="print the first NUM lines")
        quiet: bool = flag("-q", "--quiet", "--silent", help="never print headers giving file names")

    async def head(proc: Proc, options: HeadOptions, operands: list[str]) -> int: ...

    COMMANDS = [Command("head", head, HeadOptions, summary="Print the first lines.", usage="[OPTION]... [FILE]...")]
"""

from __future__ import annotations

import dataclasses
import errno
import functools
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ramet.commands.framework.help import VERSION, help_text, version_text
from ramet.commands.framework.messages import PLAIN_MESSAGES, called, quote, shown, typographic
from ramet.commands.framework.options import (
    NoOptions,
    Spec,
    UsageError,
    choose,
    count,
    flag,
    mixed,
    optional,
    ordered,
    several,
    value,
)
from ramet.commands.framework.stdin_errors import StdinError, without_input
from ramet.concurrency.offload import offload_large
from ramet.concurrency.sizes import MANY
from ramet.core.errors import LimitExceeded, reason
from ramet.core.paths import encode
from ramet.core.proc import Exec, Proc

__all__ = [
    "VERSION",
    "Body",
    "Command",
    "NoOptions",
    "Spec",
    "Table",
    "UsageError",
    "called",
    "choose",
    "complain",
    "count",
    "flag",
    "help_text",
    "mixed",
    "optional",
    "ordered",
    "parse",
    "quote",
    "several",
    "shown",
    "table_of",
    "typographic",
    "unexpected",
    "value",
    "version_text",
]

Body = Callable[[Proc, Any, list[str]], Awaitable[int]]


@dataclass(frozen=True)
class Command:
    """A command: its name, its body, and all that `--help` and `man` print."""

    name: str
    body: Body
    options: type = NoOptions
    summary: str = ""
    usage: str = "[OPTION]... [FILE]..."
    details: str = ""
    examples: Sequence[tuple[str, str]] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    """Options of the original that cannot work here, with the reason; `"-X --name=": why` takes an argument."""
    ignored: Sequence[str] = ()
    """Options that are harmless no-ops, in the same notation."""
    bad_usage: int = 1
    """Exit status of a usage error (GNU: 1 for most, 2 for ls, grep, sort, diff ...)."""
    operands_first: bool = False
    """The first operand ends the options (env, nohup, timeout, xargs)."""
    raw: bool = False
    """The body parses argv itself (echo, test, expr, find, dd, printf) and gets options=None."""
    rewrite: Callable[[list[str]], list[str]] | None = None
    """Rewrite historical spellings (`head -5c`, `tar xzf`) to ordinary options before parsing."""
    min_operands: int = 0
    max_operands: int | None = None
    aliases: Sequence[str] = ()
    original: str = ""
    """Product and version that `--version` names, such as `GNU coreutils 9.1`."""
    version_line: str = ""
    """All that `--version` prints, where scripts compare it."""
    version_letters: str = ""
    """Short options that mean `--version`, unless the command declares them."""
    help_letters: str = ""
    """Short options that mean `--help`, unless the command declares them."""
    literal_help: bool = False
    """`--help` and `--version` are operands, as for the shell's builtins of these names."""
    curly_quotes: bool = False
    """Messages quote arguments with the quotes of the locale: curly in UTF-8."""
    hint: str = "'{} --help'"
    """What a usage error tells the user to try; `{}` is the command as typed."""
    prefix_hint: bool = False
    """The hint begins with the name of the command."""
    usage_on_error: Literal["", "line", "full"] = ""
    """A usage error prints the usage line before the hint, or the whole help instead of it."""
    bad_choice: int | None = None
    """Exit status for a value outside the choices of an option; None: `bad_usage`."""
    write_error: tuple[str, int] = ("write error: ", 1)
    """Message before the reason, and exit status, when standard output cannot be written."""
    stdin_error: StdinError | None = None
    """What the command does when standard input is closed or a directory; None: reading fails like a file."""

    @functools.cached_property
    def table(self) -> Table:
        return Table.of(self)

    async def __call__(self, proc: Proc) -> int:
        if proc.stdin.refused and self.stdin_error is not None:
            return await without_input(proc, self.stdin_error, self.curly_quotes, self.start)
        return await self.start(proc)

    async def start(self, proc: Proc) -> int:
        if self.raw:
            if len(proc.argv) == 2 and proc.argv[1] in ("--help", "--version") and not self.literal_help:
                proc.stdout.write(encode(help_text(self) if proc.argv[1] == "--help" else version_text(self)))
                return 0
            try:
                return await self.body(proc, None, proc.argv[1:])
            except UsageError as error:
                return complain(proc, self, error)
            except OSError as error:
                return unexpected(proc, self, error)
        try:
            options, operands = await offload_large(proc.budget, len(proc.argv), lambda: self._parsed(proc), MANY)
            if options is None:
                proc.stdout.write(encode(operands[0]))
                return 0
            self._check_operands(operands)
            return await self.body(proc, options, operands)
        except UsageError as error:
            return complain(proc, self, error)
        except OSError as error:
            return unexpected(proc, self, error)
        except LimitExceeded as error:
            proc.complain(str(error))
            return self.bad_usage  # not 1 where that is an answer, as for `grep` and `cmp`

    def _parsed(self, proc: Proc) -> tuple[Any, list[str]]:
        words = proc.argv[1:]
        words = self.rewrite(words) if self.rewrite is not None else words
        return parse(self, words, "POSIXLY_CORRECT" in proc.env)

    def _check_operands(self, operands: list[str]) -> None:
        if len(operands) < self.min_operands:
            if not operands:
                raise UsageError("missing operand")
            raise UsageError(f"missing operand after {quote(operands[-1])}")
        if self.max_operands is not None and len(operands) > self.max_operands:
            raise UsageError(f"extra operand {quote(operands[self.max_operands])}")


def unexpected(proc: Proc, command: Command, error: OSError) -> int:
    """Report an error that the body did not catch; a broken pipe is raised again."""
    if error.errno == errno.EPIPE:
        raise error
    if error.filename is None and error.errno in (errno.EBADF, errno.ENOSPC):
        # Of writing: an error of reading names its file.
        message, status = command.write_error
        proc.complain(f"{message}{reason(error)}")
        return status
    proc.complain(f"{called(str(error.filename))}: {reason(error)}" if error.filename is not None else reason(error))
    return 1


def complain(proc: Proc, command: Command, error: UsageError) -> int:
    """Report a usage error and return the exit status."""
    message = error.message
    of_list = "\nValid arguments are:\n" in message
    if of_list or (command.curly_quotes and not PLAIN_MESSAGES.match(message)):
        message = typographic(proc, message)
    if message:
        proc.complain(message)
    if error.hint and command.usage_on_error == "full":
        proc.stderr.write(encode(help_text(command)))
    elif error.hint:
        if command.usage_on_error == "line":
            proc.stderr.write(encode(f"Usage: {proc.argv[0]} {command.usage}\n"))
        lead = f"{proc.argv[0]}: " if command.prefix_hint else ""
        ask = command.hint.replace("{}", proc.argv[0])
        proc.stderr.write(encode(f"{lead}Try {ask} for more information.\n"))
    return command.bad_usage if error.status is None else error.status


@dataclass(frozen=True)
class Table:
    """The options of a command, indexed for the parser."""

    short: Mapping[str, Spec]
    long: Mapping[str, Spec]
    digits: Spec | None
    defaults: Mapping[str, object]
    ordered: str | None
    places_operands: bool
    """Whether the position of operands among the options matters."""
    specs: tuple[Spec, ...]

    @classmethod
    def of(cls, command: Command) -> Table:
        specs: list[Spec] = []
        defaults: dict[str, object] = {}
        order: str | None = None
        places_operands = False
        for item in dataclasses.fields(command.options):
            defaults[item.name] = item.default
            if item.metadata.get("ordered"):
                order = item.name
                places_operands = item.metadata["operands"]
            specs.extend(dataclasses.replace(spec, dest=item.name) for spec in item.metadata.get("specs", ()))
        for names, why in command.refused.items():
            specs.append(_bare(names, "refuse", why))
        specs.extend(_bare(names, "ignore", "accepted, has no effect here") for names in command.ignored)
        short = {n[1:]: s for s in specs for n in s.names if not n.startswith("--")}
        long = {n[2:]: s for s in specs for n in s.names if n.startswith("--")}
        return cls(
            short, long, next((s for s in specs if s.digits), None), defaults, order, places_operands, tuple(specs)
        )


def _bare(names: str, store: str, text: str) -> Spec:
    takes = "optional" if "[=" in names else "required" if "=" in names else "none"
    cleaned = tuple(n.split("[=")[0].split("=")[0] for n in names.split())
    return Spec(cleaned, takes, store, help=text)


def parse(command: Command, words: Sequence[str], posix: bool = False) -> tuple[Any, list[str]]:
    """Parse options and operands; return `(None, [text])` for help and version. Raises UsageError.

    With `posix` (POSIXLY_CORRECT) the first operand ends the options.
    """
    table = command.table
    if not any(w[:1] == "-" and w != "-" for w in words):
        return command.options(), list(words)
    state = _Parse(command, table, posix)
    operands = state.consume(list(words))
    if state.wanted is not None:
        return None, [state.wanted]
    if table.ordered is not None:
        state.values[table.ordered] = tuple(state.order)
    return command.options(**state.values), operands


class _Parse:
    def __init__(self, command: Command, table: Table, posix: bool) -> None:
        self.command, self.table = command, table
        self.operands_first = command.operands_first or posix
        self.values: dict[str, Any] = {}
        self.order: list[tuple[str, object]] = []
        self.wanted: str | None = None

    def consume(self, words: list[str]) -> list[str]:
        operands: list[str] = []
        i = 0
        while i < len(words) and self.wanted is None:
            word = words[i]
            i += 1
            if word == "--":
                operands.extend(words[i:])
                if self.table.places_operands:
                    self.order.extend(("", operand) for operand in words[i:])
                break
            if word.startswith("--"):
                i = self._long(word[2:], words, i)
            elif word.startswith("-") and len(word) > 1:
                if self.table.digits is not None and word[1].isdigit():
                    i = self._digits(word, words, i)
                else:
                    i = self._short(word[1:], words, i)
            else:
                operands.append(word)
                if self.table.places_operands:
                    self.order.append(("", word))
                if self.operands_first:
                    operands.extend(words[i:])
                    break
        return operands

    def _digits(self, word: str, words: list[str], i: int) -> int:
        end = 1
        while end < len(word) and word[end].isdigit():
            end += 1
        assert self.table.digits is not None
        self._store(self.table.digits, word[1:end], word)
        return self._short(word[end:], words, i) if end < len(word) else i

    def _long(self, text: str, words: list[str], i: int) -> int:
        name, has_value, given = text.partition("=")
        spec, full = self._find_long(name, text)
        if spec is None:
            return i
        shown = f"--{full}"
        if spec.takes == "none" and has_value:
            raise UsageError(f"option '{shown}' doesn't allow an argument")
        if spec.takes == "required" and not has_value:
            if i >= len(words):
                raise UsageError(f"option '{shown}' requires an argument")
            given, i = words[i], i + 1
            has_value = "="
        self._store(spec, given if has_value else None, shown)
        return i

    def _find_long(self, name: str, text: str) -> tuple[Spec | None, str]:
        long = self.table.long
        if name in long:
            return long[name], name
        if name in ("help", "version"):
            self.wanted = help_text(self.command) if name == "help" else version_text(self.command)
            return None, name
        candidates = [known for known in (*long, "help", "version") if known.startswith(name)]
        specs = {id(long[c]) if c in long else c for c in candidates}
        if not candidates:
            raise UsageError(f"unrecognized option '--{text}'")
        if len(specs) > 1:
            options = " ".join(f"'--{c}'" for c in candidates)
            raise UsageError(f"option '--{text}' is ambiguous; possibilities: {options}")
        found = candidates[0]
        if found in long:
            return long[found], found
        self.wanted = help_text(self.command) if found == "help" else version_text(self.command)
        return None, found

    def _short(self, letters: str, words: list[str], i: int) -> int:
        at = 0
        while at < len(letters):
            letter = letters[at]
            at += 1
            spec = self.table.short.get(letter)
            if spec is None and letter.isdigit() and self.table.digits is not None:
                return self._digits("-" + letters[at - 1 :], words, i)
            if spec is None and letter in self.command.version_letters:
                self.wanted = version_text(self.command)
                return i
            if spec is None and letter in self.command.help_letters:
                self.wanted = help_text(self.command)
                return i
            if spec is None:
                raise UsageError(f"invalid option -- '{letter}'")
            if spec.takes == "none":
                self._store(spec, None, f"-{letter}")
                continue
            rest: str | None = letters[at:]
            if not rest:
                rest = None
                if spec.takes == "required":
                    if i >= len(words):
                        raise UsageError(f"option requires an argument -- '{letter}'")
                    rest, i = words[i], i + 1
            self._store(spec, rest, f"-{letter}")
            break
        return i

    def _store(self, spec: Spec, given: str | None, shown: str) -> None:
        if spec.store == "ignore":
            return
        if spec.store == "refuse":
            raise UsageError(f"option '{shown}' is not supported: {spec.help}", hint=False)
        stored: object
        if spec.store == "count":
            stored = self.values.get(spec.dest, 0) + 1
        elif given is None:
            stored = spec.const
        else:
            stored = self._converted(spec, given, shown)
        self.order.append((spec.dest, stored))
        if spec.store == "append":
            stored = (*self.values.get(spec.dest, ()), stored)
        self.values[spec.dest] = stored

    def _converted(self, spec: Spec, given: str, shown: str) -> object:
        if spec.choices:
            if given in spec.choices:
                return given
            matches = [c for c in spec.choices if c.startswith(given)] if given else []
            if not matches or not _one_meaning(matches):
                what = "ambiguous" if matches else "invalid"
                listed = "\n".join(f"  - {row}" for row in _listed(spec.choices))
                name = shown if shown.startswith("--") else next((n for n in spec.names if n.startswith("--")), shown)
                name = "backup type" if name == "--backup" else name
                message = f"{what} argument {quote(given)} for {quote(name)}\nValid arguments are:\n{listed}"
                raise UsageError(message, self.command.bad_choice)
            return matches[0]
        if spec.convert is not None:
            try:
                return spec.convert(given)
            except ValueError as error:
                raise UsageError(str(error) or f"invalid argument {quote(given)}", hint=False) from None
        return given


_SYNONYMS = (
    ("always", "yes", "force"),
    ("always", "yes"),
    ("never", "no", "none"),
    ("auto", "tty", "if-tty"),
    ("atime", "access", "use"),
    ("mtime", "modify"),
    ("none", "off"),
    ("simple", "never"),
    ("existing", "nil"),
    ("numbered", "t"),
    ("quiet", "silent"),
    ("ctime", "status"),
    ("birth", "creation"),
    ("verbose", "long"),
    ("horizontal", "across"),
)


def _one_meaning(words: list[str]) -> bool:
    """Return whether an ambiguous abbreviation has one meaning: all its completions are synonyms."""
    return len(words) == 1 or any(set(words) <= set(group) for group in _SYNONYMS)


def _listed(choices: tuple[str, ...]) -> list[str]:
    """List the choices as GNU does: synonyms share a row."""
    rows: list[str] = []
    for choice in choices:
        group = next((g for g in _SYNONYMS if choice in g and set(g) <= set(choices)), (choice,))
        if choice == group[0]:
            rows.append(", ".join(f"'{word}'" for word in group))
    return rows


def table_of(*groups: Iterable[Command]) -> dict[str, Exec]:
    """Index commands by name and alias."""
    table: dict[str, Exec] = {}
    for group in groups:
        for command in group:
            for name in (command.name, *command.aliases):
                table[name] = command
    return table
