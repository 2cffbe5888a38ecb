"""env: run a command in a changed environment, or print the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ramet.commands.framework.command import (
    Command,
    UsageError,
    flag,
    optional,
    quote,
    several,
    typographic,
    value,
)
from ramet.core.errors import reason
from ramet.core.paths import Path, encode
from ramet.core.proc import Proc
from ramet.core.signals import NAMES


@dataclass(frozen=True, slots=True)
class EnvOptions:
    clear: bool = flag("-i", "--ignore-environment", help="start with an empty environment")
    zero: bool = flag("-0", "--null", help="end each output line with NUL, not newline")
    unset: tuple[str, ...] = several("-u", "--unset", metavar="NAME", help="remove variable from the environment")
    chdir: str | None = value("-C", "--chdir", metavar="DIR", help="change working directory to DIR")
    split: tuple[str, ...] = several(
        "-S", "--split-string", metavar="S", help="process and split S into separate arguments"
    )
    verbose: bool = flag("-v", "--debug", help="print verbose information for each processing step")
    default_signal: str | None = optional("--default-signal", metavar="SIG", const="", help="reset handling of SIG")
    ignore_signal: str | None = optional(
        "--ignore-signal", metavar="SIG", const="", help="set handling of SIG to do nothing"
    )
    block_signal: str | None = optional("--block-signal", metavar="SIG", const="", help="block delivery of SIG")
    list_signals: bool = flag("--list-signal-handling", help="list non default signal handling to stderr")


_ENV_ESCAPES = {
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    '"': '"',
    "'": "'",
    "#": "#",
    "$": "$",
    "_": " ",
}


def split_string(text: str, env: Mapping[str, str]) -> list[str]:
    """`env -S`: quotes, escapes and ${NAME}, but no other expansion."""
    words: list[str] = []
    word: str | None = None
    quote_char = ""
    i = 0
    while i < len(text):
        c = text[i]
        i += 1
        if quote_char == "'":
            if c == "'":
                quote_char = ""
            elif c == "\\" and text[i : i + 1] in ("'", "\\"):
                word = (word or "") + text[i]
                i += 1
            else:
                word = (word or "") + c
        elif c in "'\"" and (not quote_char or quote_char == c):
            quote_char = "" if quote_char else c
            word = word or ""
        elif c in " \t\n\r\v\f" and not quote_char:
            if word is not None:
                words.append(word)
            word = None
        elif c == "#" and word is None and not quote_char:
            break
        elif c == "\\":
            following = text[i : i + 1]
            i += 1
            if following == "c" and not quote_char:
                break
            if following == "_" and not quote_char:
                if word is not None:
                    words.append(word)
                word = None
            elif following in _ENV_ESCAPES and following:
                word = (word or "") + _ENV_ESCAPES[following]
            elif not following:
                raise UsageError("invalid backslash at end of string in -S", hint=False, status=125)
            else:
                raise UsageError(f"invalid sequence '\\{following}' in -S", hint=False, status=125)
        elif c == "$":
            found = re.match(r"\{([A-Za-z_]\w*)\}", text[i:])
            if found is None:
                raise UsageError(
                    f"only ${{VARNAME}} expansion is supported, error at: {text[i - 1 :]}", hint=False, status=125
                )
            word = (word or "") + env.get(found[1], "")
            i += found.end()
        else:
            word = (word or "") + c
    if quote_char:
        raise UsageError("no terminating quote in -S string", hint=False, status=125)
    if word is not None:
        words.append(word)
    return words


async def env(proc: Proc, o: EnvOptions, operands: list[str]) -> int:
    if o.split:
        operands = [*split_string(" ".join(o.split), proc.env), *operands]
        # The words of -S may begin with options.
        from ramet.commands.framework.command import parse

        inner, operands = parse(_ENV, operands)
        if inner is not None:
            o = EnvOptions(
                verbose=o.verbose or inner.verbose,
                clear=o.clear or inner.clear,
                zero=o.zero or inner.zero,
                unset=o.unset + inner.unset,
                chdir=inner.chdir or o.chdir,
                default_signal=o.default_signal if inner.default_signal is None else inner.default_signal,
                ignore_signal=o.ignore_signal if inner.ignore_signal is None else inner.ignore_signal,
                block_signal=o.block_signal if inner.block_signal is None else inner.block_signal,
                list_signals=o.list_signals or inner.list_signals,
            )
    taken = _signal_actions(o)
    alone = operands[:1] == ["-"]  # a lone dash means -i
    operands = operands[alone:]
    clear = o.clear or alone
    steps = ["cleaning environ"] if clear else []
    variables = {} if clear else dict(proc.env)
    for name in o.unset:
        if not name or "=" in name:
            raise UsageError(f"cannot unset {typographic(proc, quote(name))}: Invalid argument", hint=False)
        variables.pop(name, None)
        steps.append(f"unset:    {name}")
    while operands and "=" in operands[0][1:]:
        name, _, text = operands[0].partition("=")
        variables[name] = text
        steps.append(f"setenv:   {operands[0]}")
        operands = operands[1:]
    if o.list_signals:
        blocked = _signals(o.block_signal) if o.block_signal is not None else []
        for name in sorted((name for name, ignored in taken.items() if ignored), key=NAMES.index):
            how = "BLOCK" if name in blocked else "IGNORE"
            proc.stderr.write(encode(f"{name:<10} ({NAMES.index(name):2d}): {how}\n"))
    if o.verbose:
        steps += [f"chdir:    {quote(o.chdir)}"] if o.chdir is not None else []
        if operands:
            steps.append(f"executing: {operands[0]}")
        words = [typographic(proc, quote(word)) for word in operands]
        steps += [f"   arg[{index}]= {word}" for index, word in enumerate(words)]
        proc.stderr.write(encode("".join(f"{step}\n" for step in steps)))
    if operands in (["env"], ["printenv"]) and o.chdir is None:
        # It would print this environment, without what a shell adds for its commands.
        operands = []
    if not operands:
        if o.chdir is not None:
            raise UsageError("must specify command with --chdir (-C)")
        end = "\0" if o.zero else "\n"
        await proc.emit_texts(part for name, text in variables.items() for part in (name, "=", text, end))
        return 0
    if o.zero:
        raise UsageError("cannot specify --null (-0) with command")
    cwd: Path | None = None
    if o.chdir is not None:
        cwd = proc.path(o.chdir)
        try:
            if not (await proc.fs.stat(cwd, follow=True)).is_dir:
                raise NotADirectoryError(20, "", o.chdir)
        except OSError as error:
            proc.complain(f"cannot change directory to {quote(o.chdir)}: {reason(error)}")
            return 125
    return await proc.run(operands, env=variables, cwd=cwd, signals=taken)


def _signal_actions(o: EnvOptions) -> dict[str, bool]:
    """Return whether each signal is ignored; blocked signals count as ignored."""
    asked = ((o.default_signal, False), (o.ignore_signal, True), (o.block_signal, True))
    return {name: ignored for given, ignored in asked if given is not None for name in _signals(given)}


def _signals(given: str) -> list[str]:
    if not given:
        return [name for name in NAMES[1:] if name not in ("KILL", "STOP")]
    found: list[str] = []
    for word in given.split(","):
        name = NAMES[int(word)] if word.isdigit() and int(word) < len(NAMES) else word.upper().removeprefix("SIG")
        if name not in NAMES[1:]:
            raise UsageError(f"{quote(word)}: invalid signal")
        found.append(name)
    return found


_ENV = Command(
    "env",
    env,
    EnvOptions,
    summary="Set each NAME to VALUE in the environment and run COMMAND.",
    usage="[OPTION]... [-] [NAME=VALUE]... [COMMAND [ARG]...]",
    bad_usage=125,
    operands_first=True,
    original="GNU coreutils 9.1",
    write_error=("write error: ", 125),
)


COMMANDS = [
    _ENV,
]
