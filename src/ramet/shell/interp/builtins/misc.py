"""`echo`, `eval`, `source`, `exec`, `let`, `umask`, `ulimit` and other single builtins."""

from __future__ import annotations

import errno
from functools import partial
from typing import Final

from ramet.concurrency.offload import offload, offload_large
from ramet.concurrency.sizes import BATCH, LARGE, LONG_SCRIPT
from ramet.core import paths
from ramet.core.errors import reason
from ramet.core.paths import decode, encode
from ramet.shell.expand.arith.numerals import is_number
from ramet.shell.expand.arith.parser import ArithFailure
from ramet.shell.expand.c_locale import bytewise
from ramet.shell.expand.errors import BadSubscript, ErrexitExempt, Overflow, Readonly, ShellError
from ramet.shell.expand.size_check import joined
from ramet.shell.interp.builtins.usage import bad_option, explained, flags_of, misused, number_of, usage
from ramet.shell.interp.run.batches import write_lines
from ramet.shell.interp.run.functions import HOP, hop
from ramet.shell.interp.run.maybe_async import EXIT, RETURN, Result, drive
from ramet.shell.interp.run.traps import active, exit_within
from ramet.shell.interp.state.frames import Frame
from ramet.shell.interp.state.shell_state import Builtin, ShellState
from ramet.text import escapes


def true(sh: ShellState, argv: list[str]) -> Result:
    return 0


def false(sh: ShellState, argv: list[str]) -> Result:
    return 1


def echo(sh: ShellState, argv: list[str]) -> Result:
    newline, decode, i = True, "xpg_echo" in sh.shopts, 1
    while i < len(argv):
        word = argv[i]
        if len(word) < 2 or word[0] != "-" or word.strip("neE") != "-" or (sh.posix and "xpg_echo" in sh.shopts):
            break  # X/Open's echo has no options
        for letter in word[1:]:
            if letter == "n":
                newline = False
            else:
                decode = letter == "e"
        i += 1
    text = " ".join(argv[i:])
    if len(text) > LARGE:
        return drive(_echo_large(sh, text, newline, decode))
    data, newline = _echoed(sh, text, newline, decode)
    return sh.out(data + b"\n" if newline else data, "echo")


def _echoed(sh: ShellState, text: str, newline: bool, decode: bool) -> tuple[bytes, bool]:
    """Return the bytes of a text, escapes decoded, and whether a newline follows."""
    data = encode(text)
    if decode and b"\\" in data:
        data, stopped = escapes.decode(escapes.ECHO, data, bytewise(sh))
        newline = newline and not stopped
    return data, newline


async def _echo_large(sh: ShellState, text: str, newline: bool, decode: bool) -> int:
    data, newline = await offload(sh.budget, partial(_echoed, sh, text, newline, decode))
    written = sh.out(data + b"\n" if newline else data, "echo")
    return written if isinstance(written, int) else await written


def evaluate(sh: ShellState, argv: list[str]) -> Result:
    """`eval`."""
    words = argv[2:] if len(argv) > 1 and argv[1] == "--" else argv[1:]
    if len(argv) > 1 and argv[1] not in ("--", "-") and argv[1].startswith("-") and len(argv[1]) > 1:
        sh.complain(f"eval: {argv[1][:2]}: invalid option")
        sh.err("eval: usage: eval [arg ...]\n")
        return _usage_failure(sh)
    text = joined(sh, " ", words)
    if not text or text.isspace():
        return 0
    return drive(_evaluate(sh, text))


async def _evaluate(sh: ShellState, text: str) -> int:
    strict, sh.via_command = sh.posix and not sh.via_command, False
    outer, sh.eval_frames = sh.eval_frames, len(sh.frames)
    # Directly within another it counts twice: what is bounded is how long it takes to end it all.
    weight = 2 if outer == sh.eval_frames else 1
    sh.depth += weight
    if sh.depth > sh.budget.limits.recursion:
        sh.depth -= weight
        sh.eval_frames = outer
        sh.budget.spend("recursion")
        raise Overflow(f"eval: maximum eval nesting level exceeded ({sh.budget.limits.recursion})")
    sh.trace_level += 1
    sh.text_depth += 1
    ran, trapped, stack = sh.last_command, active(sh, "ERR", sh.errtrace), sh.stack
    run = partial(sh.shell.run_text, sh, text, keep_line=True, line=max(sh.line, 1), where="eval: ", strict=strict)
    try:
        if stack < HOP:  # `Shell.below`, written out: there may be thousands of levels to come back through
            sh.stack += 1
            result = await run()
        else:
            result = await hop(sh, run)
        _note_late_trap(sh, result, trapped)
        return result
    finally:
        sh.stack = stack
        sh.depth -= weight
        sh.eval_frames = outer
        sh.text_depth -= 1
        sh.trace_level -= 1
        sh.last_command = ran


