"""Words and everything inside them: quotes, parameters, substitutions, subscripts, patterns, documents.

One loop (`WordReader._parts`) reads every kind of text; a `Mode` says which characters are special in it. Words
that are
simple enough to be recognized as a whole are kept by their text, so that a common word is parsed once.
"""

from __future__ import annotations

import re
from typing import Literal as OneOf

from ramet.concurrency.offload import checkpoint
from ramet.concurrency.recursion import DEEPEST, room
from ramet.shell.syntax.ansi_c import ansi_decode
from ramet.shell.syntax.error_context import surround
from ramet.shell.syntax.errors import TooDeep, Unready
from ramet.shell.syntax.modes import (
    ARGUMENT,
    ARITH,
    BRACED_SUBSCRIPT,
    COMMAND,
    DOCUMENT,
    DOCUMENT_ARGUMENT,
    DOUBLE,
    DOUBLE_IN_ARGUMENT,
    EXTGLOB,
    LENGTH,
    NESTED_EXTGLOB,
    NESTED_REGEX,
    PATTERN,
    QUOTED_ARGUMENT,
    REGEX,
    RUN,
    RUNS,
    SLICE,
    SUBSCRIPT,
    Mode,
)
from ramet.shell.syntax.nodes import (
    AnsiQuoted,
    ArithSub,
    Bad,
    CommandSub,
    DoubleQuoted,
    Escaped,
    Literal,
    Param,
    Part,
    ProcessSub,
    Script,
    SingleQuoted,
    Word,
)
from ramet.shell.syntax.printer import word_text
from ramet.shell.syntax.scanner import COMPLEX, WORD, Options, Scanner
from ramet.shell.syntax.shortcuts import EMPTY, USUAL_DOLLAR, usual_param, usual_word

_ROOMY = 32
"""Levels that Python's own limit leaves room for in any case."""


class _OpenBrace(Exception):
    """A parameter in a here-document that nothing closes, maybe for a single quote in its operator's word: the
    document fails where it is expanded, whole."""


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+|[0-9]++", re.ASCII).match
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]", re.ASCII).match
_NAME_MORE = re.compile(r"[A-Za-z0-9_]+", re.ASCII).match
_ARITH_RUN = re.compile(r"[^()'\"`\\]{1,65536}+").match
_BRACKET = re.compile(r"[\[\]]").finditer
_BACKTICK_RUN = re.compile(r"[^`\\]{1,65536}+").match
_UNTICK = re.compile(r"\\([$`\\])")
_UNTICK_QUOTED = re.compile(r'\\([$`\\"])')
_PATTERN_OPS = ("##", "#", "%%", "%", "^^", "^", ",,", ",", "~~", "~")
_VALUE_OPS = (":-", ":=", ":?", ":+", "-", "=", "?", "+")
_TRANSFORMS = frozenset("QUuLEPAaKk")

WORDS: dict[str, Word] = {}
"""Words that were read, by their text."""
_WORDS_KEPT = 1024
_WORD_LENGTH = 120


