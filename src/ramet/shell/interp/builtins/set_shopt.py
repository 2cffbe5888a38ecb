"""`set` and `shopt`: change shell options and positional parameters."""

from __future__ import annotations

from itertools import islice
from typing import Final

from ramet.core.paths import encode
from ramet.shell.interp.builtins.variable_list import write_settings
from ramet.shell.interp.run.batches import each, then, write_lines
from ramet.shell.interp.run.maybe_async import Result, drive
from ramet.shell.interp.state.assignment_hooks import COMPATIBLE, switch_compatibility
from ramet.shell.interp.state.options import LETTERS, OPTIONS, SHOPTS
from ramet.shell.interp.state.shell_state import Builtin, ShellState
from ramet.shell.interp.state.variable_bytes import charge_of


def _set_params(sh: ShellState, argv: list[str], start: int) -> Result:
    if sh.frames:
        sh.frames[-1].replaced = True
    params = [str(word) for word in argv[start:]]
    sh.variables.charge(charge_of(params))
    sh.params = params
    return 0


def set_(sh: ShellState, argv: list[str]) -> Result:
    if len(argv) == 1:
        return drive(write_settings(sh, "set", functions=not sh.posix))
    wrong = _wrong_letter(sh, argv)
    if wrong:
        return _invalid(sh, wrong)
    shown: list[str] = []
    result = _apply(sh, argv, shown)
    return drive(_show_then(sh, "".join(shown), result)) if shown else result


async def _show_then(sh: ShellState, text: str, result: Result) -> int:
    written = sh.out(encode(text), "set")
    status = written if isinstance(written, int) else await written
    return (result if isinstance(result, int) else await result) or status


def _apply(sh: ShellState, argv: list[str], shown: list[str]) -> Result:
    """Set what is asked for; `shown` takes the lists of options that `-o` without a name is for."""
    i = 1
    while i < len(argv):
        word = argv[i]
        if word == "--":
            return _set_params(sh, argv, i + 1)
        if word == "-":
            sh.set_option("xtrace", False)
            sh.set_option("verbose", False)
            return _set_params(sh, argv, i + 1) if i + 1 < len(argv) else 0
        if word == "+":
            i += 1
            continue
        if len(word) < 2 or word[0] not in "-+":
            break
        i += 1
        on = word[0] == "-"
        for letter in word[1:]:
            if letter == "o":
                if not _names_option(argv, i):
                    shown.append(_options_text(sh, on))
                    continue
                name = argv[i]
                i += 1
                if name not in OPTIONS:
                    return sh.error(f"set: {name}: invalid option name", 2)
                sh.set_option(name, on)
            elif letter in LETTERS:
                sh.set_option(LETTERS[letter], on)
            elif letter != "i":
                _invalid(sh, word[0] + letter)
                return 1
    sh.update_instrumented()
    return _set_params(sh, argv, i) if i < len(argv) else 0


def _names_option(argv: list[str], place: int) -> bool:
    """Is there a word for `-o` to take as a name?"""
    return place < len(argv) and argv[place] != "" and argv[place][0] not in "-+"


def _invalid(sh: ShellState, option: str) -> int:
    sh.complain(f"set: {option}: invalid option")
    sh.err("set: usage: set [-abefhkmnptuvxBCEHPT] [-o option-name] [--] [-] [arg ...]\n")
    return 2


def _wrong_letter(sh: ShellState, argv: list[str]) -> str:
    """The first option that there is none of, looked for before any is set."""
    i = 1
    while i < len(argv):
        word = argv[i]
        i += 1
        if word in ("--", "-") or (word != "+" and (len(word) < 2 or word[0] not in "-+")):
            break
        if len(word) > sh.budget.limits.expression_chars:
            raise sh.budget.exceeded("expression_chars", "set")
        for place, letter in enumerate(word[1:], 2):
            if (
                letter == "o"
            ):  # what follows it in its word counts as the name here, though it is taken for letters later
                i += place == len(word) and _names_option(argv, i)
                break
            if letter not in LETTERS:
                return word[0] + letter
    return ""


def _options_text(sh: ShellState, table: bool) -> str:
    if table:
        return "".join(f"{name:<15}\t{'on' if name in sh.options else 'off'}\n" for name in OPTIONS)
    return "".join(f"set {'-' if name in sh.options else '+'}o {name}\n" for name in OPTIONS)


def shopt(sh: ShellState, argv: list[str]) -> Result:
    on: bool | None = None
    quiet = reusable = options = False
    i = 1
    while i < len(argv) and argv[i].startswith("-") and len(argv[i]) > 1:
        if argv[i] == "--":
            i += 1
            break
        for letter in islice(argv[i], 1, None):
            if letter in "su":
                if on is not None and on is not (letter == "s"):
                    return sh.error("shopt: cannot set and unset shell options simultaneously")
                on = letter == "s"
            elif letter in "qpo":
                quiet, reusable, options = quiet or letter == "q", reusable or letter == "p", options or letter == "o"
            else:
                sh.complain(f"shopt: -{letter}: invalid option")
                sh.err("shopt: usage: shopt [-pqsu] [-o] [optname ...]\n")
                return 2
        i += 1
    names = argv[i:]
    if on is None or not names:
        return _listed(sh, names, on, options, quiet, reusable)
    # bash returns 0 for an unknown name with -o.
    switched = _switched(sh, names, on, options)
    return then(switched, lambda status: 0 if options else status)


def _unknown(sh: ShellState, name: str, options: bool) -> Result:
    return sh.error(f"shopt: {name}: invalid {'option name' if options else 'shell option name'}")


def _switched(sh: ShellState, names: list[str], on: bool, options: bool) -> Result:
    def switch(name: str) -> Result:
        if name not in (OPTIONS if options else SHOPTS):
            return _unknown(sh, name, options)
        if options:
            sh.set_option(name, on)
        elif name in COMPATIBLE:
            switch_compatibility(sh, name, on)
        elif name != "restricted_shell":  # there is no restricted shell
            (sh.shopts.add if on else sh.shopts.discard)(name)
            if name == "extdebug":
                # Debugging a script means to follow it everywhere.
                sh.set_option("functrace", on)
                sh.set_option("errtrace", on)
                if on and sh.arguments is None:
                    sh.arguments = sh.params
                sh.update_instrumented()
        return 0

    return each(sh, names, switch)


def _listed(sh: ShellState, names: list[str], on: bool | None, options: bool, quiet: bool, reusable: bool) -> Result:
    """Options and whether they are on; a failure when one that was asked for is off."""
    enabled, known = (sh.options, OPTIONS) if options else (sh.shopts, SHOPTS)
    status = 0

    def line(name: str) -> str:
        nonlocal status
        if name not in known:
            _unknown(sh, name, options)
            status = 1
            return ""
        if name not in enabled and names:
            status = 1
        if quiet:
            return ""
        if not reusable:
            return f"{name:<15}\t{'on' if name in enabled else 'off'}\n"
        if options:
            return f"set {'-' if name in enabled else '+'}o {name}\n"
        return f"shopt -{'s' if name in enabled else 'u'} {name}\n"

    listed = names or [name for name in known if on is None or (name in enabled) is on]
    return then(write_lines(sh, map(line, listed), len(listed), "shopt"), lambda written: status or written)


TABLE: Final[dict[str, Builtin]] = {"set": set_, "shopt": shopt}