def source(sh: ShellState, argv: list[str]) -> Result:
    options = flags_of(sh, argv, "")
    if options is None:
        return _usage_failure(sh)
    words = options[1]
    if not words:
        sh.complain(f"{argv[0]}: filename argument required")
        usage(sh, argv[0])
        return _usage_failure(sh)
    return drive(_source(sh, argv[0], words))


def _usage_failure(sh: ShellState) -> int:
    """Not to be used as it was: by POSIX's rules that ends the shell."""
    ends, sh.via_command = sh.posix and not sh.via_command and not sh.errexit_ignored, False
    return sh.shell.leave(sh, 2) if ends else 2


_SOURCED: Final = 2
"""Levels of nesting that a sourced file counts as; it takes longer to end than a function."""


async def _source(sh: ShellState, name: str, words: list[str]) -> int:
    file = str(words[0])
    strict, sh.via_command = sh.posix and not sh.via_command, False
    try:
        if "/" not in file:
            file = await _in_path(sh, file)
        data = await _read(sh, file)
    except OSError as error:
        if sh.posix and "/" not in str(words[0]):
            sh.error(f"{name}: {words[0]}: file not found")
        else:
            what = reason(error).replace("Is a", "is a")
            sh.complain(f"{'' if error.errno != errno.EISDIR else f'{name}: '}{words[0]}: {what}")
        if (strict and error.errno != errno.EISDIR) or (sh.errexit and not sh.errexit_ignored):
            # The message itself ends a shell under `set -e`: no ERR trap gets to see it.
            sh.flow_status = sh.status = 1
            return EXIT
        if "RETURN" in sh.traps:
            sh.status = 1
            await sh.shell.return_trap(sh)
        return 1
    sh.depth += _SOURCED
    if sh.depth > sh.budget.limits.recursion:
        sh.depth -= _SOURCED
        sh.budget.spend("recursion")
        raise Overflow(f"{name}: maximum source nesting level exceeded ({sh.budget.limits.recursion})")
    frame = Frame("source", file, sh.line_now(), sh.params, sh.loops, function=False)
    sh.frames.append(frame)
    before = sh.params
    own = [str(word) for word in words[1:]] if len(words) > 1 else None
    if own is not None:
        sh.params = own
    if "extdebug" in sh.shopts:
        frame.arguments = own or [str(words[0])]
    line, ran, trapped = sh.line, sh.last_command, active(sh, "ERR", sh.errtrace)
    sh.trace_level += 1
    sh.text_depth += 1
    watching = None if sh.functrace else sh.traps.pop("DEBUG", None)  # it sees no files that are sourced
    if watching is not None:
        sh.update_instrumented()
    try:
        text = await offload_large(sh.budget, len(data), partial(decode, data))
        result = await sh.shell.below(sh, lambda: sh.shell.run_text(sh, text, strict=strict))
        if result == EXIT and "EXIT" in sh.traps:
            await exit_within(sh)
    except ShellError as error:
        sh.complain_once(error)  # it names the file
        raise
    finally:
        if sh.frames[-1] is frame:  # or functions within it were abandoned, which leave together
            sh.frames.pop()
        sh.depth -= _SOURCED
        sh.text_depth -= 1
        sh.trace_level -= 1
        sh.last_command = ran
        sh.line = line
        if own is not None and not frame.replaced:
            sh.params = before
        if watching is not None:
            sh.traps.setdefault("DEBUG", watching)
            sh.update_instrumented()
    status = sh.flow_status
    if "RETURN" in sh.traps and result != EXIT:
        await sh.shell.return_trap(sh)
    if result == RETURN:
        result = status
    _note_late_trap(sh, result, trapped)
    return result


def _note_late_trap(sh: ShellState, result: int, trapped: bool) -> None:
    """A command that sets the first ERR trap and fails does so before that trap holds."""
    if not trapped and result and result < 256 and not sh.errexit_ignored and "ERR" in sh.traps:
        sh.err_trap_just_set = True


