"""`bash -i`: prompt, read a command, run it, and continue after errors.

- There is no terminal: input is echoed on stderr after the prompt, as bash does when its input is a pipe.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Final

from ramet.shell.expand.arith.parser import ArithFailure
from ramet.shell.expand.errors import LineError
from ramet.shell.interp.builtins.usage import number_of
from ramet.shell.interp.main.history_record import HistoryRecorder
from ramet.shell.interp.main.script_input import ScriptInput
from ramet.shell.interp.main.startup_files import logout
from ramet.shell.interp.run import subshell
from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.syntax.errors import SyntaxFailure
from ramet.shell.syntax.parser import Parser

if TYPE_CHECKING:
    from ramet.shell.interp.main.shell import Shell

_ENDS: Final = 10
"""Ends of input that `ignoreeof` lets pass."""
GREETING: Final = (
    "{0}: cannot set terminal process group (-1): Inappropriate ioctl for device\n{0}: no job control in this shell\n"
)


def prepare(sh: ShellState) -> None:
    """Set the options and variables of an interactive shell."""
    sh.interactive = True
    sh.shopts.add("expand_aliases")
    for option in ("histexpand", "history", *(() if sh.source else ("emacs",))):
        sh.set_option(option, True)
    file = f"{sh.variables.get('HOME') or ''}/.bash_history"
    given = {"PS1": "\\s-\\v\\$ ", "PS2": "> ", "HISTFILE": file, "COLUMNS": "80", "LINES": "24"}
    for name, value in given.items():
        if sh.variables.get(name) is None:
            sh.variables.set(name, value)


class InteractiveShell:
    """The read loop of one interactive shell; it prompts only when it reads standard input."""

    def __init__(self, shell: Shell, sh: ShellState, text: str, source: ScriptInput | None) -> None:
        self._shell, self._sh, self._source = shell, sh, source
        self._shown = source is not None
        self._parser = Parser(text, sh.aliases, sh.syntax_options())
        self._recorder = HistoryRecorder(sh)
        self._within = False
        """Whether the input ended within a command."""

    async def run(self) -> int:
        sh = self._sh
        ends = 0
        await self._recorder.begin()
        while True:
            result = await self._prompted()
            if result > 255:
                return result
            if sh.budget.check():
                await sh.budget.yield_turn()
            parser = self._parser
            parser.options = sh.syntax_options()
            parser.aliases = sh.aliases if parser.options.expand_aliases else {}
            if parser.pos >= len(parser.text) or (self._source is not None and not self._source.text):
                ends += 1
                if not self._shown or ends > self._patience():
                    return await self._end()
                sh.err(f'Use "{"logout" if "login_shell" in sh.shopts else "exit"}" to leave the shell.\n')
                continue
            result = await self._command()
            if result > 255:
                return result
            if self._source is not None and await self._source.moved(sh):
                self._parser = Parser(self._source.text, sh.aliases, sh.syntax_options(), parser.line_at(parser.pos))

    def _patience(self) -> int:
        """Return how many EOFs IGNOREEOF lets pass."""
        text = self._sh.variables.get("IGNOREEOF")
        if text is None:
            return _ENDS if "ignoreeof" in self._sh.options else 0
        number = number_of(text)
        return _ENDS if number is None else max(number, 0)

    async def _prompted(self) -> int:
        """Run PROMPT_COMMAND, and show PS1."""
        sh = self._sh
        if not self._shown:
            return 0
        if sh.jobs.jobs:
            await asyncio.sleep(0)
            for job in [job for job in sh.jobs.jobs if not job.running]:
                sh.jobs.forget(job)  # not reported without job control
                job.forgotten = True
        status = sh.status
        for text in list(sh.variables.elements("PROMPT_COMMAND")) if "PROMPT_COMMAND" in sh.vars else []:
            if text:
                result = await self._run(text, 1)
                if result > 255:
                    return result
                sh.status = status
        sh.err(sh.prompt(sh.variables.get("PS2" if self._within else "PS1") or ""))
        return 0

    async def _end(self) -> int:
        """The input is over: the shell leaves with the status of its last command."""
        sh = self._sh
        if self._shown:
            login = "login_shell" in sh.shopts
            sh.err("logout\n" if login else "exit\n")
            if login:
                sh.flow_status = sh.status
                await logout(sh)
        return sh.status

    async def _command(self) -> int:
        """Read a command and run it."""
        sh, parser = self._sh, self._parser
        text, start = parser.text, parser.pos
        line = parser.line_at(start)
        end = text.find("\n", start)
        first = text[start : len(text) if end < 0 else end]
        bare = first.lstrip(" \t")
        if not bare or bare.startswith("#"):
            parser.pos = min(start + len(first) + 1, len(text))
            self._offer()
            self._show(first)
            self._recorder.record(first)
            return 0
        failure: SyntaxFailure | None = None
        try:
            parser.horizon = sys.maxsize
            script = self._recorder.next(parser)
        except SyntaxFailure as found:
            failure, script = found, None
            parser.pos = len(parser.text) - self._recorder.left
        self._offer()
        self._show(text[start : len(text) - (len(parser.text) - parser.pos)].removesuffix("\n"))
        parser.warnings.clear()  # they are said when the command runs
        if failure is not None:
            return self._report(failure)
        if script is None:
            return 0
        sh.history.commands += 1
        if self._shown and (before := sh.variables.get("PS0")):
            sh.err(sh.prompt(before))
        return await self._run(self._recorder.read, line)

    def _offer(self) -> None:
        """What was not read is the input of commands."""
        if self._source is not None:
            self._source.offer(len(self._parser.text) - self._parser.pos - (not self._source.text.endswith("\n")))

    def _show(self, text: str) -> None:
        if self._shown:
            second = self._sh.prompt(self._sh.variables.get("PS2") or "")
            self._sh.err(text.replace("\n", "\n" + second) + "\n")

    def _report(self, failure: SyntaxFailure) -> int:
        sh = self._sh
        if failure.status is not None:
            sh.status = failure.status
        if self._source is None and sh.origin != "environment":
            for message in failure.lines(f"{sh.error_name}: {sh.name}: "):
                sh.err(message + "\n")
            return self._shell.leave(sh, sh.status)
        if self._shown and ("unexpected EOF" in failure.message or "end of file" in failure.message):
            self._within = True
            sh.err(sh.prompt(sh.variables.get("PS2") or ""))
        if failure.message:
            sh.err(f"{sh.error_name}: {failure.message}\n")
        return 0 if self._shown else self._shell.leave(sh, sh.status)

    async def _run(self, text: str, line: int) -> int:
        """Run a text; what would end another shell ends only this text."""
        sh, shell = self._sh, self._shell
        base = (len(sh.frames), len(sh.variables.scopes), 0, sh.stack, 0, 0)
        depth = sh.depth
        try:
            result = await shell.run_text(sh, text, top=True, line=line, recorded=True)
        except subshell.ERRORS as error:
            sh.status = subshell.report(sh, error)
            shell.unwind(sh, *base[:2], depth, *base[3:])
            if sh.errexit and not isinstance(error, LineError | ArithFailure):
                return shell.leave(sh, sh.status)
            return 0
        return result
