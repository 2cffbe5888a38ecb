"""Builtins that direct the flow: leaving loops, functions and shells; positional parameters; traps."""

from __future__ import annotations

from typing import Final

from ramet.core.paths import encode
from ramet.shell.expand import quote
from ramet.shell.expand.arith.numerals import is_name, is_number
from ramet.shell.expand.errors import Readonly, TooMany
from ramet.shell.interp.builtins.usage import bad_option, explained, flags_of, number_of, usage
from ramet.shell.interp.main import startup_files as startup
from ramet.shell.interp.process import signals
from ramet.shell.interp.run.batches import each, then, write_lines
from ramet.shell.interp.run.maybe_async import BREAK, CONTINUE, EXIT, RETURN, Result, drive
from ramet.shell.interp.run.traps import hidden
from ramet.shell.interp.state.assignment_hooks import compatibility
from ramet.shell.interp.state.frames import Frame
from ramet.shell.interp.state.shell_state import Builtin, ShellState


def _loop_exit(sh: ShellState, argv: list[str], flow: int) -> Result:
    name = argv[0]
    words = argv[2:] if len(argv) > 1 and argv[1] == "--" else argv[1:]
    if words and words[0] == "--help":
        return drive(explained(sh, name))
    loops = sh.loops
    if not loops and sh.frames and compatibility(sh) < 44:
        loops = sh.frames[-1].loops  # those around the call of a function
    if not loops:
        if not sh.posix:
            sh.complain(f"{name}: only meaningful in a `for', `while', or `until' loop")
        return 0
    count = 1
    if words:
        found = number_of(words[0])
        if found is None:
            sh.flow_status = sh.status | 128
            return sh.error(f"{name}: {words[0]}: numeric argument required", EXIT)
        if len(words) > 1:
            raise TooMany(f"{name}: too many arguments", sh.status or 1)
        if found <= 0:
            sh.flow_n, sh.flow_status = loops, 1
            flow = BREAK
            if sh.errexit and not sh.errexit_ignored:
                sh.traps.pop("EXIT", None)  # of which bash, busy with leaving loops, would run nothing
                flow = sh.shell.leave(sh, 1)
            return sh.error(f"{name}: {words[0]}: loop count out of range", flow)
        count = found
    sh.flow_n = min(count, loops)
    sh.flow_status = sh.status = 0
    return flow


def break_(sh: ShellState, argv: list[str]) -> Result:
    return _loop_exit(sh, argv, BREAK)


def continue_(sh: ShellState, argv: list[str]) -> Result:
    return _loop_exit(sh, argv, CONTINUE)


def return_(sh: ShellState, argv: list[str]) -> Result:
    words = argv[2:] if len(argv) > 1 and argv[1] == "--" else argv[1:]
    status = sh.status
    if words:
        found = number_of(words[0])
        if found is None:
            if words[0] == "--help":
                return drive(explained(sh, "return"))
            return _returning(sh, sh.error(f"return: {words[0]}: numeric argument required", 2))
        if len(words) > 1:
            raise TooMany("return: too many arguments", sh.status or 1)
        status = found & 255
    return _returning(sh, status)


def _returning(sh: ShellState, status: int) -> int:
    if not sh.frames:
        sh.complain("return: can only `return' from a function or sourced script")
        return 2
    sh.flow_status = status
    return RETURN


def exit_(sh: ShellState, argv: list[str]) -> Result:
    words = argv[2:] if len(argv) > 1 and argv[1] == "--" else argv[1:]
    status = sh.status if sh.exit_trap_status is None else sh.exit_trap_status
    login = "login_shell" in sh.shopts and not sh.sub_level and sh.exit_trap_status is None
    if sh.interactive and not sh.sub_level and not sh.source and sh.exit_trap_status is None:
        sh.err("logout\n" if login else "exit\n")
    if words:
        found = number_of(words[0])
        if found is None:
            return _exiting(sh, sh.error(f"{argv[0]}: {words[0]}: numeric argument required", 2), login)
        if len(words) > 1:
            captured = sh.sub_level and sh.text_depth  # whoever takes the output is told less
            raise TooMany(f"{argv[0]}: too many arguments", 1 if captured else status or 1)
        status = found & 255
    return _exiting(sh, status, login)


def _exiting(sh: ShellState, status: int, login: bool) -> Result:
    sh.flow_status, sh.errexit_ended, sh.loops_left = status, False, sh.loops
    return drive(_logged_out(sh)) if login else EXIT


