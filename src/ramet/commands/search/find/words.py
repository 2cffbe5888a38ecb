"""Words of a find expression and their arguments; a missing or non-numeric one is an error."""

from __future__ import annotations

import re
from collections.abc import Callable

from ramet.commands.framework.command import UsageError
from ramet.commands.search.find.nodes import Found, Node, Settings
from ramet.core.proc import Proc
from ramet.text.strftime import NANO


class Words:
    """Words of the expression, with the position of the parser."""

    def __init__(self, proc: Proc, words: list[str], settings: Settings) -> None:
        self.proc, self.words, self.settings = proc, words, settings
        self.at = 0
        self.now = int(proc.now() * NANO)

    def peek(self) -> str | None:
        return self.words[self.at] if self.at < len(self.words) else None

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
