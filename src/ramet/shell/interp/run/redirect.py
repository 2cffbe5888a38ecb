"""Redirections: made in order on the live descriptor table, undone in reverse.

What a redirection replaces is kept, with its reference, in the undo list until the command has ended.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from ramet.concurrency.sizes import LARGE
from ramet.core import paths
from ramet.core.errors import fail, reason
from ramet.core.fs import Open
from ramet.core.stat import Attrs
from ramet.core.streams import BytesReader, Null, OpenDirectory
from ramet.shell.expand.arith.numerals import is_number
from ramet.shell.expand.arith.parser import ArithFailure
from ramet.shell.expand.errors import Readonly, ShellError
from ramet.shell.expand.word import compile as words
from ramet.shell.expand.word import to_text as texts
from ramet.shell.expand.word.params import parameter
from ramet.shell.interp.process.descriptors import Description
from ramet.shell.interp.process.dev_fd import as_device
from ramet.shell.interp.run.maybe_async import EXIT, Result
from ramet.shell.interp.run.traps import exit_redirected, failed
from ramet.shell.interp.state.scopes import split_subscript
from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.syntax.nodes import ArithSub, DoubleQuoted, Literal, Param, Part, Redirect, SingleQuoted, Word
from ramet.shell.syntax.printer import word_text

Undo = list[tuple[int, Description | None]]
_READ = frozenset(("<", "<<", "<<-", "<<<", "<&", "<>"))
_HOW = {
    "<": Open.READ,
    ">": Open.WRITE | Open.CREATE | Open.TRUNCATE,
    ">|": Open.WRITE | Open.CREATE | Open.TRUNCATE,
    "&>": Open.WRITE | Open.CREATE | Open.TRUNCATE,
    ">&": Open.WRITE | Open.CREATE | Open.TRUNCATE,
    ">>": Open.WRITE | Open.CREATE | Open.APPEND,
    "&>>": Open.WRITE | Open.CREATE | Open.APPEND,
    "<>": Open.READ | Open.WRITE | Open.CREATE,
}


NEVER, STRICTLY, ALWAYS = range(3)


class RedirectPlan(NamedTuple):
    """A compiled redirection."""

    op: str
    fd: int
    var: str | None
    wait: bool
    target: Callable[[ShellState], Any]
    written: str
    explicit: bool
    private: int
    """Whether making it may change variables or end the shell, which a program's redirections do in its own process:
    NEVER, only under `set -u` (STRICTLY), or ALWAYS."""
    whole: texts.Text | None = None
    """The name of the file as one text, which it is in POSIX mode: there it is not split."""


class RedirectError(Exception):
    """A redirection that cannot be made, with its message."""


def compile_redirects(redirects: tuple[Redirect, ...]) -> list[RedirectPlan]:
    return [_compile(redirect) for redirect in redirects]


def _compile(node: Redirect) -> RedirectPlan:
    fd = node.fd if node.fd is not None else 0 if node.op in _READ else 1
    if node.here is not None:
        body = texts.const("".join(part.text for part in node.here.body.parts)) if node.here.quoted else None  # type: ignore[union-attr]
        text = body or texts.document(node.here.body)
        return RedirectPlan(
            node.op,
            fd,
            node.var,
            text.wait,
            text.run,
            "",
            True,
            body is None and _private(node, node.here.body),
        )
    if node.op == "<<<":
        text = texts.text(node.target, assign=True)
        return RedirectPlan(node.op, fd, node.var, text.wait, text.run, "", True, _private(node, node.target))
    fields = words.words((node.target,))
    written = word_text(node.target)
    private = _private(node, node.target)
    whole = None if all(isinstance(part, Literal) for part in node.target.parts) else texts.text(node.target)
    return RedirectPlan(node.op, fd, node.var, fields.wait, fields.run, written, node.fd is not None, private, whole)


_CHANGES = re.compile(r"\$\{(?:[^}]{0,1000}[=?]|[^}]{1001})|\$[(\[](?:[^)\]]{0,1000}(?:=|\+\+|--)|[^)\]]{1001})").search
"""What may change a variable; what is too long to be looked through is taken for it."""


def _private(node: Redirect, word: Word) -> int:
    if node.var is not None or (node.op in (">&", "<&") and word_text(word)[1:].endswith("-")):
        return ALWAYS
    if all(isinstance(part, Literal | SingleQuoted) for part in word.parts):
        return NEVER
    if any(map(_may_fail, word.parts)):
        return ALWAYS
    return STRICTLY if _CHANGES(word_text(word)) is None else ALWAYS


def _may_fail(part: Part) -> bool:
    if isinstance(part, Param):
        return part.bad is not None or part.op == ":" or part.form == "indirect" or isinstance(part.subscript, Word)
    if isinstance(part, DoubleQuoted):
        return any(map(_may_fail, part.parts))
    return isinstance(part, ArithSub)


def in_process(sh: ShellState, plans: list[RedirectPlan]) -> bool:
    """Whether the redirections of a program must be made where they touch nothing of this shell."""
    least = STRICTLY if sh.nounset else ALWAYS
    return "failglob" in sh.shopts or any(plan.private >= least for plan in plans)


_BATCH = 16
"""Redirections that are made between two turns of the event loop: each may open a file."""


async def apply(sh: ShellState, plans: list[RedirectPlan], undo: Undo) -> bool:
    """Make all redirections; False after a complaint (the caller still has to undo what was made)."""
    for place, plan in enumerate(plans, 1):
        if not place % _BATCH:
            await sh.budget.yield_turn()
        try:
            await _apply(sh, plan, undo)
        except RedirectError as error:
            sh.complain(str(error))
            return False
    return True


async def _apply(sh: ShellState, plan: RedirectPlan, undo: Undo) -> None:
    op = plan.op
    noglob = sh.noglob
    sh.noglob = noglob or sh.posix  # there, names of files are no patterns
    found: Any
    try:
        if sh.posix and plan.whole is not None:
            found = [await texts.ready(sh, plan.whole)]
        else:
            found = await plan.target(sh) if plan.wait else plan.target(sh)
            if plan.whole is not None and type(found) is not list:
                found = await found
    finally:
        sh.noglob = noglob
    if op in ("<<", "<<-"):
        sh.make_room("here-document")
        _install(sh, plan, Description(BytesReader(paths.encode(found))), undo)
        return
    if op == "<<<":
        sh.make_room("here-document")
        _install(sh, plan, Description(BytesReader(paths.encode(found + "\n"))), undo)
        return
    if sh.has_globs:
        found = await sh.shell.globbed(sh, found)
    if len(found) != 1:
        named = plan.var if plan.var is not None and op in ("<&", ">&") else plan.written
        raise RedirectError(f"{named}: ambiguous redirect")
    word = str(found[0])
    if not word.endswith("-") or op not in ("<&", ">&"):
        sh.make_room(word)
    if op in ("<&", ">&") and await _duplicate(sh, plan, word, undo):
        return
    description = await open_file(sh, word, op)
    _install(sh, plan, description, undo)
    if op in ("&>", "&>>", ">&"):
        _put(sh, 2, description.share(), undo)


def _install(sh: ShellState, plan: RedirectPlan, description: Description, undo: Undo) -> None:
    if plan.var is None:
        _put(sh, plan.fd, description, undo)
        return
    # `{name}>file` outlives the command, unless asked not to.
    fd = sh.free_fd()
    name, subscript = split_subscript(plan.var)
    try:
        if subscript is None:
            sh.variables.set(name, str(fd))
        else:
            sh.variables.set_element(name, subscript, str(fd))
    except Readonly as error:
        _put(sh, fd, description, undo)  # so that it is closed
        sh.complain(error.message)
        raise RedirectError(f"{plan.var}: cannot assign fd to variable") from None
    if "varredir_close" in sh.shopts:
        _put(sh, fd, description, undo)
    else:
        sh.fds[fd] = description


def _put(sh: ShellState, fd: int, description: Description | None, undo: Undo) -> None:
    undo.append((fd, sh.fds.get(fd)))
    if description is None:
        sh.fds.pop(fd, None)
    else:
        sh.fds[fd] = description


async def _duplicate(sh: ShellState, plan: RedirectPlan, word: str, undo: Undo) -> bool:
    """`>&2`, `<&-`, `3>&1-`; False when the word is a file name after all."""
    fd = plan.fd
    if plan.var is not None and word == "-":
        found = parameter(sh, plan.var)
        named = found if isinstance(found, str) else ""
        if not is_number(named):
            raise RedirectError(f"{plan.var}: ambiguous redirect")
        closing = sh.fds.pop(int(named), None)
        if closing is not None:
            await _close(closing)
        return True
    if word == "-":
        _put(sh, fd, None, undo)
        return True
    source, move = word, word.endswith("-")
    if move:
        source = word[:-1]
    if not is_number(source):
        if plan.op == ">&" and fd == 1 and plan.var is None and not move:
            return False
        raise RedirectError(f"{source if plan.var is None else plan.var}: ambiguous redirect")
    shared = sh.fds.get(int(source))
    if shared is None:
        if move and fd in sh.fds:
            sh.err(f"{sh.name}: redirection error: cannot duplicate fd: Bad file descriptor\n")
        raise RedirectError(f"{plan.written.removesuffix('-')}: Bad file descriptor")
    kept = plan.var is not None or fd in sh.fds
    _install(sh, plan, shared.share(), undo)
    if move and int(source) != fd:
        if kept:
            _put(sh, int(source), None, undo)
        else:
            await _close(sh.fds.pop(int(source)))  # for good: bash saves it only where something was replaced
    return True


async def _close(description: Description) -> None:
    closing = description.release()
    if closing is not None:
        await closing


async def open_file(sh: ShellState, word: str, op: str) -> Description:
    """The description behind a file name."""
    if word == "/dev/null":
        return Description(Null(), path=word)
    if len(word) > LARGE:
        raise RedirectError(f"{word}: {reason(fail(errno.ENAMETOOLONG, word))}")
    if "//" in word or "/./" in word:
        device = str(paths.parse(word, sh.cwd))
        word = device if device.startswith(("/dev/", "/proc/")) else word
    if word.startswith("/proc/"):
        word = as_device(word, sh.top_pid)
    target = word
    if word.startswith("/dev/"):
        number = _device_number(word)
        if number is not None:
            found = sh.fds.get(number)
            if found is None:
                raise RedirectError(f"{word}: No such file or directory")
            if not found.path or found.path.startswith("/dev/") or not await _is_plain(sh, found.path):
                return found.share()
            target = found.path  # a file is opened anew by its descriptor's name, from its beginning
        if word.startswith(("/dev/tcp/", "/dev/udp/")):
            raise RedirectError(f"{word}: Network is unreachable")
    lowered = sh.ulimits.get("n")
    if lowered is not None and lowered[0].isdigit() and len(sh.fds) >= int(lowered[0]):
        raise RedirectError(f"{word}: Too many open files")
    how = _HOW[op]
    try:
        path = sh.shell.fs.named(target, sh.cwd)
        if word.endswith("/"):
            if how & Open.WRITE:
                raise fail(errno.EISDIR, word)
            if not (await sh.shell.fs.stat(path, follow=True)).is_dir:
                raise fail(errno.ENOTDIR, word)
        created = False
        if op in (">", "&>", ">&") and sh.noclobber:
            await _refuse_overwrite(sh, path, word)
        if sh.umask != 0o022 and how & Open.CREATE:
            created = not await sh.shell.exists(path)
        stream = await sh.shell.fs.open(path, how)
        if created:
            await sh.shell.fs.setattr(path, Attrs(mode=0o666 & ~sh.umask))
    except IsADirectoryError as error:
        if op != "<":
            raise RedirectError(f"{word}: {reason(error)}") from None
        return Description(OpenDirectory(), path=str(path), reads=True)
    except OSError as error:
        if error.errno == errno.ENXIO and not word.startswith("/dev/"):
            device = str(await sh.shell.fs.resolve(path))
            if device.startswith("/dev/"):
                return await open_file(sh, device, op)
        raise RedirectError(f"{word}: {reason(error)}") from None
    return Description(stream, path=str(path), reads=bool(how & Open.READ), writes=bool(how & Open.WRITE))


async def _is_plain(sh: ShellState, path: str) -> bool:
    try:
        return (await sh.shell.fs.stat(paths.Path(path), follow=True)).is_file
    except OSError:
        return False


async def _refuse_overwrite(sh: ShellState, path: paths.Path, word: str) -> None:
    try:
        there = (await sh.shell.fs.stat(path, follow=True)).is_file
    except OSError:
        there = await sh.shell.exists(path)  # a link that leads nowhere
    if there:
        raise RedirectError(f"{word}: cannot overwrite existing file")


def _device_number(word: str) -> int | None:
    name = word[5:]
    if name in ("stdin", "stdout", "stderr"):
        return ("stdin", "stdout", "stderr").index(name)
    if name.startswith("fd/") and is_number(name[3:]):
        return int(name[3:])
    return None


async def restore(sh: ShellState, undo: Undo) -> bool:
    """Undo redirections; False when closing something failed (after a complaint)."""
    good = True
    while undo:
        if not len(undo) % _BATCH:
            await sh.budget.yield_turn_unchecked()
        fd, old = undo.pop()
        current = sh.fds.get(fd)
        if old is None:
            sh.fds.pop(fd, None)
        else:
            sh.fds[fd] = old
        if current is not None:
            try:
                await _close(current)
            except OSError as error:
                sh.complain(f"{current.path}: {reason(error)}")
                good = False
    return good


async def keep(sh: ShellState, undo: Undo, lasting: bool = False) -> None:
    """Make redirections permanent (`exec >file`): forget what they replaced."""
    # Several changes of one descriptor: the replaced ones in between are closed too, the live one is not in the list.
    while undo:
        fd, old = undo.pop()
        if fd == 0 and fd in sh.fds and lasting:
            sh.fds[fd].base = True
        if old is not None:
            await _close(old)


async def run_redirected(
    sh: ShellState, plans: list[RedirectPlan], run: Callable[[ShellState], Result], blamed: bool
) -> int:
    """Run something under redirections; that these fail counts here where it is `blamed`, or nowhere else."""
    undo: Undo = []
    mark = len(sh.substitutions)
    made = False
    sh.depth += 1
    try:
        made = await apply(sh, plans, undo)
        result: Any = run(sh) if made else 1
        if type(result) is not int:
            result = await result
        if result == EXIT:
            await exit_redirected(sh)
    except (ShellError, ArithFailure) as error:
        sh.complain_once(error)
        raise
    except BaseException:
        if len(sh.substitutions) > mark:
            await sh.shell.end_substitutions(sh, mark, cancelled=True)
        raise
    finally:
        sh.depth -= 1
        good = True if not undo else await restore(sh, undo)
        if len(sh.substitutions) > mark:
            await sh.shell.end_substitutions(sh, mark)
    if not made:
        sh.status = 1
        if blamed and not sh.errexit_ignored and (sh.errexit or "ERR" in sh.traps):
            result = failed(sh, 1)
            if type(result) is not int:
                result = await result
    elif not good and result == 0:
        sh.status = result = 1
    return int(result)


async def read_device(sh: ShellState, file: str) -> bytes:
    """All that can be read from a device, which may be a descriptor of the shell."""
    try:
        description = await open_file(sh, file, "<")
    except RedirectError:
        raise fail(errno.ENOENT, file) from None
    reader = description.reader
    data = b"" if reader is None else await reader.read_all(sh.budget.limits.string_bytes)
    closing = description.release()
    if closing is not None:
        await closing
    return data
