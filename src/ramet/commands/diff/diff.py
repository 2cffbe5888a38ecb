"""diff: compare files and directories line by line."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

from ramet.commands.diff import output as output
from ramet.commands.diff.files import Comparison, pair
from ramet.commands.diff.line_formats import Formats
from ramet.commands.diff.options import DiffOptions
from ramet.commands.framework.command import Command, UsageError, quote, shown
from ramet.commands.framework.posix_regex import bre_bytes, offload_long
from ramet.core.errors import reason
from ramet.core.paths import decode
from ramet.core.proc import Proc
from ramet.patterns import Matcher
from ramet.text.width import bounded

_COPIES = 64
"""Characters of padding that one column of side-by-side output may become."""


def _old_diff(words: list[str]) -> list[str]:
    """Rewrite `-5u`, `-u5`, `-5`: a number next to -u or -c is its context."""
    out: list[str] = []
    for word in words:
        found = re.fullmatch(r"-([a-zA-Z]*?)(?:(\d+)([uc])|([uc])(\d+))([a-zA-Z]*)", word)
        if found is not None:
            number, kind = found[2] or found[5], (found[3] or found[4]).upper()
            rest = found[1] + found[6]
            out += [*([f"-{rest}"] if rest else []), f"-{kind}", number]
        else:
            out.append(word)
    return out


async def diff(proc: Proc, o: DiffOptions, operands: list[str]) -> int:
    job = await prepare(proc, o)
    if o.from_file is not None or o.to_file is not None:
        pairs = [(o.from_file, w) for w in operands] if o.from_file is not None else [(w, o.to_file) for w in operands]
    else:
        if len(operands) < 2:
            raise UsageError("missing operand after " + quote(operands[0] if operands else "diff"))
        if len(operands) > 2:
            raise UsageError(f"extra operand {quote(operands[2])}")
        pairs = [(operands[0], operands[1])]
    for a, b in pairs:
        await pair(job, str(a), str(b))
    return job.status


_STYLES = {
    "format": "",
    "unified": "unified",
    "context": "context",
    **dict.fromkeys(("ifdef", "line_format", "old_line", "new_line", "same_line"), "merged"),
    **dict.fromkeys(("old_group", "new_group", "same_group", "changed_group"), "merged"),
}
"""Options that select an output style; they exclude each other."""


async def prepare(proc: Proc, o: DiffOptions) -> Comparison:
    words = proc.argv[1:]
    styles = {str(given) if name == "format" else _STYLES[name] for name, given in o.order if name in _STYLES}
    if len(styles) > 1:
        raise UsageError("conflicting output style options")
    format_, lines = o.format or "normal", "3"
    if o.unified is not None:
        format_, lines = "unified", o.unified
    if o.context is not None:
        format_, lines = "context", o.context
    if not lines.isdigit():
        raise UsageError(f"invalid context length {quote(lines)}")
    if not o.width.isdigit() or int(o.width) == 0:
        raise UsageError(f"invalid width {quote(o.width)}")
    bounded(int(o.width) * _COPIES)
    bounded(int(o.tabsize) if o.tabsize.isdigit() else 0)
    if not o.tabsize.isdigit() or int(o.tabsize) == 0:
        raise UsageError(f"invalid tabsize {quote(o.tabsize)}")
    if o.show_function and format_ == "normal":
        format_ = "context"
    function: Callable[[bytes], bool] | None = None
    if o.function_line is not None:
        function = (await offload_long(proc, (o.function_line,), partial(_expression, o.function_line))).test
    elif o.show_function:
        function = re.compile(rb"[A-Za-z$_]").match  # type: ignore[assignment]
    palette = _palette(proc, o.palette or "") if o.color == "always" else None
    style = output.Style(
        context=int(lines),
        color=palette is not None,
        palette=palette or output.PALETTE,
        expand_tabs=o.expand_tabs,
        tabsize=int(o.tabsize),
        initial_tab=o.initial_tab,
        function=function,
        width=int(o.width),
        left_column=o.left_column,
        suppress_common=o.suppress_common,
        suppress_blank=o.suppress_blank,
    )
    excluded = list(o.exclude)
    for word in o.exclude_from:
        from ramet.commands.framework.inputs import slurp

        try:
            excluded += [decode(line) for line in (await slurp(proc, word)).split(b"\n") if line]
        except OSError as error:
            raise UsageError(f"{word}: {reason(error)}", hint=False) from None
    shown_words = [w for w in words if w.startswith("-")]
    ignored = await offload_long(proc, o.ignore_re, partial(_ignored, o))
    job = Comparison(proc, o, format_, style, _key(o), ignored, excluded, _formats(o))
    job.command = " ".join(["diff", *_command_options(words, shown_words)])
    return job


def _expression(text: str) -> Matcher:
    try:
        return bre_bytes(text)
    except UsageError as error:
        raise UsageError(f"{text}: {error}", hint=False) from None


def _palette(proc: Proc, setting: str) -> Mapping[str, str] | None:
    """Parse --palette; None after a reported error."""
    palette = dict(output.PALETTE)
    for part in setting.split(":") if setting else ():
        name, equals, code = part.partition("=")
        if equals and name not in palette:
            proc.complain(f"unrecognized prefix: {name}")
        if name not in palette or not equals or not re.fullmatch(r"[0-9;]*", code):
            proc.complain("unparsable value for --palette")
            return None
        palette[name] = code
    return palette


def _formats(o: DiffOptions) -> Formats | None:
    lines = (o.old_line, o.new_line, o.same_line)
    groups = (o.old_group, o.new_group, o.same_group, o.changed_group)
    if o.line_format is None and not any(given is not None for given in (*lines, *groups)):
        return None
    return Formats.of([o.line_format if given is None else given for given in lines], groups)


def _command_options(words: list[str], flags: list[str]) -> list[str]:
    """Return the options as given, for the headers of a recursive comparison."""
    out: list[str] = []
    takes = {
        "-x",
        "-X",
        "-U",
        "-C",
        "-I",
        "-W",
        "-S",
        "-L",
        "-F",
        "-D",
        "--exclude",
        "--label",
        "--exclude-from",
        "--width",
    }
    i = 0
    while i < len(words):
        word = words[i]
        if word == "--":
            break
        if word.startswith("-") and word != "-":
            out.append(shown(word))
            if word in takes and i + 1 < len(words):
                i += 1
                out.append(shown(words[i]))
        i += 1
    del flags
    return out


def _key(o: DiffOptions) -> Callable[[bytes], bytes] | None:
    steps: list[Callable[[bytes], bytes]] = []
    if o.strip_cr:
        steps.append(lambda line: line.removesuffix(b"\r"))
    if o.all_space:
        steps.append(lambda line: line.translate(None, b" \t\r\v\f"))
    elif o.space_change:
        steps.append(lambda line: re.sub(rb"[ \t\r\v\f]+", b" ", line).rstrip(b" "))
    else:
        if o.tab_expansion:
            steps.append(lambda line: line.expandtabs(int(o.tabsize)))
        if o.trailing:
            steps.append(lambda line: line.rstrip(b" \t\r\v\f"))
    if o.ignore_case:
        steps.append(bytes.lower)
    if not steps:
        return None
    if len(steps) == 1:
        return steps[0]

    def key(line: bytes) -> bytes:
        for step in steps:
            line = step(line)
        return line

    return key


def _ignored(o: DiffOptions) -> Callable[[list[bytes]], bool] | None:
    if not (o.blank_lines or o.ignore_re):
        return None
    matchers = [_expression(text) for text in o.ignore_re]
    spaces = o.all_space or o.space_change or o.trailing

    def test(lines: list[bytes]) -> bool:
        for line in lines:
            blank = o.blank_lines and (not line.strip() if spaces else not line)
            if not blank and not any(m.test(line) for m in matchers):
                return False
        return True

    return test


COMMANDS = [
    Command(
        "diff",
        diff,
        DiffOptions,
        summary="Compare FILES line by line.",
        usage="[OPTION]... FILES",
        bad_usage=2,
        rewrite=_old_diff,
        examples=[
            ("diff -u OLD NEW", "unified, as patch reads it"),
            ("diff -rq A B", "which files of two trees differ"),
        ],
        original="GNU diffutils 3.8",
        version_letters="v",
        prefix_hint=True,
        write_error=("standard output: ", 2),
    ),
]