async def _logged_out(sh: ShellState) -> int:
    await startup.logout(sh)
    return EXIT


def logout(sh: ShellState, argv: list[str]) -> Result:
    if "login_shell" not in sh.shopts:
        return sh.error("logout: not login shell: use `exit'")
    return exit_(sh, argv)


def shift(sh: ShellState, argv: list[str]) -> Result:
    words = argv[2:] if len(argv) > 1 and argv[1] == "--" else argv[1:]
    count = 1
    if words:
        found = number_of(words[0])
        if found is None:
            if words[0] == "--help":
                return drive(explained(sh, "shift"))
            return sh.error(f"shift: {words[0]}: numeric argument required")
        if len(words) > 1:
            raise TooMany("shift: too many arguments", sh.status or 1)
        if found < 0:
            return sh.error(f"shift: {words[0]}: shift count out of range")
        count = found
    if count > len(sh.params):
        if "shift_verbose" in sh.shopts:
            sh.complain(f"shift: {words[0]}: shift count out of range" if words else "shift: shift count out of range")
        return 1
    sh.params = sh.params[count:]
    return 0


def getopts(sh: ShellState, argv: list[str]) -> Result:
    """Options one by one: OPTIND, OPTARG and the given variable."""
    words = argv[2:] if len(argv) > 1 and argv[1] == "--" else argv[1:]
    if len(argv) > 1 and argv[1].startswith("-") and len(argv[1]) > 1 and argv[1] != "--":
        return bad_option(sh, "getopts", argv[1][:2])
    if len(words) < 2:
        return usage(sh, "getopts")
    spec, name = words[0], words[1]
    arguments = words[2:] if len(words) > 2 else sh.params
    quiet = spec.startswith(":")
    spec = spec[1:] if quiet else spec
    opterr = sh.variables.get("OPTERR") != "0"
    index, place = sh.variables.option_place
    wanted = sh.variables.get("OPTIND") or "1"
    if is_number(wanted) and (int(wanted) != index or not index):
        index, place = int(wanted) or 1, 0

    def leave(status: int, letter: str) -> Result:
        sh.variables.option_place = (index, place)
        sh.vars["OPTIND"] = str(index)
        if not is_name(name):
            return sh.error(f"getopts: `{name}': not a valid identifier")
        try:
            sh.variables.set(name, letter)
        except Readonly as error:
            return sh.error(error.message, 1 if status else 2)
        return status

    word = arguments[index - 1] if 0 < index <= len(arguments) else ""
    if not place or place >= len(word):  # also where the arguments are not those that the place was found in
        place = 0
        if len(word) < 2 or word[0] != "-":
            index = min(index, len(arguments) + 1)
            sh.variables.unset("OPTARG")
            return leave(1, "?")
        if word == "--":
            index += 1
            sh.variables.unset("OPTARG")
            return leave(1, "?")
        place = 1
    letter = word[place]
    place += 1
    at = spec.find(letter) if letter != ":" else -1
    ended = place >= len(word)
    if at < 0:
        if ended:
            index, place = index + 1, 0
        if quiet:
            sh.variables.set("OPTARG", letter)
        else:
            sh.variables.unset("OPTARG")
            if opterr:
                sh.err(f"{sh.name}: illegal option -- {letter}\n")
        return leave(0, "?")
    if spec[at + 1 : at + 2] != ":":
        sh.variables.unset("OPTARG")
        if ended:
            index, place = index + 1, 0
        return leave(0, letter)
    if not ended:
        sh.variables.set("OPTARG", word[place:])
        index, place = index + 1, 0
        return leave(0, letter)
    if index < len(arguments):
        sh.variables.set("OPTARG", arguments[index])
        index, place = index + 2, 0
        return leave(0, letter)
    index, place = index + 1, 0
    if quiet:
        sh.variables.set("OPTARG", letter)
        return leave(0, ":")
    sh.variables.unset("OPTARG")
    if opterr:
        sh.err(f"{sh.name}: option requires an argument -- {letter}\n")
    return leave(0, "?")


# ------------------------------------------------------------------------------------------------------- traps


