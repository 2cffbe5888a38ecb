"""How a verb's help reads, and what is said about a command line that is wrong: as all else that `ramet` says.

The declarations of the verbs are the only source: arguments, options, defaults, variables, and the lines to learn from.
"""

from __future__ import annotations

import json
import os
import sys
import textwrap
from typing import TYPE_CHECKING, Any, Final

from ramet.apps.cli.verb_table import SHOWN

if TYPE_CHECKING:
    import typer

COLUMN: Final = 26
"""Where explanations begin at the latest."""


def run(app: typer.Typer, words: list[str]) -> None:
    """Run what the words say; ends the program. Help and complaints are ours, not the library's."""
    import typer

    usage_error: Any = typer.BadParameter.__base__
    top: Any = typer.main.get_command(app)
    asked = words[: words.index("--")] if "--" in words else words
    wanted = "--help" in asked or "-h" in asked
    if wanted or (len(words) == 1 and hasattr(_descend(top, words)[1], "commands")):
        path, command = _descend(top, [word for word in asked if word not in ("--help", "-h")])
        sys.stdout.write(verb_help(path, command, _width(), sys.stdout.isatty() and "NO_COLOR" not in os.environ))
        sys.exit(0 if wanted else 2)
    try:
        sys.exit(top.main(words, prog_name="ramet", standalone_mode=False) or 0)
    except usage_error as error:
        path, command = _descend(top, asked)
        _complain(*_meant(error, path, command), as_json="--json" in asked)
        sys.exit(2)
    except typer.Abort:
        sys.exit(130)


def _descend(top: Any, words: list[str]) -> tuple[str, Any]:
    path, command = "ramet", top
    for word in words:
        inner = getattr(command, "commands", {}).get(word)
        if inner is None:
            break
        path, command = f"{path} {word}", inner
    return path, command


def _complain(cause: str, remedy: str, *, as_json: bool) -> None:
    if as_json:
        told = {"code": "invalid_argument", "cause": cause, "remediation": remedy, "context": {}}
        print(json.dumps({"error": told}))
    else:
        print(f"ramet: {cause}\n       {remedy}", file=sys.stderr)


def _meant(error: Any, path: str, command: Any) -> tuple[str, str]:
    """What is wrong with a command line, and what to write instead."""
    kind, verb = type(error).__name__, path.removeprefix("ramet").strip() or "ramet"
    more = f"`{path} --help` tells more"
    parameter = getattr(error, "param", None)
    if kind == "MissingParameter" and parameter is not None:
        return f"{verb}: {_name(parameter)} is missing", f"write {usage(path, command)}; {more}"
    if kind == "NoSuchOption":
        known = [name for one in command.params for name in (*one.opts, *one.secondary_opts) if name.startswith("--")]
        return f"{verb} has no option {error.option_name}", _nearest(error.option_name, known) or more
    if hasattr(command, "commands"):
        word = next(iter(error.ctx.args if error.ctx else ()), "") or error.format_message().split("'")[1::2][:1]
        name = word if isinstance(word, str) else "".join(word)
        known = list(command.commands)
        return f"{verb} has no {name!r}", _nearest(name, known) or f"there are {', '.join(known)}"
    if parameter is not None:
        told = error.message.rstrip(".").partition(", unable to parse")[0]
        return f"{verb}: {_name(parameter)}: {_lower(told)}", more
    told = _lower(error.format_message().rstrip(".")).replace("got unexpected extra argument(s)", "this is too much:")
    return f"{verb}: {told}", f"write {usage(path, command)}; {more}"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _nearest(name: str, known: list[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, known, 1, 0.6)
    return f"did you mean {near[0]}?" if near else ""


def usage(path: str, command: Any) -> str:
    """`ramet exec NAME [COMMAND] [OPTIONS]`."""
    if hasattr(command, "commands"):
        return f"{path} VERB [OPTIONS]"
    words = [path]
    for one in command.params:
        if one.param_type_name == "argument":
            name = _name(one) + ("..." if one.nargs == -1 else "")
            words.append(name if one.required else f"[{name}]")
    return " ".join([*words, "[OPTIONS]"] if _options(command) else words)


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.name).upper()
    return str(max(parameter.opts, key=len))


def _options(command: Any) -> list[Any]:
    return [one for one in command.params if one.param_type_name == "option" and one.name != "help"]


def verb_help(path: str, command: Any, width: int, bold: bool) -> str:
    """What `ramet VERB --help` prints."""

    def strong(text: str) -> str:
        return f"\033[1m{text}\033[0m" if bold else text

    lines = [f"Usage: {usage(path, command)}", ""]
    lines += textwrap.wrap(" ".join((command.help or "").split()), width)
    shown = SHOWN.get(path.removeprefix("ramet "), ())
    if shown:
        lines += ["", strong("Examples"), *(f"  {line}" for line in shown)]
    if hasattr(command, "commands"):
        rows = [(name, " ".join((one.help or "").split())) for name, one in command.commands.items()]
        return "\n".join([*lines, "", strong("Verbs"), *_rows(rows, width)]) + "\n"
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    if arguments:
        lines += ["", strong("Arguments"), *_rows([(_name(one), one.help or "") for one in arguments], width)]
    if options := _options(command):
        lines += ["", strong("Options"), *_rows([(_spelled(one), _explained(one)) for one in options], width)]
    return "\n".join(lines) + "\n"


def _spelled(option: Any) -> str:
    names = sorted([*option.opts, *option.secondary_opts], key=len)
    return ", ".join(names) + (
        "" if option.is_flag else f" {option.metavar or names[-1].lstrip('-').replace('-', '_').upper()}"
    )


def _explained(option: Any) -> str:
    notes = [] if option.default in (None, "", False, True) else [f"default: {option.default}"]
    if option.envvar:
        notes.append(f"variable: ${option.envvar}")
    return " ".join((option.help or "").split()) + (f" [{'; '.join(notes)}]" if notes else "")


def _rows(rows: list[tuple[str, str]], width: int) -> list[str]:
    column = min(COLUMN, max(len(name) for name, _ in rows) + 4)
    lines = []
    for name, text in rows:
        first, *rest = textwrap.wrap(text, max(30, width - column)) or [""]
        head = f"  {name}"
        lines.append(f"{head:<{column}}{first}".rstrip() if len(head) < column - 1 else head)
        rest = rest if len(head) < column - 1 else [first, *rest]
        lines += [" " * column + line for line in rest]
    return lines


def _width() -> int:
    return min(os.get_terminal_size().columns if sys.stdout.isatty() else 100, 110)
