"""rename: rename many files by Perl's `s/old/new/` and `y/abc/xyz/`, or util-linux's `OLD NEW`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ramet import patterns
from ramet.commands.files.cp import lookup
from ramet.commands.framework.command import Command, UsageError, flag, several
from ramet.commands.framework.posix_regex import offload_long
from ramet.core.errors import reason
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.patterns import MatchTimeout, PatternError

Change = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class RenameOptions:
    verbose: bool = flag("-v", "--verbose", help="print the names of files that were renamed")
    dry_run: bool = flag("-n", "--nono", "--no-act", help="print what would be renamed, but rename nothing")
    force: bool = flag("-f", "--force", help="overwrite files that exist")
    keep: bool = flag("-o", "--no-overwrite", help="with OLD NEW, do not overwrite files that exist")
    all: bool = flag("-a", "--all", help="with OLD NEW, replace every occurrence")
    last: bool = flag("-l", "--last", help="with OLD NEW, replace the last occurrence")
    names: bool = flag("-d", "--filename", "--nopath", "--nofullpath", help="change only the last part of each path")
    expressions: tuple[str, ...] = several("-e", metavar="EXPR", help="an expression; several are done in order")


async def rename(proc: Proc, o: RenameOptions, operands: list[str]) -> int:
    words = list(operands)
    perl = bool(o.expressions)
    try:
        if perl:
            change = await _perl_change(proc, "; ".join(o.expressions))
        elif not words:
            raise UsageError("not enough arguments")
        elif _EXPRESSION.match(words[0]):
            perl, change = True, await _perl_change(proc, words.pop(0))
        elif len(words) < 3:
            raise UsageError("not enough arguments")
        else:
            change = _plain(words[0], words[1], o)
            del words[:2]
    except PatternError as error:
        raise UsageError(str(error), hint=False) from None
    if perl and not words:
        words = decode(await proc.stdin.read_all()).splitlines()
    status = 0
    changed = 0
    for word in words:
        await proc.budget.yield_turn()
        try:
            head, slash, tail = word.rpartition("/") if o.names or not perl else ("", "", word)
            new = head + slash + change(tail)
        except MatchTimeout as error:
            raise UsageError(str(error), hint=False) from None
        if new == word:
            continue
        changed += 1
        status = await _one(proc, o, word, new, perl) or status
    return status if perl else 4 if not changed else 1 if status else 0


async def _perl_change(proc: Proc, text: str) -> Change:
    return await offload_long(proc, (text,), lambda: perl_change(text, proc))


async def _one(proc: Proc, o: RenameOptions, word: str, new: str, perl: bool) -> int:
    taken = await lookup(proc, proc.path(new), follow=False) is not None
    if taken and ((perl and not o.force) or o.keep):
        if perl:
            proc.stderr.write(encode(f"{word} not renamed: {new} already exists\n"))
        return 0
    if o.dry_run:
        await proc.emit(encode(f"rename({word}, {new})\n" if perl else f"`{word}' -> `{new}'\n"))
        return 0
    try:
        await proc.fs.rename(proc.path(word), proc.path(new))
    except OSError as error:
        text = f"Can't rename {word} {new}: {reason(error)}\n"
        proc.stderr.write(encode(text if perl else f"rename: {word}: rename to {new} failed: {reason(error)}\n"))
        return 1
    if o.verbose:
        await proc.emit(encode(f"{word} renamed as {new}\n" if perl else f"`{word}' -> `{new}'\n"))
    return 0


def _plain(old: str, new: str, o: RenameOptions) -> Change:
    if not old:
        return lambda name: new + name
    if o.all:
        return lambda name: name.replace(old, new)
    if o.last:
        return lambda name: new.join(name.rsplit(old, 1))
    return lambda name: name.replace(old, new, 1)


# ----------------------------------------------------------------------------------------------------------- Perl

_EXPRESSION = re.compile(r"\s*(?:s|y|tr)\s*[^\w\s]|\s*\$_\s*=|\s*(?:lc|uc|ucfirst)\b")
_PAIRS = {"(": ")", "{": "}", "[": "]", "<": ">"}


def perl_change(text: str, proc: Proc) -> Change:
    """Return the change of a name that a few simple Perl statements describe; anything else is refused."""
    steps: list[Change] = []
    at = 0
    while text[at:].strip(" \t\n;"):
        at += len(text[at:]) - len(text[at:].lstrip(" \t\n;"))
        known = re.match(r"(s|y|tr)\s*(?=[^\w\s])", text[at:])
        simple = re.match(r"\$_\s*=\s*(lc|uc|ucfirst)\b(?:\s*\(?\s*\$_\s*\)?)?\s*(?=;|\Z)", text[at:])
        if simple is not None:
            steps.append({"lc": str.lower, "uc": str.upper, "ucfirst": lambda n: n[:1].upper() + n[1:]}[simple[1]])
            at += simple.end()
            continue
        if known is None:
            raise UsageError(f"only s///, y/// and lc/uc of a name are understood: {text[at:]}", hint=False)
        at += known.end()
        first, at, mark = _part(text, at)
        if mark in _PAIRS:
            at += len(text[at:]) - len(text[at:].lstrip())
            second, at, _ = _part(text, at)
        else:
            second, at, _ = _part(text, at - 1)
        flags = re.match(r"[a-z]*", text[at:])
        assert flags is not None
        at += flags.end()
        if not re.match(r"\s*(?:;|\Z)", text[at:]):
            raise UsageError(f"only s///, y/// and lc/uc of a name are understood: {text[at:]}", hint=False)
        if known[1] == "s":
            steps.append(_substitution(first, second, flags[0], proc))
        else:
            steps.append(_transliteration(first, second, flags[0]))

    def change(name: str) -> str:
        for step in steps:
            name = step(name)
        return name

    return change


def _part(text: str, at: int) -> tuple[str, int, str]:
    """Return what stands between the delimiter at a place and its end, and where that is."""
    mark = text[at : at + 1]
    close = _PAIRS.get(mark, mark)
    out, depth, pos = "", 1, at + 1
    while pos < len(text):
        char = text[pos]
        if char == "\\" and pos + 1 < len(text):
            out += text[pos + 1] if text[pos + 1] == close == mark else text[pos : pos + 2]
            pos += 2
            continue
        depth += (char == mark and close != mark) - (char == close)
        if not depth:
            return out, pos + 1, mark
        out += char
        pos += 1
    raise UsageError(f"an expression does not end: {text}", hint=False)


_PIECE = re.compile(r"\$\{?(\d+|&)\}?|\\(\d)|\\([ULEul])|\\(.)|([^\\$]+|\$)", re.DOTALL)


def _substitution(pattern: str, template: str, flags: str, proc: Proc) -> Change:
    if set(flags) - set("gimsx"):
        raise UsageError(f"flags of s/// that are not understood: {flags}", hint=False)
    inner = "".join(flag for flag in "imsx" if flag in flags)
    source = encode(f"(?{inner})" + pattern if inner else pattern)
    matcher = patterns.compile(source, patterns.PERL, seconds=proc.budget.limits.regex_seconds)

    def change(name: str) -> str:
        data, out, pos, copied = encode(name), list[bytes](), 0, 0
        while pos <= len(data) and (spans := matcher.spans(data, pos)) is not None:
            start, stop = spans[0]
            out += [data[copied:start], encode(_filled(template, data, spans))]
            copied = stop
            pos = stop if stop > start else stop + 1
            if "g" not in flags:
                break
        return decode(b"".join([*out, data[copied:]]))

    return change


def _filled(template: str, data: bytes, spans: list[tuple[int, int]]) -> str:
    out, case, once = "", "", ""
    for found in _PIECE.finditer(template):
        group = found[1] or found[2]
        if found[3]:
            if found[3] in "ul":
                once = found[3]
            else:
                case = "" if found[3] == "E" else found[3]
            continue
        if group is not None:
            index = 0 if group == "&" else int(group)
            start, stop = spans[index] if index < len(spans) else (0, 0)
            text = decode(data[start:stop]) if start >= 0 else ""
        else:
            text = found[4] or found[5]
        text = text.upper() if case == "U" else text.lower() if case == "L" else text
        if once and text:
            text = (text[0].upper() if once == "u" else text[0].lower()) + text[1:]
            once = ""
        out += text
    return out


def _transliteration(old: str, new: str, flags: str) -> Change:
    if set(flags) - {"d"}:
        raise UsageError(f"flags of y/// that are not understood: {flags}", hint=False)
    source, target = _characters(old), _characters(new)
    if not target and "d" not in flags:
        target = source
    table: dict[int, str | None] = {}
    for place, char in enumerate(source):
        if ord(char) in table:
            continue
        if place < len(target):
            table[ord(char)] = target[place]
        else:
            table[ord(char)] = None if "d" in flags else target[-1]
    return lambda name: name.translate(table)


def _characters(text: str) -> str:
    def run(found: re.Match[str]) -> str:
        return "".join(map(chr, range(ord(found[1]), ord(found[2]) + 1)))

    return re.sub(r"(.)-(.)", run, text.replace("\\-", "\0"), flags=re.DOTALL).replace("\0", "-")


COMMANDS = [
    Command(
        "rename",
        rename,
        RenameOptions,
        summary="Rename many files by an expression.",
        usage="[OPTION]... 's/OLD/NEW/' FILE... | [OPTION]... OLD NEW FILE...",
        aliases=("prename", "file-rename"),
        examples=[("rename 's/\\.htm$/.html/' *.htm", "change endings"), ("rename -n 'y/A-Z/a-z/' *", "only show")],
        version_letters="V",
        help_letters="h",
    ),
]
