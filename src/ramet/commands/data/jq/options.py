"""Parse jq's options, which may stand anywhere and take several words."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ramet.commands.data.jq.io.reader import JsonReader, ParseError
from ramet.commands.data.jq.values import Json
from ramet.commands.framework.command import UsageError


@dataclass
class JqOptions:
    slurp: bool = False
    null_input: bool = False
    raw_output: bool = False
    join: bool = False
    nul: bool = False
    ascii: bool = False
    compact: bool = False
    colour: bool = False
    monochrome: bool = False
    sort: bool = False
    exit_status: bool = False
    raw_input: bool = False
    indent: str = "  "
    stream: bool = False
    stream_errors: bool = False
    seq: bool = False
    help: bool = False
    version: bool = False
    unbuffered: bool = False
    configuration: bool = False
    from_file: str | None = None
    libraries: list[str] = field(default_factory=list)
    named: dict[str, Json] = field(default_factory=dict)
    positional: list[Json] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    files: list[tuple[str, str, str]] = field(default_factory=list)
    """--slurpfile and --rawfile, to be read: (kind, name, file)."""


_SWITCHES = {
    "s": "slurp", "slurp": "slurp", "n": "null_input", "null-input": "null_input", "r": "raw_output",
    "raw-output": "raw_output", "j": "join", "join-output": "join", "a": "ascii", "ascii-output": "ascii",
    "c": "compact", "compact-output": "compact", "C": "colour", "color-output": "colour",
    "M": "monochrome", "monochrome-output": "monochrome", "S": "sort", "sort-keys": "sort",
    "e": "exit_status", "exit-status": "exit_status", "R": "raw_input", "raw-input": "raw_input", "stream": "stream",
    "seq": "seq", "raw-output0": "nul", "stream-errors": "stream_errors", "h": "help", "help": "help",
    "V": "version", "version": "version", "unbuffered": "unbuffered", "build-configuration": "configuration",
}  # fmt: skip
_IGNORED = frozenset(("b", "binary"))
_PAIRS = {
    "arg": "varname value",
    "argjson": "varname text",
    "slurpfile": "varname filename",
    "rawfile": "varname filename",
}
"""Options that take two words, with what these are."""


def options(words: list[str]) -> JqOptions:
    o = JqOptions()
    at = 0
    only_words = False
    rest = ""
    have_program = False

    def take(name: str, count: int) -> list[str]:
        nonlocal at
        if at + count > len(words):
            raise _wrong(
                f"--{name} takes two parameters (e.g. --{name} {_PAIRS[name]})"
                if name in _PAIRS
                else f"--{name} takes one parameter"
            )
        at += count
        return words[at - count : at]

    while at < len(words):
        word = words[at]
        at += 1
        if only_words or not _OPTION(word):
            if not have_program and o.from_file is None:
                o.words.append(word)
                have_program = True
            elif rest == "args":
                o.positional.append(word)
            elif rest == "json":
                o.positional.append(_json_argument("jsonargs", word))
            else:
                o.words.append(word)
            continue
        if word == "--":
            only_words = True
        elif word.startswith("--"):
            name = word[2:]
            if name in _SWITCHES:
                setattr(o, _SWITCHES[name], True)
            elif name in _IGNORED:
                continue
            elif name == "tab":
                o.indent, o.compact = "\t", False
            elif name == "indent":
                (amount,) = take(name, 1)
                width = int(number[0]) if (number := _INTEGER(amount)) else 0
                if not -1 <= width <= 7:
                    raise _wrong("--indent takes a number between -1 and 7")
                o.indent, o.compact = "\t" if width < 0 else " " * width, width == 0
            elif name == "arg":
                key, text = take(name, 2)
                o.named.setdefault(key, text)
            elif name == "argjson":
                key, text = take(name, 2)
                o.named.setdefault(key, _json_argument(name, text))
            elif name in ("slurpfile", "rawfile"):
                key, file = take(name, 2)
                o.files.append((name, key, file))
            elif name == "args":
                rest = "args"
            elif name == "jsonargs":
                rest = "json"
            elif name == "from-file":
                (o.from_file,) = take(name, 1)
            elif name == "library-path":
                o.libraries += take(name, 1)
            else:
                raise _wrong(f"Unknown option {word}")
        else:
            letters = word[1:]
            for position, letter in enumerate(letters):
                if letter in _SWITCHES:
                    setattr(o, _SWITCHES[letter], True)
                elif letter in _IGNORED:
                    continue
                elif letter == "f":
                    (o.from_file,) = take("from-file", 1)
                elif letter == "L":
                    o.libraries += [letters[position + 1 :]] if letters[position + 1 :] else take("library-path", 1)
                    break
                else:
                    raise _wrong(f"Unknown option {word}")
    o.stream = o.stream or o.stream_errors
    o.raw_output = o.raw_output or o.join or o.nul
    o.colour = o.colour and not o.monochrome
    return o


_OPTION = re.compile("-[-A-Za-z]").match
"""What looks like an option; other words with a dash are programs, as `-.a` is."""


_INTEGER = re.compile(r"\s*[+-]?[0-9]+").match


def _wrong(message: str) -> UsageError:
    hints = (
        "Use jq --help for help with command-line options,",
        "or see the jq manpage, or online docs  at https://jqlang.github.io/jq",
    )
    return UsageError("\n".join((message, *hints)), 2, hint=False)


def _json_argument(option: str, text: str) -> Json:
    reader = JsonReader()
    reader.feed(text.encode("utf-8", "surrogateescape"), True)
    try:
        (value,) = reader.take(True)
    except (ParseError, ValueError):
        raise _wrong(f"invalid JSON text passed to --{option}") from None
    return value
