"""How a command declares itself once: options class -> parser, `--help`, unknown-flag errors, documentation, schema.

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
import re
import textwrap
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Exec, Proc

VERSION = "0.1.0"


class UsageError(Exception):
    """The command line is wrong; `message` is what follows `name: ` on stderr."""

    def __init__(self, message: str, status: int | None = None, hint: bool = True) -> None:
        super().__init__(message)
        self.message, self.status, self.hint = message, status, hint


@dataclass(frozen=True, slots=True)
class Spec:
    """One option: its spellings, what it takes and what it stores."""

    names: tuple[str, ...]
    takes: str  # "none", "required", "optional"
    store: str  # "const", "value", "append", "count", "refuse", "ignore"
    const: object = None
    metavar: str = "ARG"
    help: str = ""
    convert: Callable[[str], object] | None = None
    choices: tuple[str, ...] = ()
    digits: bool = False  # `-5` is this option with the value 5
    dest: str = ""


def flag(*names: str, help: str = "", const: object = True, default: object = False) -> Any:
    """A switch; with `const` and `default` it may store something else than True."""
    return _field(default, Spec(names, "none", "const", const=const, help=help))


def choose(table: Mapping[str, object], *, default: object = None, help: Mapping[str, str] | str = "") -> Any:
    """Several switches that set one field, last one wins: `{"-d --delete": "d", "-t": "t"}`."""
    specs = [
        Spec(tuple(k.split()), "none", "const", const=v, help=help if isinstance(help, str) else help.get(k, ""))
        for k, v in table.items()
    ]
    return _field(default, *specs)


def count(*names: str, help: str = "") -> Any:
    """How often a switch was given."""
    return _field(0, Spec(names, "none", "count", help=help))


def value(
    *names: str,
    metavar: str = "ARG",
    default: object = None,
    convert: Callable[[str], object] | None = None,
    choices: Sequence[str] = (),
    digits: bool = False,
    help: str = "",
) -> Any:
    """An option with an argument; `choices` may be abbreviated; `convert` raises ValueError or UsageError."""
    spec = Spec(
        names, "required", "value", metavar=metavar, help=help, convert=convert, choices=tuple(choices), digits=digits
    )
    return _field(default, spec)


def optional(
    *names: str,
    metavar: str = "ARG",
    const: object,
    default: object = None,
    choices: Sequence[str] = (),
    help: str = "",
) -> Any:
    """An option whose argument may be left out (`--color[=WHEN]`, `-i[SUFFIX]`); `const` is stored then."""
    spec = Spec(names, "optional", "value", const=const, metavar=metavar, help=help, choices=tuple(choices))
    return _field(default, spec)


def several(*names: str, metavar: str = "ARG", convert: Callable[[str], object] | None = None, help: str = "") -> Any:
    """An option that may be repeated; the field is a tuple of all its arguments."""
    return _field((), Spec(names, "required", "append", metavar=metavar, help=help, convert=convert))


def mixed(*fields: Any, default: object) -> Any:
    """One field set by several declarations, last one wins: `mixed(flag("-v", const="a"), value("-w"), default="")`."""
    specs = [spec for part in fields for spec in part.metadata["specs"]]
    return _field(default, *specs)


def ordered() -> Any:
    """A field that receives options and operands in order as `(field name, value)` pairs; an operand has no name."""
    return field(default=(), metadata={"ordered": True})


def _field(default: object, *specs: Spec) -> Any:
    return field(default=default, metadata={"specs": specs})


@dataclass(frozen=True, slots=True)
class NoOptions:
    """For commands that take operands only."""


Body = Callable[[Proc, Any, list[str]], Awaitable[int]]


@dataclass(frozen=True)
class Command:
    """A command: its name, its body, and everything `--help` and `man` say."""

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
    """The body parses its own words (echo, test, expr, find, dd, printf); it is called with options=None."""
    rewrite: Callable[[list[str]], list[str]] | None = None
    """Turns historical spellings (`head -5c`, `tar xzf`) into ordinary options before parsing."""
    min_operands: int = 0
    max_operands: int | None = None
    aliases: Sequence[str] = ()

    @functools.cached_property
    def table(self) -> Table:
        return Table.of(self)

    async def __call__(self, proc: Proc) -> int:
        if self.raw:
            if len(proc.argv) == 2 and proc.argv[1] in ("--help", "--version") and self.name not in LITERAL_HELP:
                proc.stdout.write(encode(help_text(self) if proc.argv[1] == "--help" else version_text(self)))
                return 0
            try:
                return await self.body(proc, None, proc.argv[1:])
            except UsageError as error:
                return complain(proc, self, error)
            except OSError as error:
                return unexpected(proc, error)
        try:
            words = proc.argv[1:]
            options, operands = parse(self, self.rewrite(words) if self.rewrite is not None else words)
            if options is None:
                proc.stdout.write(encode(operands[0]))
                return 0
            self._check_operands(operands)
            return await self.body(proc, options, operands)
        except UsageError as error:
            return complain(proc, self, error)
        except OSError as error:
            return unexpected(proc, error)

    def _check_operands(self, operands: list[str]) -> None:
        if len(operands) < self.min_operands:
            if not operands:
                raise UsageError("missing operand")
            raise UsageError(f"missing operand after {quote(operands[-1])}")
        if self.max_operands is not None and len(operands) > self.max_operands:
            raise UsageError(f"extra operand {quote(operands[self.max_operands])}")


LITERAL_HELP = frozenset({"echo", "test", "[", "true", "false", ":"})
"""Commands for which `--help` is an operand like any other (as the shell's builtins of these names have it)."""


TYPOGRAPHIC = frozenset(
    [
        "[",
        "b2sum",
        "base32",
        "base64",
        "basename",
        "basenc",
        "cat",
        "chgrp",
        "chmod",
        "chown",
        "cksum",
        "comm",
        "csplit",
        "cut",
        "date",
        "dd",
        "df",
        "dirname",
        "du",
        "expand",
        "expr",
        "factor",
        "find",
        "fmt",
        "fold",
        "head",
        "id",
        "install",
        "join",
        "link",
        "ln",
        "logname",
        "ls",
        "md5sum",
        "mkdir",
        "mktemp",
        "nice",
        "nl",
        "nproc",
        "numfmt",
        "od",
        "paste",
        "pathchk",
        "pr",
        "printf",
        "readlink",
        "realpath",
        "rmdir",
        "seq",
        "sha1sum",
        "sha224sum",
        "sha256sum",
        "sha384sum",
        "sha512sum",
        "shred",
        "shuf",
        "sleep",
        "sort",
        "split",
        "stat",
        "sum",
        "sync",
        "tac",
        "tail",
        "tee",
        "test",
        "timeout",
        "touch",
        "tr",
        "truncate",
        "tsort",
        "tty",
        "uname",
        "unexpand",
        "uniq",
        "unlink",
        "wc",
        "whoami",
        "xargs",
        "yes",
    ]
)
"""Commands whose originals quote what the user typed as the locale does: in curly quotes where it has them."""
_PLAIN = re.compile(
    r"unrecognized option|invalid option|options? |range-endpoints|target |leading |cannot |failed "
    r"|invalid output address|extra operand .* not allowed"
)


def typographic(proc: Proc, message: str) -> str:
    """A message about an argument with the quotes of the locale: curly in UTF-8, straight elsewhere."""
    env = proc.env
    locale = env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or ""
    if "utf" not in locale.lower() or "'" not in message:
        return message
    return re.sub(r"(?<!\w)(?<!leading )(?<!with )(?<!number after )'([^']*)'", "\u2018\\1\u2019", message)


PREFIXED_HINT = frozenset({"diff", "cmp", "sdiff", "diff3", "patch"})
"""Commands whose originals put their name before the hint as well."""


def unexpected(proc: Proc, error: OSError) -> int:
    """What happens to an error that a body did not expect: a message, unless the reader of our output has gone."""
    if error.errno == errno.EPIPE:
        raise error
    where = f"{shown(str(error.filename))}: " if error.filename is not None else ""
    proc.complain(f"{where}{reason(error)}")
    return 1


def complain(proc: Proc, command: Command, error: UsageError) -> int:
    message = error.message
    if command.name in TYPOGRAPHIC and not _PLAIN.match(message):
        message = typographic(proc, message)
    proc.complain(message)
    if error.hint:
        lead = f"{proc.argv[0]}: " if command.name in PREFIXED_HINT else ""
        proc.stderr.write(encode(f"{lead}Try '{proc.argv[0]} --help' for more information.\n"))
    return command.bad_usage if error.status is None else error.status


def quote(text: str) -> str:
    """A word in GNU's quotes, shell-escaped where it has characters that would mislead."""
    if not any(c == "'" or c < " " or c == "\x7f" or "\ud800" <= c <= "\udfff" for c in text):
        return f"'{text}'"
    if "'" in text and not any(c < " " or c in '\x7f"$`\\!' or "\ud800" <= c <= "\udfff" for c in text):
        return f'"{text}"'
    out: list[str] = ["'"]
    escaped = False
    for c in text:
        odd = c < " " or c == "\x7f" or "\ud800" <= c <= "\udfff"
        if odd != escaped:
            out.append("'$'" if odd else "''")
            escaped = odd
        if odd:
            out.append(_ESCAPES.get(c) or f"\\{encode(c)[0]:03o}")
        else:
            out.append("'\\''" if c == "'" else c)
    return "".join(out) + "'"


_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\v": "\\v"}
_SPECIAL = frozenset(" !\"$&'()*;<=>[^`|\\?\x7f")


def shown(text: str) -> str:
    """A file name as GNU prints it in messages: quoted only where a shell would need quotes."""
    if text and text[0] not in "#~" and text not in ("{", "}") and _SPECIAL.isdisjoint(text) and text.isprintable():
        return text
    return quote(text)


# ------------------------------------------------------------------------------------------------------ parsing


@dataclass(frozen=True)
class Table:
    """The options of a command, indexed for the parser."""

    short: Mapping[str, Spec]
    long: Mapping[str, Spec]
    digits: Spec | None
    defaults: Mapping[str, object]
    ordered: str | None
    specs: tuple[Spec, ...]

    @classmethod
    def of(cls, command: Command) -> Table:
        specs: list[Spec] = []
        defaults: dict[str, object] = {}
        order: str | None = None
        for item in dataclasses.fields(command.options):
            defaults[item.name] = item.default
            if item.metadata.get("ordered"):
                order = item.name
            specs.extend(dataclasses.replace(spec, dest=item.name) for spec in item.metadata.get("specs", ()))
        for names, why in command.refused.items():
            specs.append(_bare(names, "refuse", why))
        specs.extend(_bare(names, "ignore", "accepted, has no effect here") for names in command.ignored)
        short = {n[1:]: s for s in specs for n in s.names if not n.startswith("--")}
        long = {n[2:]: s for s in specs for n in s.names if n.startswith("--")}
        return cls(short, long, next((s for s in specs if s.digits), None), defaults, order, tuple(specs))


def _bare(names: str, store: str, text: str) -> Spec:
    takes = "optional" if "[=" in names else "required" if "=" in names else "none"
    cleaned = tuple(n.split("[=")[0].split("=")[0] for n in names.split())
    return Spec(cleaned, takes, store, help=text)


def parse(command: Command, words: Sequence[str]) -> tuple[Any, list[str]]:
    """Options and operands; `(None, [text])` when help or version was asked for. Raises UsageError."""
    table = command.table
    if not any(w[:1] == "-" and w != "-" for w in words):
        return command.options(), list(words)
    state = _Parse(command, table)
    operands = state.consume(list(words))
    if state.wanted is not None:
        return None, [state.wanted]
    if table.ordered is not None:
        state.values[table.ordered] = tuple(state.order)
    return command.options(**state.values), operands


class _Parse:
    def __init__(self, command: Command, table: Table) -> None:
        self.command, self.table = command, table
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
                self.order.append(("", word))
                if self.command.operands_first:
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
        spec, full = self._find_long(name)
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

    def _find_long(self, name: str) -> tuple[Spec | None, str]:
        long = self.table.long
        if name in long:
            return long[name], name
        candidates = [known for known in (*long, "help", "version") if known.startswith(name)]
        specs = {id(long[c]) if c in long else c for c in candidates}
        if not candidates:
            raise UsageError(f"unrecognized option '--{name}'")
        if len(specs) > 1:
            options = " ".join(f"'--{c}'" for c in candidates)
            raise UsageError(f"option '--{name}' is ambiguous; possibilities: {options}")
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
            if len(matches) != 1:
                what = "ambiguous" if matches else "invalid"
                listed = "\n".join(f"  - {row}" for row in _listed(spec.choices))
                name = shown if shown.startswith("--") else next((n for n in spec.names if n.startswith("--")), shown)
                raise UsageError(f"{what} argument {quote(given)} for {quote(name)}\nValid arguments are:\n{listed}")
            return matches[0]
        if spec.convert is not None:
            try:
                return spec.convert(given)
            except ValueError as error:
                raise UsageError(str(error) or f"invalid argument {quote(given)}", hint=False) from None
        return given


_SYNONYMS = (("always", "yes", "force"), ("never", "no", "none"), ("auto", "tty", "if-tty"))


def _listed(choices: tuple[str, ...]) -> list[str]:
    """The choices as GNU lists them: words that mean the same share a row."""
    rows: list[str] = []
    for choice in choices:
        group = next((g for g in _SYNONYMS if choice in g and set(g) <= set(choices)), (choice,))
        if choice == group[0]:
            rows.append(", ".join(f"'{word}'" for word in group))
    return rows


# --------------------------------------------------------------------------------------------- what people read


def help_text(command: Command) -> str:
    """The `--help` of a command, made from its declaration."""
    lines = [f"Usage: {command.name} {command.usage}", command.summary]
    if command.details:
        lines += ["", textwrap.dedent(command.details).strip()]
    rows = list(_option_rows(command))
    if rows:
        lines.append("")
        width = min(28, max(len(left) for left, _ in rows) + 2)
        for left, right in rows:
            wrapped = textwrap.wrap(right, 79 - width) or [""]
            if len(left) + 2 > width:
                lines.append(left)
            else:
                lines.append(left.ljust(width) + wrapped.pop(0))
            lines += [" " * width + text for text in wrapped]
    if command.examples:
        lines += ["", "Examples:"]
        for text, meaning in command.examples:
            lines.append(f"  {text.ljust(34)} {meaning}".rstrip())
    return "\n".join(lines) + "\n"


def _option_rows(command: Command) -> Iterable[tuple[str, str]]:
    if command.raw:
        return
    for spec in command.table.specs:
        short = [n for n in spec.names if not n.startswith("--")]
        long = [n for n in spec.names if n.startswith("--")]
        argument = "" if spec.takes == "none" else spec.metavar
        if argument:
            attached = f"[={argument}]" if spec.takes == "optional" else f"={argument}"
            long = [f"{n}{attached}" for n in long]
            if short and not long:
                short[-1] += f"[{argument}]" if spec.takes == "optional" else f" {argument}"
        left = "  " + ", ".join(short + long) if short else "      " + ", ".join(long)
        text = f"(not supported) {spec.help}" if spec.store == "refuse" else spec.help
        yield left, text
    yield "      --help", "display this help and exit"
    yield "      --version", "output version information and exit"


def version_text(command: Command) -> str:
    return f"{command.name} (ramet) {VERSION}\n"


def table_of(*groups: Iterable[Command]) -> dict[str, Exec]:
    """Commands by every name they answer to."""
    table: dict[str, Exec] = {}
    for group in groups:
        for command in group:
            for name in (command.name, *command.aliases):
                table[name] = command
    return table
