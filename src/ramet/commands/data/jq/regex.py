"""jq's regular expressions (`test`, `match`, `capture`, `scan`, `split/2`, `sub`, `gsub`), under a time limit."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from ramet.commands.data.jq.compile import Compiler, Native
from ramet.commands.data.jq.parser import Node
from ramet.commands.data.jq.scopes import Env, Run, Scope
from ramet.commands.data.jq.values import Json, described, fail, joined, kind
from ramet.patterns import PatternError, perl
from ramet.patterns.engines import compile_regex
from ramet.patterns.perl_reader import Style

_IN_ONIGURUMA_WORDS = {
    "missing closing parenthesis": "end pattern with unmatched parenthesis",
    "unmatched closing parenthesis": "unmatched close parenthesis",
    "missing terminating ] for character class": "premature end of char-class",
    "quantifier does not follow a repeatable item": "target of repeat operator is not specified",
    "\\ at end of pattern": "end pattern at escape",
    "reference to non-existent subpattern": "invalid backref number/name",
    "range out of order in character class": "empty range in char class",
}
"""What is wrong with a pattern, as jq says it."""


@functools.lru_cache(maxsize=256)
def _compiled(source: str, flags: str) -> Any:
    import regex

    bits = 0
    for flag in flags:
        if flag == "p":
            bits |= regex.DOTALL
        elif flag not in "gnilsx":
            raise fail(f"{flags} is not a valid modifier string")

    try:
        rewritten = perl.rewrite(source, Style(unicode=True, extended="x" in flags))
        return compile_regex(rewritten, "i" in flags, "l" in flags, bits)
    except PatternError as error:
        raise fail(f"Regex failure: {_IN_ONIGURUMA_WORDS.get(str(error), error)}") from None


def _parted(source: Json) -> tuple[Json, Json]:
    """Return a pattern and its flags, which may be one value."""
    if isinstance(source, list) and source:
        return source[0], source[1] if len(source) > 1 else None
    if not isinstance(source, str):
        raise fail(f"{kind(source)} not a string or array")
    return source, None


def _matches(text: Json, source: Json, flags: Json, everywhere: bool, seconds: float) -> Iterator[Any]:
    if not isinstance(text, str):
        raise fail(f"{described(text)} cannot be matched, as it is not a string")
    if not isinstance(source, str):
        raise fail(f"{described(source)} is not a string")
    if flags is not None and not isinstance(flags, str):
        raise fail(f"{described(flags)} is not a string")
    modes = flags or ""
    pattern = _compiled(source, modes)
    try:
        start: int | None = 0
        while start is not None and start <= len(text):
            matches, start = pattern.finditer(text, start, timeout=seconds), None
            for found in matches:
                empty = found.end() == found.start()
                if not (empty and "n" in modes):
                    yield found
                    if not (everywhere or "g" in modes):
                        return
                if empty:  # whatever else begins here is passed over
                    start = found.end() + 1
                    break
    except TimeoutError:
        raise fail(f"the match took longer than {seconds:g} seconds") from None


def _described_match(found: Any) -> Json:
    names = {number: name for name, number in found.re.groupindex.items()}
    captures: list[Json] = []
    for group in range(1, found.re.groups + 1):
        start, stop = found.span(group)
        text = found.group(group)
        entry: dict[str, Json] = {"offset": start, "length": stop - start, "string": text}
        if start < 0:
            entry = {"offset": -1, "string": None, "length": 0}
        if not found.group():  # jq 1.7 does not tell the groups of an empty match
            entry = {"offset": found.start(), "string": "", "length": 0}
        captures.append({**entry, "name": names.get(group)})
    return {
        "offset": found.start(),
        "length": found.end() - found.start(),
        "string": found.group(),
        "captures": captures,
    }


def _named(found: Any) -> dict[str, Json]:
    groups: dict[str, Json] = found.groupdict()
    return groups if found.group() else dict.fromkeys(groups, "")


def native(name: str) -> Native:
    def make(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
        if name in ("sub", "gsub"):
            return compiler.computed(_substitute(compiler, args, scope, name == "gsub"), path)
        source_run = compiler.value(args[0], scope)
        flags_run = compiler.value(args[1], scope) if len(args) > 1 else compiler.constant(None, False)
        alone = len(args) == 1 and name in ("test", "match", "capture")

        def run(env: Env, item: Any) -> Iterator[Any]:
            seconds = compiler.host.seconds
            for flags in flags_run(env, item):
                for source in source_run(env, item):
                    if alone:
                        source, flags = _parted(source)
                    found = _matches(item, source, flags, name in ("scan", "split"), seconds)
                    if name == "test":
                        yield next(found, None) is not None
                    elif name == "match":
                        yield from map(_described_match, found)
                    elif name == "capture":
                        yield from map(_named, found)
                    elif name == "scan":
                        for match in found:
                            yield match.group() if not match.re.groups else list(match.groups())
                    else:
                        yield _split(item, found)

        return compiler.computed(run, path)

    return make


def _split(text: str, found: Iterator[Any]) -> list[Json]:
    parts: list[Json] = []
    at = 0
    for match in found:
        parts.append(text[at : match.start()])
        at = match.end()
    parts.append(text[at:])
    return parts


def _substitute(compiler: Compiler, args: tuple[Node, ...], scope: Scope, everywhere: bool) -> Run:
    source_run, with_run = compiler.value(args[0], scope), compiler.value(args[1], scope)
    flags_run = compiler.value(args[2], scope) if len(args) > 2 else compiler.constant(None, False)

    def run(env: Env, item: Any) -> Iterator[Any]:
        for flags in flags_run(env, item):
            for source in source_run(env, item):
                found = list(_matches(item, source, flags, everywhere, compiler.host.seconds))
                if not found:
                    yield item
                    continue
                # Each result of the replacement makes one string, with that result at every match.
                choices = [list(with_run(env, _named(match))) for match in found]
                if not any(choices):
                    yield item
                for which in range(max(len(choice) for choice in choices)):
                    yield _replaced(item, found, choices, which)

    return run


def _replaced(text: str, found: list[Any], choices: list[list[Json]], which: int) -> str:
    out: list[str] = []
    at = 0
    for match, choice in zip(found, choices, strict=True):
        if which < len(choice):  # a string does not even have the text before a match that has no result for it
            out.append(text[at : match.start()])
            new = "" if choice[which] is None else choice[which]
            if not isinstance(new, str):
                raise fail(f"{described(text[at : match.start()])} and {described(new)} cannot be added")
            out.append(new)
        at = match.end()
    out.append(text[at:])
    return joined("", out)
