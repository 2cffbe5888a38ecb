"""The command lines of parallel: where arguments come from, how they are combined, and what `{...}` stands for."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence

from ramet.commands.declare import UsageError, shown

MARKS = (":::", "::::", ":::+", "::::+")
Words = tuple[str, ...]
_PLACE = re.compile(r"\{(?P<at>-?\d+)?(?P<how>\.|/|//|/\.|\+?\.\.?\.?|\+/)?\}|\{#\}|\{##\}|\{%\}|\{=.*?=\}")
_NAMED = re.compile(r"\{([A-Za-z_]\w*)(\.|/|//|/\.)?\}")


def combined(groups: Sequence[Sequence[Sequence[str]]], link: bool) -> list[Words]:
    """One tuple per job: every choice from the groups, whose own sources go along with each other."""
    if link:
        sources = [source for group in groups for source in group]
        longest = max(map(len, sources), default=0)
        return [tuple(source[i % len(source)] for source in sources if source) for i in range(longest)]
    rows = [list(zip(*group, strict=False)) for group in groups]
    return [tuple(itertools.chain.from_iterable(choice)) for choice in itertools.product(*rows)]


def trimmed(word: str, how: str) -> str:
    return {"l": word.lstrip, "r": word.rstrip, "lr": word.strip, "rl": word.strip}.get(how, lambda: word)()


def part(word: str, how: str) -> str:
    """What `{.}`, `{/}` and the like leave of an argument."""
    name = word.rpartition("/")[2]
    dots = how.count(".")
    if how in ("..", "..."):
        for _ in range(dots):
            word = part(word, ".")
        return word
    if how.startswith("+") and dots:
        stem = part(word, "." * dots)
        return word[len(stem) + 1 :]
    if how in ("+/", "//"):
        above = word.rpartition("/")[0]
        return above or ("." if how == "//" else "")
    stem = word[: word.rfind(".")] if "." in name else word
    return {".": stem, "/": name, "/.": stem.rpartition("/")[2]}.get(how, word)


class Template:
    """A command with places for arguments; a command without any gets them at its end."""

    def __init__(self, command: Sequence[str], replace: str, names: Sequence[str], raw: bool, quote: bool) -> None:
        text = " ".join(shown(word) if quote else word for word in command)
        if replace != "{}":
            text = text.replace(replace, "{}")
        if quote:
            text = re.sub(r"'(\{[^' ]*\})'", r"\1", text)
        places = {name: str(at) for at, name in enumerate(names, 1)}
        self.text = _NAMED.sub(lambda m: f"{{{places[m[1]]}{m[2] or ''}}}" if m[1] in places else m[0], text)
        self.raw = raw
        found = [m[0] for m in _PLACE.finditer(self.text)]
        if any(place.startswith("{=") for place in found):
            raise UsageError("Perl expressions in {= =} are not supported", 255, hint=False)
        self.used = any(place not in ("{#}", "{##}", "{%}") for place in found)

    def line(self, words: Words, number: int, total: int, many: bool = False) -> str:
        """The line of one job; with `many`, the word around a place is repeated for each argument."""
        show: Callable[[str], str] = str if self.raw else shown

        def expand(found: re.Match[str]) -> str:
            if found[0] == "{#}":
                return str(number)
            if found[0] == "{##}":
                return str(total)
            if found[0] == "{%}":
                return "1"
            chosen = words
            if found["at"] is not None:
                at = int(found["at"])
                at = at - 1 if at > 0 else len(words) + at
                chosen = words[at : at + 1] if at >= 0 else ()
            return " ".join(show(part(word, found["how"] or "")) for word in chosen)

        if not self.used:
            text = _PLACE.sub(expand, self.text)
            return " ".join([*([text] if text else []), *map(show, words)])
        if many and len(words) > 1:
            whole = re.compile(r"\S*\{(?:\.|/|//|/\.)?\}\S*")
            text = whole.sub(lambda m: " ".join(self._alone(m[0], word, show) for word in words), self.text)
            return _PLACE.sub(expand, text)
        return _PLACE.sub(expand, self.text)

    def _alone(self, text: str, word: str, show: Callable[[str], str]) -> str:
        return re.sub(r"\{(\.|/|//|/\.)?\}", lambda m: show(part(word, m[1] or "")), text)
