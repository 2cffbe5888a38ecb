"""Command lines of parallel: combine arguments and fill in `{}` placeholders."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence

from ramet.commands.framework.command import UsageError

MARKS = (":::", "::::", ":::+", "::::+")
Words = tuple[str, ...]
_PLACE = re.compile(
    r"\{(?P<at>-?\d+)?(?P<how>\.|/|//|/\.|\+?\.\.?\.?|\+/)?\}|\{#\}|\{##\}|\{%\}|\{=(?P<place>-?\d+)?(?P<code>.*?)=\}"
)
_NAMED = re.compile(r"\{([A-Za-z_]\w*)(\.|/|//|/\.)?\}")


_UNPLAIN = re.compile(r"[^-_.+a-zA-Z0-9/]")
_QUOTES = re.compile("'+")


Change = Callable[[str], str]


def quoted(word: str) -> str:
    """Return a word for the shell, in single quotes where it has anything that could mean something."""
    if word and not _UNPLAIN.search(word):
        return word
    return "'" + _QUOTES.sub(lambda found: f"'\"{found[0]}\"'", word) + "'"


def combined(groups: Sequence[Sequence[Sequence[str]]], link: bool) -> list[Words]:
    """Return one tuple per job: the product of the groups, whose sources are zipped."""
    if link:
        sources = [source for group in groups for source in group]
        longest = max(map(len, sources), default=0)
        return [tuple(source[i % len(source)] for source in sources if source) for i in range(longest)]
    rows = [list(zip(*group, strict=False)) for group in groups]
    return [tuple(itertools.chain.from_iterable(choice)) for choice in itertools.product(*rows)]


def trimmed(word: str, how: str) -> str:
    return {"l": word.lstrip, "r": word.rstrip, "lr": word.strip, "rl": word.strip}.get(how, lambda: word)()


def part(word: str, how: str) -> str:
    """Return what `{.}`, `{/}` and the like leave of an argument."""
    if not how:
        return word
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
    """A command with placeholders; without any, arguments are appended."""

    def __init__(
        self,
        command: Sequence[str],
        replace: str,
        names: Sequence[str],
        raw: bool,
        quote: bool,
        own: Mapping[str, Change] | None = None,
        compiled: Callable[[str], Change] | None = None,
    ) -> None:
        """`own` are replacement strings that the user named; `compiled` makes a change of the code in {= =}."""
        text = " ".join(quoted(word) if quote else word for word in command)
        self.changes: list[Change] = []
        for tag, change in (own or {}).items():
            if tag in text:
                text = text.replace(tag, f"{{=@{len(self.changes)}=}}")
                self.changes.append(change)
        if replace != "{}":
            text = text.replace(replace, "{}")
        if quote:
            text = re.sub(r"'(\{[^' ]*\})'", r"\1", text)
        places = {name: str(at) for at, name in enumerate(names, 1)}
        self.text = _NAMED.sub(lambda m: f"{{{places[m[1]]}{m[2] or ''}}}" if m[1] in places else m[0], text)
        self.raw = raw
        found = [m[0] for m in _PLACE.finditer(self.text)]
        self.code: dict[str, Change] = {}
        for place in _PLACE.finditer(self.text):
            code = place["code"]
            if code is not None and not code.startswith("@"):
                if compiled is None:
                    raise UsageError("Perl expressions in {= =} are not supported here", 255, hint=False)
                self.code[code] = compiled(code)
        self.used = bool(found)

    def line(self, words: Words, number: int, total: int, many: bool = False) -> str:
        """Return the line of one job; with `many`, the word around a place is repeated for each argument."""
        show: Callable[[str], str] = str if self.raw else quoted

        def expand(found: re.Match[str]) -> str:
            if found[0] == "{#}":
                return str(number)
            if found[0] == "{##}":
                return str(total)
            if found[0] == "{%}":
                return "1"
            chosen = words
            given = found["at"] if found["at"] is not None else found["place"]
            if given is not None:
                at = int(given)
                at = at - 1 if at > 0 else len(words) + at
                chosen = words[at : at + 1] if at >= 0 else ()
            if found["code"] is not None:
                code = found["code"]
                change = self.changes[int(code[1:])] if code.startswith("@") else self.code[code]
                return " ".join(show(change(word)) for word in chosen)
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