def trap(sh: ShellState, argv: list[str]) -> Result:
    options = flags_of(sh, argv, "lp")
    if options is None:
        return 2
    flags, words = options
    if "l" in flags:
        return sh.out(encode(signal_list()), "trap")
    printing = "p" in flags
    if printing or not words:
        return _show_traps(sh, words, by_default=printing and sh.posix)
    if len(words) == 1:
        action: str | None = None
        names = words
        if signals.trap_name(words[0]) is None or (sh.posix and not is_number(words[0])):
            sh.err("trap: usage: trap [-lp] [[arg] signal_spec ...]\n")
            return 2
    else:
        action, names = words[0], words[1:]
        if action == "-":
            action = None
        elif is_number(action):
            action, names = None, words

    def set_one(text: str) -> Result:
        name = signals.trap_name(text)
        if name is None:
            return sh.error(f"trap: {text}: invalid signal specification")
        sh.listed_traps.clear()
        if name in sh.hard_ignored:
            if name == "INT" and action is None and name in sh.traps:
                # It is heard again, though it still counts as one that was ignored from the start.
                sh.listed_traps[name] = sh.traps.pop(name)
            return 0
        sh.background_ignored -= {name}
        if action is None:
            _forget_trap(sh, name)
        else:
            if name == "ERR" and name not in sh.traps and sh.frames:
                sh.frames[-1].special = sh.frames[-1].trapped = True
            if hidden(sh, name):
                call = _running(sh)
                call.hidden = {name: (sh.traps[name], sh.trap_depth.get(name, 0)), **(call.hidden or {})}
            sh.traps[name] = action
            sh.trap_depth[name] = sum(frame.function for frame in sh.frames)
            if sh.trap_depth[name]:
                _running(sh).special = True  # from when it returns, the trap is one of its callers
        return 0

    known = "ERR" in sh.traps

    def ready(status: int) -> int:
        sh.update_instrumented()
        if status and not known and "ERR" in sh.traps and not sh.errexit_ignored:
            sh.err_trap_just_set = True  # what sets a trap is not blamed by it
        return status

    return then(each(sh, names, set_one), ready)


def _running(sh: ShellState) -> Frame:
    """The call of the function that runs."""
    return next(frame for frame in reversed(sh.frames) if frame.function)


def _forget_trap(sh: ShellState, name: str) -> None:
    """Take a trap away. A function cannot do that to one of its callers that it does not see: that comes back."""
    if hidden(sh, name):
        return
    sh.traps.pop(name, None)
    call = next((frame for frame in reversed(sh.frames) if frame.function), None)
    if call is not None and call.hidden is not None and name in call.hidden:
        sh.traps[name], sh.trap_depth[name] = call.hidden[name]


def _order(name: str) -> int:
    return signals.NUMBERS.get(name, 100 + (signals.PSEUDO.index(name) if name in signals.PSEUDO else 9))


def _show_traps(sh: ShellState, wanted: list[str], by_default: bool) -> Result:
    """Writes traps; `by_default` also what is not trapped, as the commands that would bring that back."""
    traps = {**sh.listed_traps, **{name: action for name, action in sh.traps.items() if not hidden(sh, name)}}
    names: list[str] = []

    def look_up(text: str) -> Result:
        name = signals.trap_name(text)
        if name is None:
            return sh.error(f"trap: {text}: invalid signal specification")
        if name in traps or by_default:
            names.append(name)
        return 0

    def line(name: str) -> str:
        shown = "SIG" + name if name in signals.NUMBERS and name != "EXIT" and not sh.posix else name
        return f"trap -- {quote.single(traps[name]) if name in traps else '-'} {shown}\n"

    if not wanted:
        every = [name or str(number) for number, name in enumerate(signals.NAMES)] + [*signals.PSEUDO]
        names = every if by_default else sorted(traps, key=_order)
    return then(each(sh, wanted, look_up), lambda status: write_lines(sh, map(line, names), len(names), "trap", status))


def signal_list() -> str:
    """The table of `kill -l` and `trap -l`."""
    cells = [f"{number:2d}) SIG{name}" for number, name in enumerate(signals.NAMES) if number and name]
    rows = ["\t".join(cells[i : i + 5]) for i in range(0, len(cells), 5)]
    return "\n".join(rows) + ("\t\n" if len(cells) % 5 else "\n")


TABLE: Final[dict[str, Builtin]] = {
    "break": break_,
    "continue": continue_,
    "return": return_,
    "exit": exit_,
    "logout": logout,
    "shift": shift,
    "getopts": getopts,
    "trap": trap,
}
