"""Help texts of `ramet` and of each verb, made from the table of verbs and from their parameters."""

from __future__ import annotations

import os
import sys
import textwrap
from typing import Final

from ramet.apps.cli.parameters import Command, Parameter
from ramet.apps.cli.verb_table import SHOWN, VERBS, Verb

COLUMN: Final = 26
"""Widest column of names; explanations start after it."""

EXAMPLES: Final = """\
  ramet create demo
  ramet exec demo 'echo hello > /greeting; ls -l /'
  ramet log demo
  ramet show demo@1:/greeting
  ramet fork demo demo-2
  ramet shell demo-2
"""


def print_help(verb: Verb | None, inner: Verb | None = None) -> None:
    """Print the help of `ramet`, of a verb, or of a verb within a group."""
    bold = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    if verb is None:
        sys.stdout.write(help_text(bold, _width(120)))
    elif inner is not None:
        sys.stdout.write(command_help(inner.command(f"ramet {verb.name}"), _width(110), bold))
    elif verb.verbs:
        sys.stdout.write(group_help(verb, _width(110), bold))
    else:
        sys.stdout.write(command_help(verb.command(), _width(110), bold))


def help_text(bold: bool, width: int = 100) -> str:
    """Return the text of `ramet --help`: the verbs by heading, one line each, and examples."""
    lines = [
        "Usage: ramet VERB [OPTIONS] [ARGUMENTS]", "",
        *textwrap.wrap("Durable workspaces for agents: one file tree, a real shell, every state versioned.", width), "",
        _bold_text("First minute", bold), *EXAMPLES.rstrip("\n").split("\n"), "",
    ]  # fmt: skip
    for family, verbs in VERBS.items():
        lines.append(_bold_text(family, bold))
        for verb in verbs:
            first, *rest = textwrap.wrap(verb.summary.rstrip("."), max(30, width - 16))
            lines += [f"  {verb.name:<12}{first}", *(" " * 14 + line for line in rest)]
        lines.append("")
    lines += textwrap.wrap(
        "`ramet VERB --help` shows the options of a verb. The store is ~/.ramet; --store or $RAMET_HOME selects one. "
        "`ramet -n NAMESPACE VERB` works on the workspaces of one namespace. "
        "`ramet --install-completion` adds completion to your shell.",
        max(40, width),
    )
    return "\n".join(lines) + "\n"


def group_help(verb: Verb, width: int, bold: bool) -> str:
    """Return the text of `ramet keys --help`."""
    path = f"ramet {verb.name}"
    rows = [(one.name, one.command(path).help) for one in verb.verbs]
    lines = _head(path, f"{path} VERB [OPTIONS]", verb.summary, width, bold)
    return "\n".join([*lines, "", _bold_text("Verbs", bold), *_rows(rows, width)]) + "\n"


def command_help(command: Command, width: int, bold: bool) -> str:
    """Return the text of `ramet VERB --help`."""
    lines = _head(command.path, command.usage, command.help, width, bold)
    if arguments := command.arguments:
        rows = [(one.label, one.help) for one in arguments]
        lines += ["", _bold_text("Arguments", bold), *_rows(rows, width)]
    if options := command.listed_options:
        rows = [(one.spelling, _explanation(one)) for one in options]
        lines += ["", _bold_text("Options", bold), *_rows(rows, width)]
    return "\n".join(lines) + "\n"


def _head(path: str, usage: str, text: str, width: int, bold: bool) -> list[str]:
    lines = [f"Usage: {usage}", "", *textwrap.wrap(text, width)]
    shown = SHOWN.get(path.removeprefix("ramet "), ())
    if shown:
        lines += ["", _bold_text("Examples", bold), *(f"  {line}" for line in shown)]
    return lines


def _explanation(option: Parameter) -> str:
    notes = [] if option.required or option.default in (None, "", False, True) else [f"default: {option.default}"]
    if option.envvar:
        notes.append(f"variable: ${option.envvar}")
    return option.help + (f" [{'; '.join(notes)}]" if notes else "")


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


def _bold_text(text: str, bold: bool) -> str:
    return f"\033[1m{text}\033[0m" if bold else text


def _width(most: int) -> int:
    return min(os.get_terminal_size().columns if sys.stdout.isatty() else 100, most)
