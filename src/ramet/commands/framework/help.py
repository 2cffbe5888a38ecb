"""`--help` and `--version` texts, generated from the declaration of a command."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Protocol

from ramet.commands.framework.options import Spec

VERSION = "0.1.0"


class Rows(Protocol):
    """The options of a command, for help."""

    @property
    def specs(self) -> tuple[Spec, ...]: ...


class Described(Protocol):
    """The parts of a declaration that help and version print."""

    @property
    def name(self) -> str: ...
    @property
    def usage(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def details(self) -> str: ...
    @property
    def examples(self) -> Sequence[tuple[str, str]]: ...
    @property
    def raw(self) -> bool: ...
    @property
    def original(self) -> str: ...
    @property
    def version_line(self) -> str: ...
    @property
    def table(self) -> Rows: ...


def help_text(command: Described) -> str:
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


def _option_rows(command: Described) -> Iterable[tuple[str, str]]:
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


def version_text(command: Described) -> str:
    """The `--version` of a command: the program it copies, for scripts that look for it, then Ramet's version."""
    if command.version_line:
        return f"{command.version_line}\n"
    if command.original:
        product, _, number = command.original.rpartition(" ")
        return f"{command.name} (like {product}) {number}\nramet {VERSION}\n"
    return f"{command.name} (ramet) {VERSION}\n"