async def _read(sh: ShellState, file: str) -> bytes:
    if file.startswith("/dev/"):
        from ramet.shell.interp.run.redirect import read_device

        return await read_device(sh, file)
    path = sh.shell.fs.named(file, sh.cwd)
    stat = await sh.shell.fs.stat(path, follow=True)
    if stat.is_dir:
        raise IsADirectoryError(21, "Is a directory", file)
    return await sh.shell.read_file(path)


async def _in_path(sh: ShellState, name: str) -> str:
    """`source name` looks along PATH, then here, unless by POSIX's rules."""
    if "sourcepath" in sh.shopts and len(name) <= paths.NAME_MAX:
        for directory in (sh.variables.get("PATH") or "").split(":"):
            candidate = f"{directory or '.'}/{name}"
            try:
                stat = await sh.shell.fs.stat(sh.shell.fs.named(candidate, sh.cwd), follow=True)
            except OSError:
                continue
            if stat.is_file:
                return candidate
    if sh.posix:
        raise FileNotFoundError(2, name)
    return name


def execute(sh: ShellState, argv: list[str]) -> Result:
    """`exec command`; without a command its redirections were made permanent already."""
    i, name = 1, None
    clean = login = False
    while i < len(argv) and argv[i].startswith("-") and len(argv[i]) > 1:
        word = argv[i]
        i += 1
        if word == "--":
            break
        for place, letter in enumerate(word[1:], 1):
            if letter == "a":
                if not word[place + 1 :] and i >= len(argv):
                    return bad_option(sh, "exec", "-a", "option requires an argument")
                name = word[place + 1 :] or argv[i]
                i += 0 if word[place + 1 :] else 1
                break
            if letter == "c":
                clean = True
            elif letter == "l":
                login = True
            else:
                return bad_option(sh, "exec", f"-{letter}")
    if i >= len(argv):
        return 0
    if login:
        name = f"-{name or argv[i]}"
    return drive(_execute(sh, argv[i:], name, clean))


async def _execute(sh: ShellState, argv: list[str], name: str | None, clean: bool) -> int:
    from ramet.shell.interp.run.external import is_native, lacks_interpreter, run_external, runnable, search

    target = argv[0]
    found = target if "/" in target else await search(sh, target)
    if found is None:
        sh.error(f"exec: {target}: not found")
        return _stayed(sh, 127)
    full = found if found[0] in "/\0" else f"{sh.cwd.rstrip('/')}/{found.removeprefix('./')}"
    if "/" in target:
        try:
            path = await runnable(sh, target)
            of_tree = path is not None and not await is_native(sh, target)
            if of_tree and path is not None and await lacks_interpreter(sh, path):
                return _could_not(sh, sh.error(f"{full}: cannot execute: required file not found", 127))
        except OSError as error:
            status = sh.error(f"{full}: {reason(error)}", 127 if error.errno == errno.ENOENT else 126)
            if error.errno in (errno.EISDIR, errno.EACCES):
                sh.complain(f"exec: {full}: cannot execute: {reason(error)}")
            return _could_not(sh, status)
    if clean:
        for variable in list(sh.variables.exported()):
            sh.variables.flag(variable, remove=1)
        sh.program_environment = True
    sh.traps.pop("EXIT", None)
    if full != found:  # which a script takes for its name
        argv, name = [full, *argv[1:]], name or target
    status = await run_external(sh, argv, name)
    sh.flow_status = status
    return EXIT


def _could_not(sh: ShellState, status: int) -> int:
    """The same for a program that is there: what was to run at the end of this shell is gone."""
    if (result := _stayed(sh, status)) == EXIT:
        sh.traps.pop("EXIT", None)
    return result


def _stayed(sh: ShellState, status: int) -> int:
    """What a shell that could not become a program does: it ends unless it was asked to go on."""
    if not sh.sub_level and ((sh.interactive and not sh.source) or "execfail" in sh.shopts):
        return status
    sh.flow_status = status
    return EXIT


def let(sh: ShellState, argv: list[str]) -> Result:
    words = argv[2:] if len(argv) > 1 and argv[1] == "--" else argv[1:]
    if not words:
        sh.complain("let: expression expected")
        return 1
    if words[0] == "--help":
        return drive(explained(sh, "let"))
    if len(words) > BATCH or sum(map(len, words)) > LONG_SCRIPT:
        return drive(_let_large(sh, words))
    return 0 if _evaluated(sh, words) else 1


async def _let_large(sh: ShellState, words: list[str]) -> int:
    return 0 if await offload(sh.budget, partial(_evaluated, sh, words)) else 1