class WordReader(Scanner):
    """Reads words at the scanner's place."""

    def __init__(self, text: str, options: Options, start_line: int) -> None:
        super().__init__(text, options, start_line)
        self.depth = 0
        self._enough = _ROOMY  # levels until something is to be done about them
        self._closers: dict[int, int] = {}  # place after a `(` in arithmetic -> place of its `)`
        self._unclosed: list[Bad] = []  # within quotes of a word that is not read to its end yet
        self._bad: dict[tuple[int, int], int] = {}  # begin of a parameter of no known form, kind of its word -> its `}`

    def script_in_parens(self, opened: int) -> Script:
        """Reads commands up to and with the ``)`` that ends them; ``pos`` is after the ``(``."""
        raise NotImplementedError

    # --------------------------------------------------------------------- depth

    def deeper(self) -> None:
        """One more level of nesting; Python's own limit never shows. The caller takes it back from ``depth``."""
        self.depth += 1
        if self.depth > self._enough:
            if self._enough == DEEPEST:
                raise self.too_deep(DEEPEST)
            self._enough = DEEPEST
            room.__enter__()

    def too_deep(self, level: int) -> TooDeep:
        return TooDeep(f"syntax error: maximum nesting level exceeded ({level})", self.line_at(self.pos))

    def shallow(self) -> None:
        """All that nested is read, or given up."""
        if self._enough == DEEPEST:
            self._enough = _ROOMY
            room.__exit__()

    # --------------------------------------------------------------------- words

    def token_text(self) -> str:
        if self.kind != COMPLEX:
            return super().token_text()
        token = word_text(self.read_word(), bash=True)
        return token if token.isprintable() else word_text(Word((AnsiQuoted(token),)))

    def read_word(self) -> Word:
        """Consumes the word token in sight. The caller peeks."""
        if self.kind == WORD:
            self.pos = self.stop
            return WORDS.get(self.raw) or remember(self.raw)
        self.pos = self.start
        return Word(self._parts(EXTGLOB if self.options.extglob else COMMAND))

    def read_pattern(self) -> Word:
        """The right side of ``[[ x == y ]]``: a word with extended patterns."""
        if self.kind == WORD and not self.text.startswith("(", self.stop):
            return self.read_word()
        self.pos = self.start
        return Word(self._parts(EXTGLOB))

    def read_regex(self) -> Word:
        """The right side of ``[[ x =~ y ]]``."""
        self.pos = self.start
        return Word(self._parts(REGEX))

    def rest_of_word(self) -> Word:
        """The word that continues at ``pos``, possibly empty (the value of an assignment)."""
        parts = self._parts(EXTGLOB if self.options.extglob else COMMAND)
        return Word(parts) if parts else EMPTY

    def subscript(self, braced: bool = False) -> Word | None:
        """Reads ``...]`` after a ``[``; None (and nothing consumed) when no bracket closes it.

        Inside of ``${...}`` an unquoted ``}`` ends the search.
        """
        begin = self.pos
        parts = self._parts(BRACED_SUBSCRIPT if braced else SUBSCRIPT)
        if self.pos >= self.n or self.text[self.pos] != "]":
            self.pos = begin
            return None
        self.pos += 1
        return Word(parts)

    def document(self) -> Word:
        """The whole text as the body of an unquoted here-document."""
        begin = self.pos
        try:
            return Word(self._parts(DOCUMENT))
        except _OpenBrace:
            self.depth = 0
            self.pos = self.n
            return Word((Param("", bad="\0" + self.text[begin : self.n]),))

    def arithmetic(self, end: int) -> Word:
        """The text up to ``end`` as an arithmetic expression."""
        behind, self.n = self.n - end, end
        parts = self._parts(ARITH)
        end = self.n
        self.n += behind
        self.pos = end
        return Word(parts) if parts else EMPTY

    def arith_end(self, pos: int) -> int:
        """Where the ``)`` is that closes the parenthesis before ``pos``; -1 when the text ends first.

        What is found on the way is kept, so that nested expressions are not searched again and again.
        """
        known = self._closers.get(pos)
        if known is not None:
            return known if known < self.n else -1
        text, n, opened = self.text, self.n, [pos]
        while pos < n:
            while m := _ARITH_RUN(text, pos, n):
                pos = m.end()
                checkpoint()
            if pos >= n:
                break
            c = text[pos]
            if c == "(":
                opened.append(pos + 1)
            elif c == ")":
                self._closers[opened.pop()] = pos
                if not opened:
                    return pos
            elif c == "\\":
                pos += 1
            else:
                end = self._quote_end(c, pos)
                if end < 0:
                    raise self.missing(c, pos)
                pos = end
            pos += 1
        return -1

    def _quote_end(self, quote: str, pos: int) -> int:
        """Where the quote that opens at ``pos`` closes, or -1."""
        while True:
            pos = self.text.find(quote, pos + 1, self.n)
            if pos < 0 or quote == "'":
                return pos
            begin = pos
            while self.text[begin - 1] == "\\":
                begin -= 1
            if (pos - begin) % 2 == 0:
                return pos

    # --------------------------------------------------------------------- parts

    def _parts(self, mode: Mode) -> tuple[Part, ...]:
        """Reads up to a stop of ``mode`` or the end of the text, and leaves ``pos`` there."""
        text, n, begin, pos = self.text, self.n, self.pos, self.pos
        bad: list[Bad] | tuple[()] = ()
        run, stops, quoted = RUNS[id(mode)], mode.stops, mode.quoted
        parts: list[Part] = []
        plain = ""
        depth = ternary = 0
        in_single = False  # between the single quotes of "${x:-'...'}"
        active, current = run, mode
        while pos < n:
            if m := active(text, pos, n):
                plain += (found_plain := m[0])
                pos = m.end()
                if pos >= n:
                    break
                if len(found_plain) == RUN:
                    if pos > self.horizon:
                        raise Unready
                    continue
            c = text[pos]
            if c == "\\":
                nxt = text[pos + 1 : pos + 2] if pos + 1 < n else ""
                if nxt == "\n":
                    pos += 2
                elif not nxt or (quoted and nxt not in (mode.escapes or nxt)):
                    plain += c
                    pos += 1
                    if nxt == "'" and mode.paired and not in_single:
                        plain += nxt
                        pos += 1
                else:
                    if plain:
                        parts.append(Literal(plain))
                        plain = ""
                    parts.append(Escaped(nxt))
                    pos += 2
                continue
            if c == "$":
                if pos > self.horizon:
                    raise Unready
                if not len(parts) & 1023:
                    checkpoint()
                found: Part | str
                if in_single and text.startswith("'", pos + 1):
                    plain += c
                    pos += 1
                    continue
                if m := USUAL_DOLLAR(text, pos, n):
                    pos, name = m.end(), m[1]
                    found = usual_param(m[2], m[3], m[4]) if name is None else Param(name, None, "value", "", (), False)
                else:
                    self.pos = pos
                    found = self._dollar(mode)
                    pos = self.pos
                    if self.text is not text:  # an alias in a substitution was replaced by what it stands for
                        text, n = self.text, self.n
                    if isinstance(found, str):
                        plain += found
                        continue
                    if isinstance(found, Param) and isinstance(found.bad, Bad):
                        bad = bad or []
                        bad.append(found.bad)
            elif c == "`":
                self.pos = pos
                found = self._backtick('"' in stops)
                pos = self.pos
            elif c == "'":
                end = text.find("'", pos + 1, n)
                if end > self.horizon:
                    raise Unready
                if quoted:
                    if end < 0 and not in_single and not self.options.posix:
                        raise _OpenBrace if mode.document else self.missing("'", pos)
                    in_single = not in_single and not self.options.posix
                    plain += c
                    pos += 1
                    continue
                if end < 0:
                    raise self.missing("'", pos)
                found = SingleQuoted(text[pos + 1 : end])
                pos = end + 1
            elif c == '"' and '"' not in stops:
                if in_single:
                    pos += 1
                    continue
                self.pos = pos
                found = self._double(False, mode)
                text, n, pos = self.text, self.n, self.pos
            elif c in "<>" and current.procsub and text.startswith("(", pos + 1) and pos + 1 < n:
                self.pos = pos
                found = self._procsub()
                text, n, pos = self.text, self.n, self.pos
            else:
                # Brackets and stops.
                if c == "}" and (mode is BRACED_SUBSCRIPT or mode is SLICE or mode is LENGTH):
                    break
                if in_single:
                    plain += c
                    pos += 1
                    continue
                if depth:
                    if c in "([" and (c in current.opens or current.stops == "()"):
                        depth += 1
                    elif c in ")]" and (c in current.closes or current.stops == "()"):
                        depth -= 1
                        if not depth:
                            active, current = run, mode
                elif c in mode.opens and c:
                    depth = 1
                elif c == "(" and mode.parens:
                    if mode.parens == "extglob":
                        if not plain or plain[-1] not in "?*+@!":
                            break
                        current = NESTED_EXTGLOB
                    else:
                        current = NESTED_REGEX
                    active = RUNS[id(current)]
                    depth = 1
                elif mode.ternary and c == "?":
                    ternary += 1
                elif c == ":" and ternary:
                    ternary -= 1
                elif c in stops:
                    break
                plain += c
                pos += 1
                continue
            if plain:
                parts.append(Literal(plain))
                plain = ""
            parts.append(found)
        if depth and mode.parens and pos >= n:
            raise self.missing(")", self.start if mode is REGEX else None)
        if plain:
            parts.append(Literal(plain))
        if bad or (self._unclosed and '"' not in stops):
            surround(bad, self._unclosed, text[begin:pos], '"' in stops)
        self.pos = pos
        return tuple(parts)

    def _double(self, locale: bool, mode: Mode) -> DoubleQuoted:
        """Reads ``"..."``; ``pos`` is on the first quote."""
        opened = self.pos
        self.pos += 1
        self.deeper()
        parts = self._parts(DOUBLE_IN_ARGUMENT if mode.paired else DOUBLE)
        self.depth -= 1
        if self.pos >= self.n:
            raise self.missing('"', opened)
        self.pos += 1
        return DoubleQuoted(parts, locale)

    def _procsub(self) -> ProcessSub:
        direction: OneOf["<", ">"] = "<" if self.text[self.pos] == "<" else ">"
        opened = self.pos
        self.pos += 2
        body = self.script_in_parens(opened)
        return ProcessSub(direction, body, self.line_at(opened), self.pos - opened)

    def _backtick(self, quoted: bool) -> CommandSub:
        """Reads a command in backticks; its commands are parsed when it runs. Directly within double quotes their
        mark is written with a backslash."""
        opened = self.pos
        text, n, pos = self.text, self.n, opened + 1
        while True:
            while m := _BACKTICK_RUN(text, pos, n):
                pos = m.end()
            if pos >= n:
                raise self.missing("`", opened)
            if text[pos] == "`":
                break
            pos += 2
        self.pos = pos + 1
        written = text[opened + 1 : pos]
        if "\\" not in written:
            return CommandSub(None, written, True, self.line_at(opened))
        source = (_UNTICK_QUOTED if quoted else _UNTICK).sub(r"\1", written)
        return CommandSub(None, source, True, self.line_at(opened), 0, written)

    # ------------------------------------------------------------------- dollars

    def _dollar(self, mode: Mode) -> Part | str:
        """Reads what begins with the ``$`` at ``pos``; the text ``$`` when it begins nothing."""
        text, opened = self.text, self.pos
        pos = opened + 1
        while text.startswith("\\\n", pos):
            pos += 2
        if m := _BARE(text, pos, self.n):
            name, end = m[0], m.end()
            if text.startswith("\\\n", end) and (name[0].isalpha() or name[0] == "_"):
                name, end = self._joined_name(name, end)
            self.pos = end
            return Param(name, braced=False)
        c = text[pos : pos + 1] if pos < self.n else ""
        if c == "{":
            self.pos = pos + 1
            return self._braced(mode, opened)
        if c == "(":
            if text.startswith("(", pos + 1):
                found = self._arith_sub(pos, opened)
                if found is not None:
                    return found
            self.pos = pos + 1
            line = self.line_at(opened)
            body = self.script_in_parens(opened)
            return CommandSub(body, "", False, line, self.pos - opened)
        if c == "[":
            return self._bracket_arith(pos, opened)
        if c == "'" and (mode.ansi or not mode.quoted):
            return self._ansi(pos)
        if c == '"' and (mode.ansi or not mode.quoted):
            self.pos = pos
            return self._double(True, mode)
        self.pos = pos
        return "$"

    def _joined_name(self, name: str, end: int) -> tuple[str, int]:
        """Read on a name that line continuations cut."""
        pos = end
        while self.text.startswith("\\\n", pos):
            pos += 2
            if m := _NAME_MORE(self.text, pos, self.n):
                name += m[0]
                pos = end = m.end()
        return name, end

    def _ansi(self, pos: int) -> AnsiQuoted:
        """Reads ``$'...'``; ``pos`` is on the quote."""
        end = pos + 1
        while True:
            quote = self.text.find("'", end, self.n)
            if quote < 0:
                raise self.missing("'", pos)
            slash = self.text.find("\\", end, quote)
            if slash < 0:
                break
            end = slash + 2
        self.pos = quote + 1
        source = self.text[pos + 1 : quote]
        return AnsiQuoted(ansi_decode(source, self.options.bytewise), source)

    def _arith_sub(self, pos: int, opened: int) -> ArithSub | None:
        """Reads ``$((...))``; None when it is a command substitution that begins with a subshell."""
        end = self.arith_end(pos + 2)
        if end < 0 or self.arith_end(pos + 1) < 0:
            raise self.missing(")", opened)
        if not self.text.startswith(")", end + 1) or end + 1 >= self.n:
            return None
        self.pos = pos + 2
        self.deeper()
        body = self.arithmetic(end)
        self.depth -= 1
        self.pos += 2
        return ArithSub(body)

    def _bracket_arith(self, pos: int, opened: int) -> ArithSub:
        """Reads the old form ``$[...]``."""
        end = self._bracket_end(pos + 1)
        if end < 0:
            raise self.missing("]", opened)
        self.pos = pos + 1
        self.deeper()
        body = self.arithmetic(end)
        self.depth -= 1
        self.pos += 1
        return ArithSub(body, True)

    def _bracket_end(self, pos: int) -> int:
        """Where the ``]`` is that closes the bracket before ``pos``, as `arith_end` finds parentheses; -1 for none."""
        known = self._closers.get(pos)
        if known is not None:
            return known if known < self.n else -1
        opened = [pos]
        for found in _BRACKET(self.text, pos, self.n):
            if found[0] == "[":
                opened.append(found.end())
                continue
            self._closers[opened.pop()] = found.start()
            if not opened:
                return found.start()
        return -1

    # ---------------------------------------------------------------- ${...}

    def _braced(self, mode: Mode, opened: int) -> Param:
        """Reads a parameter after ``${``."""
        argument = ARGUMENT if not mode.quoted else DOCUMENT_ARGUMENT if mode.document else QUOTED_ARGUMENT
        begin = self.pos
        end = self._bad.get((begin, id(argument)), -1) if self._bad else -1
        if end < 0:
            self.deeper()
            param = self._parameter(argument)
            if param is not None and self.text.startswith("}", self.pos) and self.pos < self.n:
                self.depth -= 1
                self.pos += 1
                return param
            # Not a form that bash knows; it says so when the word is expanded.
            self.pos = begin
            self._parts(argument)
            self.depth -= 1
            if self.pos >= self.n:
                raise _OpenBrace if mode.document else self.missing("}", opened)
            end = self._bad[begin, id(argument)] = self.pos
        bad = Bad(self.text[begin:end])
        bad.unclosed = '"' in mode.stops and self._open_subscript(begin)
        self.pos = end + 1
        return Param("", bad=bad)

    def _open_subscript(self, pos: int) -> bool:
        """Whether the parameter has a subscript that its `}` comes before the end of."""
        m = _NAME(self.text, pos + self.text.startswith("!", pos), self.n)
        if m is None or not self.text.startswith("[", m.end()):
            return False
        self.pos = m.end() + 1
        return self.subscript(True) is None

    def _parameter(self, argument: Mode) -> Param | None:
        """The inside of ``${...}`` up to its ``}``; None when it is none of the known forms."""
        text = self.text
        form: OneOf["value", "length", "indirect", "keys", "names"] = "value"
        c, after = text[self.pos : self.pos + 1], text[self.pos + 1 : self.pos + 2]
        named = bool(after) and (after.isalnum() or after == "_")
        special = bool(after) and after in "@*#?-$!" and text.startswith("}", self.pos + 2)
        # By POSIX's rules `${!#}` and `${!?}` are about `$!`.
        if c == "!" and (named or (after and after in ("@*" if self.options.posix else "@*#?"))):
            form = "indirect"
            self.pos += 1
        elif c == "#" and (named or special):
            form = "length"
            self.pos += 1
        name = self._param_name()
        if not name or (name == "#" and text.startswith(("^", ",", "~", "/}"), self.pos)):
            return None
        subscript: Word | OneOf["@", "*"] | None = None
        if text.startswith("[", self.pos) and (name[0].isalpha() or name[0] == "_"):
            self.pos += 1
            found = self.subscript(True)
            if found is None or not found.parts:
                return None
            subscript = "@" if found == _AT else "*" if found == _STAR else found
        if form == "length":
            return Param(name, subscript, form)
        if form == "indirect":
            if text.startswith(("@}", "*}"), self.pos) and subscript is None and not name[0].isdigit():
                self.pos += 1
                return Param(name, None, "names", text[self.pos - 1])
            if isinstance(subscript, str):
                form = "keys"
        return self._operator(name, subscript, form, argument)

    def _param_name(self) -> str:
        text = self.text
        while text.startswith("\\\n", self.pos):
            self.pos += 2
        if m := _NAME(text, self.pos, self.n):
            name, self.pos = m[0], m.end()
            if text.startswith("\\\n", self.pos):
                name, self.pos = self._joined_name(name, self.pos)
                while text.startswith("\\\n", self.pos):
                    self.pos += 2
            return name
        c = text[self.pos : self.pos + 1]
        if c and c in "@*#?$!-" and self.pos < self.n:
            self.pos += 1
            return c
        return ""

    def _operator(
        self,
        name: str,
        subscript: Word | OneOf["@", "*"] | None,
        form: OneOf["value", "length", "indirect", "keys", "names"],
        argument: Mode,
    ) -> Param | None:
        """The operator after a parameter and its operands."""
        text, pos = self.text, self.pos
        if text.startswith("}", pos):
            return Param(name, subscript, form)
        for op in _VALUE_OPS:
            if text.startswith(op, pos):
                self.pos = pos + len(op)
                word = self._argument(argument)
                return Param(name, subscript, form, op, (word,))
        for op in _PATTERN_OPS:
            if text.startswith(op, pos):
                self.pos = pos + len(op)
                word = self._argument(ARGUMENT)
                args = () if not word.parts and op[0] in "^,~" else (word,)
                return Param(name, subscript, form, op, args)
        c = text[pos : pos + 1]
        if c == "/":
            return self._replacement(name, subscript, form)
        if c == ":":
            self.pos = pos + 1
            offset = self._argument(SLICE)
            if text.startswith(":", self.pos) and self.pos < self.n:
                self.pos += 1
                return Param(name, subscript, form, ":", (offset, self._argument(LENGTH)))
            return Param(name, subscript, form, ":", (offset,)) if offset.parts else None
        if c == "@" and text[pos + 1 : pos + 2] in _TRANSFORMS:
            self.pos = pos + 2
            return Param(name, subscript, form, text[pos : pos + 2])
        return None

    def _replacement(
        self,
        name: str,
        subscript: Word | OneOf["@", "*"] | None,
        form: OneOf["value", "length", "indirect", "keys", "names"],
    ) -> Param:
        """``/pattern/replacement``, both read as unquoted words also inside double quotes."""
        op = "/"
        self.pos += 1
        following = self.text[self.pos : self.pos + 1]
        if following and following in "/#%":
            op += following
            self.pos += 1
        if op == "//" and self.text.startswith("/", self.pos):
            # The first character of a pattern that replaces everywhere cannot end it.
            self.pos += 1
            parts = self._parts(PATTERN)
            if parts and isinstance(parts[0], Literal):
                pattern = Word((Literal("/" + parts[0].text), *parts[1:]))
            else:
                pattern = Word((Literal("/"), *parts))
        else:
            pattern = self._argument(PATTERN)
        if self.text.startswith("/", self.pos) and self.pos < self.n:
            self.pos += 1
            return Param(name, subscript, form, op, (pattern, self._argument(ARGUMENT)))
        return Param(name, subscript, form, op, (pattern,))

    def _argument(self, mode: Mode) -> Word:
        parts = self._parts(mode)
        return Word(parts) if parts else EMPTY


def remember(raw: str) -> Word:
    """Parses a simple word; it has no line breaks and no commands, so only its text matters."""
    word = usual_word(raw) or Word(WordReader(raw, Options(), 1)._parts(COMMAND))
    if len(raw) <= _WORD_LENGTH:
        if len(WORDS) >= _WORDS_KEPT:
            WORDS.clear()
        WORDS[raw] = word
    return word


_AT = Word((Literal("@"),))
_STAR = Word((Literal("*"),))
