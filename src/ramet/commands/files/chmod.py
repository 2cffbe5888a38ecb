"""chmod: change the permissions of files."""

from __future__ import annotations

import errno
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from ramet.commands.files.cp import lookup
from ramet.commands.framework.command import Command, UsageError, called, choose, flag, ordered, quote, value
from ramet.commands.framework.file_modes import BadMode, change_mode, mode_of, mode_string
from ramet.core import ops
from ramet.core.errors import reason
from ramet.core.paths import Path, encode
from ramet.core.proc import Proc
from ramet.core.stat import Attrs, Kind, Stat


@dataclass(frozen=True, slots=True)
class ChmodOptions:
    changes: bool = flag("-c", "--changes", help="like verbose but report only when a change is made")
    quiet: bool = flag("-f", "--silent", "--quiet", help="suppress most error messages")
    verbose: bool = flag("-v", "--verbose", help="output a diagnostic for every file processed")
    order: tuple[tuple[str, object], ...] = ordered()
    root: bool = choose(
        {"--no-preserve-root": False, "--preserve-root": True}, default=False, help="treat '/' specially, or not"
    )
    reference: str | None = value(
        "--reference", metavar="RFILE", help="use RFILE's mode instead of specifying MODE values"
    )
    recursive: bool = flag("-R", "--recursive", help="change files and directories recursively")


def _chmod_words(words: list[str]) -> list[str]:
    """Rewrite `chmod -x FILE`: modes that look like options become one mode operand."""
    end = words.index("--") if "--" in words else len(words)
    modes = [word for word in words[:end] if re.fullmatch(r"-[rwxXstugo0-7,=+-]+", word)]
    if not modes:
        return words
    before = [word for word in words[:end] if word not in modes]
    flags = [word for word in before if word.startswith("-") and word != "-"]
    names = [word for word in before if word not in flags]
    return [*flags, "--", ",".join(modes), *names, *words[end + 1 :]]


async def chmod(proc: Proc, o: ChmodOptions, operands: list[str]) -> int:
    spec = ""
    if o.reference is not None:
        try:
            fixed = mode_of(await proc.fs.stat(proc.path(o.reference), follow=True))
        except OSError as error:
            raise UsageError(f"failed to get attributes of {quote(o.reference)}: {reason(error)}", hint=False) from None
        make: Callable[[int, bool], int] = lambda old, is_dir: fixed  # noqa: E731
        files = operands
        if not files:
            raise UsageError("missing operand")
    else:
        if not operands:
            raise UsageError("missing operand")
        if len(operands) == 1:
            raise UsageError(f"missing operand after {quote(operands[0])}")
        spec, files = operands[0], operands[1:]
        try:
            change_mode(spec, 0, False, 0)
        except BadMode:
            raise UsageError(f"invalid mode: {quote(spec)}") from None
        make = lambda old, is_dir: change_mode(spec, old, is_dir, proc.umask)  # noqa: E731
    options = proc.argv[: proc.argv.index("--")] if "--" in proc.argv else proc.argv
    surprising = spec[:1] == "-" and proc.umask and spec in options
    status = 0
    told = next((name for name, _ in reversed(o.order) if name in ("verbose", "changes")), "")
    async for word, path, stat in named_files(proc, files, o.recursive, o.quiet, "cannot access"):
        if path is None or stat is None:
            status = 1
            if told == "verbose":
                await proc.emit(encode(f"{quote(word)} could not be accessed\n"))
            continue
        old = mode_of(stat)
        new = make(old, stat.is_dir)
        if new != old:
            try:
                await proc.fs.setattr(path, Attrs(mode=new))
            except OSError as error:
                if not o.quiet:
                    proc.complain(f"changing permissions of {quote(word)}: {reason(error)}")
                status = 1
                continue
        if surprising and (naive := change_mode(spec, old, stat.is_dir, 0)) & new != new:
            # `-w` respects the umask; report bits that remain because of it.
            a, b = mode_string(stat.kind, new)[1:], mode_string(stat.kind, naive)[1:]
            proc.complain(f"{called(word)}: new permissions are {a}, not {b}")
            status = 1
        if told == "verbose" or (told == "changes" and new != old):
            a, b = mode_string(stat.kind, old)[1:], mode_string(stat.kind, new)[1:]
            if new != old:
                text = f"mode of {quote(word)} changed from {old:04o} ({a}) to {new:04o} ({b})\n"
            else:
                text = f"mode of {quote(word)} retained as {old:04o} ({a})\n"
            await proc.emit(encode(text))
    return status


async def named_files(
    proc: Proc, words: list[str], recursive: bool, quiet: bool, what: str
) -> AsyncIterator[tuple[str, Path | None, Stat | None]]:
    """Yield the named files (links followed), and with `recursive` everything below them (links skipped)."""
    for word in words:
        try:
            path = proc.path(word)
            stat = await proc.stat(word)
            if stat.kind is Kind.LINK:
                path = await proc.fs.resolve(path)
                stat = await proc.fs.stat(path)
        except OSError as error:
            if not quiet:
                dangling = (
                    "cannot operate on dangling symlink"
                    if error.errno == errno.ENOENT and word and await lookup(proc, proc.path(word))
                    else what
                )
                proc.complain(f"{dangling} {quote(word)}" + ("" if dangling != what else f": {reason(error)}"))
            yield word, None, None
            continue
        yield word, path, stat
        if not (recursive and stat.is_dir):
            continue
        pending = [(word, path)]
        while pending:
            name, where = pending.pop()
            below = sorted(await ops.entries(proc.fs, where))
            for child, child_stat in below:
                if child_stat.kind is Kind.LINK:
                    continue
                full = f"{name.rstrip('/')}/{child}"
                yield full, where / child, child_stat
                if child_stat.is_dir:
                    pending.append((full, where / child))
            await proc.budget.yield_turn()


COMMANDS = [
    Command(
        "chmod",
        chmod,
        ChmodOptions,
        summary="Change the mode of each FILE to MODE.",
        usage="[OPTION]... MODE[,MODE]... FILE...",
        rewrite=_chmod_words,
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