def _evaluated(sh: ShellState, words: list[str]) -> int | None:
    """The value of the last expression; None after an error."""
    value = 0
    for word in words:
        try:
            value = sh.evaluate(word)
        except (ArithFailure, ShellError) as error:
            if getattr(error, "status", 1) != 1 or isinstance(error, BadSubscript):
                raise
            sh.complain(f"{'' if isinstance(error, Readonly) else 'let: '}{error.message}")
            return None
    return value


def times(sh: ShellState, argv: list[str]) -> Result:
    if flags_of(sh, argv, "") is None:
        return 2
    return sh.out(b"0m0.000s 0m0.000s\n0m0.000s 0m0.000s\n", "times")


def caller(sh: ShellState, argv: list[str]) -> Result:
    """Where the running function was called from."""
    options = flags_of(sh, argv, "")
    if options is None:
        return 2
    level = options[1][0] if options[1] else None
    depth = number_of("0" if level is None else level)
    if depth is None:
        return misused(sh, "caller", str(level), "invalid number")
    frames = sh.frames
    if not frames and level is None and sh.origin == "main":
        return sh.out(b"0 NULL\n", "caller")
    if depth >= len(frames):
        return 1
    frame = frames[-1 - depth]
    outer = frames[-2 - depth] if depth + 1 < len(frames) else None
    if outer is None and level is not None and not sh.source and sh.origin != "main":
        return 1
    name = outer.name if outer is not None else "main"
    known = outer is not None and (outer.source != "main" or sh.origin == "stdin")
    file = outer.source if outer is not None and known else sh.source or (sh.name if sh.origin == "main" else "NULL")
    text = f"{frame.line} {file}\n" if level is None else f"{frame.line} {name} {file}\n"
    return sh.out(encode(text), "caller")


def suspend(sh: ShellState, argv: list[str]) -> Result:
    options = flags_of(sh, argv, "f")
    if options is None:
        return 2
    if options[1]:
        raise ErrexitExempt("suspend: too many arguments")
    return sh.error("suspend: cannot suspend: no job control")


def umask(sh: ShellState, argv: list[str]) -> Result:
    options = flags_of(sh, argv, "Sp")
    if options is None:
        return 2
    flags, words = options
    symbolic, reusable = "S" in flags, "p" in flags
    if not words:
        if symbolic:
            text = f"umask -S {_symbolic(sh.umask)}\n" if reusable else f"{_symbolic(sh.umask)}\n"
        else:
            text = f"umask {sh.umask:04o}\n" if reusable else f"{sh.umask:04o}\n"
        return sh.out(encode(text), "umask")
    word = words[0]
    if word[:1].isdigit():
        if not is_number(word) or not set(word) <= set("01234567") or int(word, 8) > 0o7777:
            return sh.error(f"umask: {word}: octal number out of range")
        sh.umask = int(word, 8) & 0o777
    else:
        if len(word) > sh.budget.limits.expression_chars:
            return sh.error(f"umask: limit reached: expression_chars ({sh.budget.limits.expression_chars})")
        changed = _symbolic_mask(sh.umask, word)
        if isinstance(changed, str):
            return sh.error(f"umask: {changed}")
        sh.umask = changed
    return sh.out(encode(_symbolic(sh.umask) + "\n") if symbolic else b"", "umask")


def _symbolic(mask: int) -> str:
    bits = (("r", 4), ("w", 2), ("x", 1))
    return ",".join(
        f"{who}={''.join(letter for letter, bit in bits if not (mask >> shift) & bit)}"
        for who, shift in (("u", 6), ("g", 3), ("o", 0))
    )


def _symbolic_mask(mask: int, text: str) -> int | str:
    allowed = ~mask & 0o777
    left = f"{text},"
    while left:
        rest = left.lstrip("ugoa")
        who, left = set(left[: len(left) - len(rest)]), rest
        if left[0] not in "+-=":
            # The end of the text is a character too.
            return f"`{left[0] if len(left) > 1 else chr(0)}': invalid symbolic mode operator"
        clause, _, left = left.partition(",")
        op, letters = clause[0], clause[1:]
        if not left and text.endswith(","):
            return "`\0': invalid symbolic mode operator"
        if unknown := letters.strip("rwx"):
            return f"`{unknown[0]}': invalid symbolic mode character"
        bits = sum({"r": 4, "w": 2, "x": 1}.get(letter, 0) for letter in set(letters))
        shifts = [6, 3, 0] if not who or "a" in who else [{"u": 6, "g": 3, "o": 0}[letter] for letter in who]
        for shift in shifts:
            if op == "+":
                allowed |= bits << shift
            elif op == "-":
                allowed &= ~(bits << shift)
            else:
                allowed = allowed & ~(7 << shift) | bits << shift
    return ~allowed & 0o777


