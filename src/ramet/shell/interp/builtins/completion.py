"""Completion as far as it needs no terminal: `compgen` generates, `complete` remembers and shows specifications."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ramet.core.paths import encode
from ramet.shell.expand import quote
from ramet.shell.expand.aside import LARGE, aside
from ramet.shell.expand.fields import DEFAULT_IFS, split_plain
from ramet.shell.expand.patterns import compile_pattern
from ramet.shell.expand.values import Assoc, Dynamic, Indexed
from ramet.shell.expand.words import Words, fields_of
from ramet.shell.expand.words import words as compile_words
from ramet.shell.interp import signals
from ramet.shell.interp.builtins.lookup import KEYWORDS, builtin_table
from ramet.shell.interp.builtins.usage import SYNOPSES, bad_option, usage
from ramet.shell.interp.drive import Result, drive
from ramet.shell.interp.options import OPTIONS, SHOPTS
from ramet.shell.interp.patience import each, in_order, then, write_lines
from ramet.shell.interp.session import Builtin, Session
from ramet.shell.syntax.errors import SyntaxFailure
from ramet.shell.syntax.nodes import Simple, Word
from ramet.shell.syntax.parser import Parser

_ACTIONS: Final = {
    "alias": "a",
    "arrayvar": "ARRAY",
    "binding": "NONE",
    "builtin": "b",
    "command": "c",
    "directory": "d",
    "disabled": "DISABLED",
    "enabled": "ENABLED",
    "export": "e",
    "file": "f",
    "function": "FUNCTION",
    "group": "g",
    "helptopic": "HELP",
    "hostname": "NONE",
    "job": "j",
    "keyword": "k",
    "running": "j",
    "service": "s",
    "setopt": "SETOPT",
    "shopt": "SHOPT",
    "signal": "SIGNAL",
    "stopped": "NONE",
    "user": "u",
    "variable": "v",
}
_OPTIONS: Final = (
    "bashdefault", "default", "dirnames", "filenames", "noquote", "nosort", "nospace", "plusdirs",
)  # fmt: skip
_VALUED: Final = "AFCGWXPSo"
_SHOWN: Final = "oAGWPSXFC"
"""The order in which a specification is shown."""


def _parsed(sh: Session, argv: list[str], extra: str) -> tuple[list[tuple[str, str]], list[str]] | int:
    """Options with their values, and the words after them; a status after an error."""
    name = argv[0]
    flags: list[tuple[str, str]] = []
    i = 1
    while i < len(argv) and argv[i].startswith("-") and len(argv[i]) > 1:
        item = str(argv[i])
        i += 1
        if item == "--":
            break
        for place, letter in enumerate(item[1:], 1):
            if letter in _VALUED:
                value = item[place + 1 :]
                if not value:
                    if i >= len(argv):
                        return bad_option(sh, name, f"-{letter}", "option requires an argument")
                    value = str(argv[i])
                    i += 1
                if letter == "A" and value not in _ACTIONS:
                    return sh.error(f"{name}: {value}: invalid action name", 2)
                if letter == "o" and value not in _OPTIONS:
                    return sh.error(f"{name}: {value}: invalid option name", 2)
                short = _ACTIONS[value] if letter == "A" else ""
                flags.append((short, "") if len(short) == 1 and value != "running" else (letter, value))
                break
            if letter not in "abcdefgjksuv" + extra:
                return bad_option(sh, name, f"-{letter}")
            flags.append((letter, ""))
    return flags, argv[i:]


def compgen(sh: Session, argv: list[str]) -> Result:
    """The generators that need no terminal."""
    parsed = _parsed(sh, argv, "")
    if isinstance(parsed, int):
        return parsed
    flags, words = parsed
    if any(letter == "F" for letter, _ in flags):
        sh.complain("compgen: warning: -F option may not work as you expect")
    if not flags:
        return 0  # nothing was asked for
    return drive(_compgen(sh, flags, str(words[0]) if words else ""))


async def _compgen(sh: Session, flags: list[tuple[str, str]], word: str) -> int:
    names: list[str] = []
    prefix = suffix = exclude = ""
    for letter, value in flags:
        kind = _ACTIONS[value] if letter == "A" else letter
        if kind == "P":
            prefix = value
        elif kind == "S":
            suffix = value
        elif kind == "X":
            exclude = value
        elif kind == "W":
            names += await _word_list(sh, value)
        elif kind == "F":
            names += await _by_function(sh, value, word)
        elif kind == "G":
            names += await _globbed(sh, value)
        else:
            names += await _generate(sh, kind, word)
    pattern = negate = None
    if exclude:
        negate = exclude.startswith("!")
        pattern = compile_pattern(exclude[negate:].replace("&", word), "extglob" in sh.shopts)
    some = False
    for start in range(0, len(names), _SOME):
        found = [name for name in names[start : start + _SOME] if name.startswith(word)]
        if pattern is not None:
            found = [name for name in found if pattern.matches(name) is negate]
        some = some or bool(found)
        written = sh.out(encode("".join([f"{prefix}{name}{suffix}\n" for name in found])), "compgen")
        if written if isinstance(written, int) else await written:
            return 1
        await sh.budget.breathe()
    return 0 if some else 1


_SOME: Final = 1024
"""Names that are looked at between two chances for others to run."""


async def _word_list(sh: Session, text: str) -> list[str]:
    """The words of `-W`: expanded, split, and without their quotes."""
    from ramet.shell.interp.prompt import expand_text

    if any(char in text for char in _QUOTES) and sh.ifs == DEFAULT_IFS:
        words = _quoted_words(text)
        if words is not None:
            found = await fields_of(words, sh)
            sh.globbing = False
            return [str(one) for one in found]
    expanded = expand_text(sh, text)
    if len(expanded) < LARGE:
        return split_plain(expanded, sh.ifs)
    return await aside(sh, lambda: split_plain(expanded, sh.ifs))


_QUOTES: Final = "\\'\""


def _quoted_words(text: str) -> Words | None:
    """A list in which there are quotes, as the words of a command; None when it is none."""
    try:
        script = Parser(": " + text.replace("\n", " ")).next()
    except SyntaxFailure:
        return None
    node = script.statements[0].node if script is not None and len(script.statements) == 1 else None
    if not isinstance(node, Simple) or node.redirects:
        return None
    return compile_words([word for word in node.words[1:] if isinstance(word, Word)])


async def _by_function(sh: Session, name: str, word: str) -> list[str]:
    function = sh.functions.get(name)
    if function is None:
        return []
    from ramet.shell.interp.functions import call_function

    result = call_function(sh, function, [name, "", word, ""])
    if not isinstance(result, int):
        await result
    return list(sh.store.elements("COMPREPLY"))


async def _globbed(sh: Session, pattern: str) -> list[str]:
    from ramet.shell.expand.fields import GlobWord

    field = GlobWord(pattern)
    field.pattern = pattern
    return await sh.shell.globbed(sh, [field])


def _arrays(sh: Session) -> list[str]:
    found = []
    for name, value in sh.vars.items():
        computed = value.get(sh) if isinstance(value, Dynamic) else value
        if isinstance(computed, Indexed | Assoc | list | dict):
            found.append(name)
    return found


async def _generate(sh: Session, kind: str, word: str) -> list[str]:
    if kind in "fd":
        found = await _globbed(sh, word.replace("*", "\\*") + "*")
        found = [name for name in found if not name.endswith("*")]
        if kind == "d":
            from ramet.shell.interp.cond import file_test

            found = [name for name in found if await file_test(sh, "-d", name)]
        return found
    table = builtin_table()
    makers: dict[str, Callable[[], Iterable[str]]] = {
        "a": lambda: sh.aliases,
        "b": lambda: table,
        "c": lambda: {*sh.aliases, *sh.functions, *table, *KEYWORDS, *sh.shell.commands},
        "e": sh.store.exported,
        "g": lambda: [sh.shell.user.group],
        "u": lambda: [sh.shell.user.name],
        "v": lambda: (name for name, value in sh.vars.items() if value is not None and "\0" not in name),
        "ARRAY": lambda: _arrays(sh),
        "DISABLED": lambda: sh.disabled,
        "ENABLED": lambda: table.keys() - sh.disabled,
        "FUNCTION": lambda: sh.functions,
    }
    if kind in makers:
        return await in_order(makers[kind](), max(len(sh.vars), len(sh.aliases), len(sh.functions)), sh.budget)
    if kind == "j":
        return [job.text.split()[0] for job in sh.jobs.jobs if job.running and job.text]
    if kind == "SIGNAL":
        return [name if name == "EXIT" else "SIG" + name for name in signals.NAMES if name] + list(signals.PSEUDO)
    return list({"k": KEYWORDS, "HELP": SYNOPSES, "SETOPT": OPTIONS, "SHOPT": SHOPTS}.get(kind, ()))


def complete(sh: Session, argv: list[str]) -> Result:
    """Remembers specifications and shows them; nothing here completes."""
    parsed = _parsed(sh, argv, "prDEI")
    if isinstance(parsed, int):
        return parsed
    flags, names = parsed
    letters = "".join(letter for letter, _ in flags)
    names += [f"-{letter}" for letter in "DEI" if letter in letters]
    if "r" in letters:
        if not names:
            sh.completions.clear()

        def forget(name: str) -> None:
            sh.completions.pop(name, None)

        return each(sh, names, forget)
    if "p" in letters or not (flags or names):
        return _show(sh, names)
    if not names:
        return usage(sh, "complete")
    spec = _specification(flags)
    return each(sh, names, lambda name: sh.completions.update({str(name): spec}))


def _specification(flags: list[tuple[str, str]]) -> str:
    """The options of a specification in the order in which they are shown."""
    parts = [f"-o {option}" for option in _OPTIONS if ("o", option) in flags]
    parts += [f"-{letter}" for letter in "abcdefgjksuv" if (letter, "") in flags]
    for wanted in _SHOWN[1:]:
        for letter, value in flags:
            if letter == wanted:
                plain = letter in "AF" and quote.word(value) == value
                parts.append(f"-{letter} {value if plain else quote.single(value)}")
    return " ".join(parts)


def _show(sh: Session, names: list[str]) -> Result:
    known: list[str] = []

    def look_up(name: str) -> int:
        if name not in sh.completions:
            return sh.error(f"complete: {name}: no completion specification")
        known.append(name)
        return 0

    def line(name: str) -> str:
        spec = sh.completions[name]
        return f"complete {spec} {name}\n" if spec else f"complete {name}\n"

    if not names:
        return write_lines(sh, map(line, sh.completions), len(sh.completions), "complete")
    return then(
        each(sh, names, look_up),
        lambda status: status or write_lines(sh, map(line, known), len(known), "complete"),
    )


def compopt(sh: Session, argv: list[str]) -> Result:
    return drive(_compopt(sh, argv))


async def _compopt(sh: Session, argv: list[str]) -> int:
    options: list[tuple[bool, str]] = []
    names: list[str] = []
    i = 1
    while i < len(argv):
        await sh.budget.breathe()
        word = str(argv[i])
        i += 1
        if word == "--":
            names += argv[i:]
            break
        if word[:1] in ("-", "+") and len(word) > 1:
            if word[1] in "DEI":
                names.append(f"-{word[1]}")
            elif word[1] != "o":
                return bad_option(sh, "compopt", word[:2])
            elif i >= len(argv):
                return bad_option(sh, "compopt", "-o", "option requires an argument")
            else:
                if argv[i] not in _OPTIONS:
                    return sh.error(f"compopt: {argv[i]}: invalid option name", 2)
                options.append((word[0] == "-", str(argv[i])))
                i += 1
        else:
            names.append(word)
    if not names:
        return sh.error("compopt: not currently executing completion function")

    def change(name: str) -> int:
        spec = sh.completions.get(name)
        if spec is None:
            return sh.error(f"compopt: {name}: no completion specification")
        chosen = {option for option in _OPTIONS if f"-o {option}" in spec}
        for on, option in options:
            (chosen.add if on else chosen.discard)(option)
        rest = spec
        for option in _OPTIONS:
            rest = rest.replace(f"-o {option}", "").strip()
        sh.completions[name] = " ".join([*(f"-o {option}" for option in _OPTIONS if option in chosen), rest]).strip()
        return 0

    changed = each(sh, names, change)
    return changed if isinstance(changed, int) else await changed


TABLE: Final[dict[str, Builtin]] = {"compgen": compgen, "complete": complete, "compopt": compopt}
