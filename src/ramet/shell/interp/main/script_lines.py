"""`ScriptReader`: the lines of a running script, from the parse cache or parsed when they are due.

- A line is parsed with the options and aliases that hold after all lines before it have run.
- Lines parsed without aliases are cached with the options of each line, so a text is parsed once even if it ends
  early or changes options.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Final

from ramet.concurrency.offload import offload
from ramet.concurrency.sizes import LONG_SCRIPT
from ramet.shell.interp.main.history_record import HistoryRecorder
from ramet.shell.interp.main.script_input import ScriptInput
from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.syntax import cache
from ramet.shell.syntax.cache import ParsedLines
from ramet.shell.syntax.errors import SyntaxFailure, Unready
from ramet.shell.syntax.nodes import Script
from ramet.shell.syntax.parser import Parser
from ramet.shell.syntax.scanner import Options

_LINES: Final = 500
"""Lines of a text that are kept."""
NOTHING, LINES, ALL = range(3)
"""What of a text is shown under `set -v`: ALL of it includes what stands after the last line that runs."""


class ScriptReader:
    """Where a running text has come to. `known` gives its next line as long as nothing has to be parsed, `parsed` from
    then on."""

    __slots__ = (
        "_ends",
        "_known",
        "_line",
        "_lines",
        "_options",
        "_parser",
        "_plain",
        "_read",
        "_recorded",
        "_recorder",
        "_sh",
        "_shown",
        "_source",
        "_start",
        "_text",
        "large",
        "lasting",
    )

    def __init__(
        self, sh: ShellState, text: str, line: int, recorded: bool, shown: int, source: ScriptInput | None
    ) -> None:
        """`recorded` text becomes history when the shell keeps one; `shown` says what of it `set -v` repeats."""
        self._sh, self._text, self._line, self._source = sh, text, line, source
        self._recorded, self._shown = recorded, shown
        self._recorder: HistoryRecorder | None = None
        self._parser: Parser | None = None
        self._lines: list[Script] = []
        self._ends: list[int] = []
        self._options: list[Options] = []
        self._read = 0
        self._plain = False
        """Whether what is read may be kept for the next time."""
        self.large = False
        """Whether the line is long enough to be compiled in a thread."""
        self._start = options = sh.syntax_options()
        self._known: ParsedLines | None = None
        if source is None:
            self._known = cache.recall(text, options, line)
            self._plain = self._known is not None or cache.comes_again(text, line)
        self.lasting = self._plain
        """Whether compiled lines are kept for the next run of this text."""

    def known(self) -> Script | None:
        """The next line, if it was read before under what holds now."""
        known, sh = self._known, self._sh
        if known is None:
            return None
        place = self._read
        if place == len(known.lines):
            return None
        options = sh.syntax_options()
        if (
            known.options[place] != options
            or (options.expand_aliases and sh.aliases)
            or self._verbose
            or (self._recorded and "history" in sh.options)
        ):
            return None
        self._read = place + 1
        return known.lines[place]

    @property
    def _verbose(self) -> bool:
        return "verbose" in self._sh.options

    @property
    def over(self) -> bool:
        """Whether all of the text was cached, and all lines were returned; `set -v` still has to show the rest."""
        known = self._known
        return known is not None and known.whole and self._read == len(known.lines) and not self._verbose

    async def parsed(self) -> Script | None:
        """The next line, or None after the last one. Raises SyntaxFailure; what comes after it can be read then."""
        sh = self._sh
        parser = self._parser or self._parse_on(self._text)
        await self._follow(parser)
        recorder = self._recorder
        step = parser.next if recorder is None else partial(recorder.next, parser)
        try:
            # The end of a line is known only once it is parsed: a long text may be one long line.
            self.large = parser.longer(LONG_SCRIPT)
            if not self.large:
                parser.horizon = parser.pos + LONG_SCRIPT
                try:
                    script = step()
                except Unready:
                    self.large = True
            if self.large:
                parser.horizon = sys.maxsize
                try:
                    script = await offload(sh.budget, step)
                finally:
                    parser.horizon = -1  # ends an abandoned parse
        except SyntaxFailure as failure:
            self._plain = False  # what fails is to fail again
            if self._verbose and not parser.aliases:
                within = "unexpected EOF" in failure.message  # all was read to find where something ends
                end = -1 if within else self._text.find("\n", parser.start)
                self._repeat(self._read, len(self._text) if end < 0 else end + 1, LINES)
            raise
        finally:
            if recorder is not None:
                self._text = parser.text
            for number, message in parser.warnings:
                sh.line = number
                sh.complain(message)
                self._plain = False  # to be said again whenever the text runs
            parser.warnings.clear()
        self._show(parser, script is None)
        if script is not None:
            self._add(script, parser)
        return script

    def _parse_on(self, text: str) -> Parser:
        """A parser for what comes after the known lines."""
        known, sh = self._known, self._sh
        options = sh.syntax_options()
        parser = self._parser = Parser(text, None, options, self._line)
        parser.aliases = sh.aliases if options.expand_aliases else {}
        place, self._read, self._known = self._read, 0, None
        if known is not None and place:
            self._lines, self._ends = list(known.lines[:place]), list(known.ends[:place])
            self._options = list(known.options[:place])
            self._read = self._ends[-1]
            parser.read_again(parser.text, self._read)
        return parser

    async def _follow(self, parser: Parser) -> None:
        """Options, aliases and the keeping of history may have changed."""
        sh = self._sh
        options = sh.syntax_options()
        if parser.options != options:
            parser.options = options
            parser.aliases = sh.aliases if options.expand_aliases else {}
        keeps = self._recorded and "history" in sh.options
        if not keeps:
            self._recorder = None
        elif self._recorder is None:
            self._recorder = HistoryRecorder(sh)
            await self._recorder.begin()
        if self._recorder is not None or (options.expand_aliases and sh.aliases):
            self._plain = False

    def _show(self, parser: Parser, ended: bool) -> None:
        """What `set -v` shows of what was read: its lines, without the rest of the line before."""
        begin, self._read = self._read, parser.pos
        self._repeat(begin, len(self._text) if ended else parser.pos, ALL if ended else LINES)

    def _repeat(self, begin: int, end: int, what: int) -> None:
        if not self._verbose or self._shown < what:
            return
        text = self._text
        if begin and text[begin - 1 : begin] != "\n" and text[begin : begin + 1] == "\n":
            begin += 1
        shown = text[begin:end]
        self._sh.err(shown if what == ALL or shown.endswith("\n") else shown + "\n")

    def _add(self, script: Script, parser: Parser) -> None:
        if len(self._lines) >= _LINES:
            self._plain = self.lasting = False
        if not self._plain:
            return
        self._lines.append(script)
        self._ends.append(parser.pos)
        self._options.append(parser.options)
        if len(self._text) - parser.pos < 8 and not self._text[parser.pos :].strip():
            # All is read: what evaluates itself finds its own text parsed.
            self.keep(whole=True)
            self._plain = False

    def keep(self, whole: bool) -> None:
        """Keep what was read for the next time; a text that was left early is not `whole`."""
        if not self._plain or self._parser is None:
            return
        known = ParsedLines(tuple(self._lines), tuple(self._ends), tuple(self._options), whole)
        cache.remember(self._text, self._start, known, self._line)

    # ---------------------------------------------------------------------------------- a script on standard input

    def offer(self) -> None:
        """Leave what follows the line to the commands in it."""
        if self._source is not None and self._parser is not None:
            left = len(self._parser.text) - self._parser.pos
            self._source.offer(left - (not self._text.endswith("\n")))

    async def catch_up(self) -> None:
        """Go on where the commands of the line have left the input."""
        source, parser, sh = self._source, self._parser, self._sh
        if source is not None and parser is not None and await source.moved(sh):
            self._text, self._read = source.text, 0
            options = sh.syntax_options()
            aliases = sh.aliases if options.expand_aliases else None
            self._parser = Parser(self._text, aliases, options, parser.line_at(parser.pos))