_ULIMITS: Final = {
    "R": ("real-time non-blocking time ", "microseconds, -R", "unlimited"),
    "c": ("core file size", "blocks, -c", "0"),
    "d": ("data seg size", "kbytes, -d", "unlimited"),
    "e": ("scheduling priority", "-e", "0"),
    "f": ("file size", "blocks, -f", "unlimited"),
    "i": ("pending signals", "-i", "4096"),
    "l": ("max locked memory", "kbytes, -l", "64"),
    "m": ("max memory size", "kbytes, -m", "unlimited"),
    "n": ("open files", "-n", ""),
    "p": ("pipe size", "512 bytes, -p", "8"),
    "q": ("POSIX message queues", "bytes, -q", "819200"),
    "r": ("real-time priority", "-r", "0"),
    "s": ("stack size", "kbytes, -s", "8192"),
    "t": ("cpu time", "seconds, -t", "unlimited"),
    "u": ("max user processes", "-u", ""),
    "v": ("virtual memory", "kbytes, -v", "unlimited"),
    "x": ("file locks", "-x", "unlimited"),
}


def ulimit(sh: ShellState, argv: list[str]) -> Result:
    """Limits as a script sees them; what is set here is remembered and reported, our own bounds stay what they are."""
    soft = hard = everything = False
    asked: list[tuple[str, str | None]] = []
    i = 1
    while i < len(argv) and argv[i].startswith("-") and len(argv[i]) > 1:
        word = argv[i]
        i += 1
        if word == "--":
            break
        for place, one in enumerate(word[1:], 1):
            soft, hard, everything = soft or one == "S", hard or one == "H", everything or one == "a"
            if one in _ULIMITS:
                value = word[place + 1 :] or None
                if value is None and i < len(argv) and not argv[i].startswith("-"):
                    value = str(argv[i])
                    i += 1
                asked.append((one, value))
                break
            if one not in "SHa":
                return bad_option(sh, "ulimit", f"-{one}")
    if asked and asked[-1][1] is None and i < len(argv):
        asked[-1] = (asked[-1][0], str(argv[i]))  # behind `--`
    if not asked and not everything:
        asked.append(("f", str(argv[i]) if i < len(argv) else None))
    lines: list[str] = []
    for key, value in [(key, None) for key in _ULIMITS] if everything else asked:
        if value is not None:
            if status := _set_limit(sh, key, value, soft, hard):
                return status
            continue
        name, unit, _ = _ULIMITS[key]
        head = f"{name} {'(' + unit + ')':>{max(40 - len(name) - 1, 0)}} " if everything or len(asked) > 1 else ""
        lines.append(f"{head}{_limit(sh, key)[hard and not soft]}\n")
    return write_lines(sh, lines, len(lines), "ulimit")


def _set_limit(sh: ShellState, letter: str, value: str, soft: bool, hard: bool) -> int:
    now, most = _limit(sh, letter)
    if value in ("hard", "soft"):
        value = most if value == "hard" else now
    if value != "unlimited" and not is_number(value):
        return sh.error(f"ulimit: {value}: invalid number")
    if most != "unlimited" and (value == "unlimited" or int(value) > int(most)):
        why = "Invalid argument" if soft and not hard else "Operation not permitted"
        return sh.error(f"ulimit: {_ULIMITS[letter][0]}: cannot modify limit: {why}")
    both = soft is hard
    sh.ulimits[letter] = (value if soft or both else now, value if hard or both else most)
    return 0


def _limit(sh: ShellState, letter: str) -> tuple[str, str]:
    limits = sh.budget.limits
    own = {"n": str(limits.open_files), "u": str(limits.processes)}
    default = own.get(letter, _ULIMITS[letter][2])
    return sh.ulimits.get(letter, (default, "unlimited" if letter in "cs" else default))


TABLE: Final[dict[str, Builtin]] = {
    ":": true,
    "true": true,
    "false": false,
    "echo": echo,
    "eval": evaluate,
    ".": source,
    "source": source,
    "exec": execute,
    "let": let,
    "times": times,
    "caller": caller,
    "suspend": suspend,
    "umask": umask,
    "ulimit": ulimit,
}
