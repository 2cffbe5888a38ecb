"""chmod, chown and chgrp: modes are kept by the mounts, ownership is the workspace's and cannot be given away."""

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

# -------------------------------------------------------------------------------------------------------- chmod


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
    """`chmod -x FILE`: modes that look like options, wherever options may stand; several are one after the other."""
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
    async for word, path, stat in _walk(proc, files, o.recursive, o.quiet, "cannot access"):
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
            # `-w` takes away only what the umask lets be: said where more than that is left.
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


async def _walk(
    proc: Proc, words: list[str], recursive: bool, quiet: bool, what: str
) -> AsyncIterator[tuple[str, Path | None, Stat | None]]:
    """The named files (links followed), and with `recursive` everything below them (links skipped)."""
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


# ---------------------------------------------------------------------------------------------- chown and chgrp


@dataclass(frozen=True, slots=True)
class ChownOptions:
    changes: bool = flag("-c", "--changes", help="like verbose but report only when a change is made")
    quiet: bool = flag("-f", "--silent", "--quiet", help="suppress most error messages")
    verbose: bool = flag("-v", "--verbose", help="output a diagnostic for every file processed")
    deref: bool = choose(
        {"-h --no-dereference": False, "--dereference": True}, default=True, help="affect links, or what they point to"
    )
    from_: str | None = value(
        "--from", metavar="CURRENT_OWNER:CURRENT_GROUP", help="change only if the current owner matches"
    )
    root: bool = choose(
        {"--no-preserve-root": False, "--preserve-root": True}, default=False, help="treat '/' specially, or not"
    )
    reference: str | None = value("--reference", metavar="RFILE", help="use RFILE's owner and group")
    recursive: bool = flag("-R", "--recursive", help="operate on files and directories recursively")
    traverse: str = choose(
        {"-H": "H", "-L": "L", "-P": "P"}, default="P", help="how links to directories are traversed"
    )


async def chown(proc: Proc, o: ChownOptions, operands: list[str]) -> int:
    """Everything belongs to the user of the workspace: giving it to that user changes nothing, another is refused."""
    is_group = proc.argv[0].endswith("chgrp")
    files = operands
    user, group = proc.user, None
    if o.reference is None:
        if not operands:
            raise UsageError("missing operand")
        if len(operands) == 1:
            raise UsageError(f"missing operand after {quote(operands[0])}")
        spec, files = operands[0], operands[1:]
        owner, _sep, group = (
            (("", ":", spec) if is_group else spec.partition(":")) if ":" in spec or is_group else (spec, "", "")
        )
        if owner and owner not in (user.name, str(user.uid)):
            if not re.fullmatch(r"\d+", owner) and owner not in ("root", "nobody"):
                raise UsageError(f"invalid user: {quote(spec)}", hint=False)
            return await _refuse_owner(proc, o, files, "ownership" if not is_group else "group")
        if group and group not in (user.group, str(user.gid)):
            if not re.fullmatch(r"\d+", group) and group not in ("root", "nogroup"):
                raise UsageError(f"invalid group: {quote(spec)}", hint=False)
            return await _refuse_owner(proc, o, files, "group" if is_group else "ownership")
    status = 0
    async for word, path, _ in _walk(proc, files, o.recursive, o.quiet, "cannot access"):
        if path is None:
            status = 1
        elif o.verbose:
            name = (
                f"group of {quote(word)} retained as {user.group}"
                if is_group
                else f"ownership of {quote(word)} retained as {user.name}"
            )
            await proc.emit(encode(f"{name}{':' + user.group if group and not is_group else ''}\n"))
    return status


async def _refuse_owner(proc: Proc, o: ChownOptions, files: list[str], what: str) -> int:
    async for word, path, _ in _walk(proc, files, o.recursive, o.quiet, "cannot access"):
        if path is not None and not o.quiet:
            proc.complain(f"changing {what} of {quote(word)}: Operation not permitted")
    return 1


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
    Command(
        "chown",
        chown,
        ChownOptions,
        summary="Change the owner and/or group of each FILE.",
        usage="[OPTION]... [OWNER][:[GROUP]] FILE...",
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
    Command(
        "chgrp",
        chown,
        ChownOptions,
        summary="Change the group of each FILE to GROUP.",
        usage="[OPTION]... GROUP FILE...",
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
