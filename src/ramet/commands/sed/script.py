"""Parse a sed script into a flat list of instructions, with GNU's messages and positions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ramet import patterns
from ramet.commands.sed.program import (
    AFTER_RUN,
    Address,
    Flags,
    Flavour,
    Instruction,
    Kind,
    Piece,
    ScriptError,
    ScriptSource,
    Substitution,
)
from ramet.patterns import Lines, Matcher, PatternError
from ramet.patterns.errors import CLASS_SYNTAX, RECURSIVE_ESCAPE


def parse(sources: list[ScriptSource], flavour: Flavour) -> list[Instruction]:
    parser = _ScriptParser(sources, flavour)
    try:
        return parser.program()
    except ScriptError as error:
        error.written = tuple(parser.written)
        raise


def place_behind(sources: Sequence[ScriptSource]) -> str:
    """Return the position for run-time errors: the end of the script."""
    last = sources[-1]
    if last.name is not None:
        return f"file {last.name} line {last.text.count(chr(10)) + 1 + last.complete}"
    return f"-e expression #{sum(source.name is None for source in sources)}, char 0"


_EXTENSIONS = frozenset("eFvzLQTRW")
"""Commands disabled by --posix."""
_ONE_ADDRESS = frozenset("=aiqQrRl")
_PLAIN = frozenset("dDgGhHnNpPxzF=")
_TEXT_ESCAPES = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_LEAD = re.compile(r"\\+(?=\n)")

_CODE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|d([0-9]{1,3})|o([0-7]{1,3})|.)", re.DOTALL)


def _with_codes(regex: str) -> str:
    """Replace numeric escapes of a regex by their characters, which stay special."""

    def plain(found: re.Match[str]) -> str:
        for digits, base in ((found[1], 16), (found[2], 10), (found[3], 8)):
            if digits:
                return bytes((int(digits, base) & 0xFF,)).decode("utf-8", "surrogateescape")
        return found[0]

    return _CODE.sub(plain, regex) if "\\" in regex else regex


class _ScriptParser:
    def __init__(self, sources: list[ScriptSource], flavour: Flavour) -> None:
        self.sources, self.flavour = sources, flavour
        self.text = "\n".join(source.text for source in sources)
        self.ends: dict[int, bool] = {}
        """Offsets where sources end, and whether a newline was there."""
        end = -1
        for source in sources:
            end += 1 + len(source.text)
            self.ends[end] = source.complete
        self.pos = 0
        self.out: list[Instruction] = []
        self.blocks: list[int] = []
        self.blocks_at: list[int] = []
        """Offsets of the open blocks."""
        self.labels: dict[str, int] = {}
        self.written: list[str] = []
        """Files to write named so far."""
        self.stopped = 0
        """Offset where a search for a delimiter stopped."""

    # ------------------------------------------------------------------ errors

    def error(self, message: str, at: int | None = None, more: int = 0) -> ScriptError:
        """Make an error with GNU's position: characters of the expression, or lines of a file."""
        place = min(self.pos if at is None else at, len(self.text))
        start, number = 0, 0
        for source in self.sources:
            if source.name is None:
                number += 1
            end = start + len(source.text)
            if place <= end or source is self.sources[-1]:
                if source.name is not None:
                    line = self.text.count("\n", start, max(start, place - 1)) + 1
                    return ScriptError(f"file {source.name} line {line}: {message}")
                before = self.text[start:place].encode("utf-8", "surrogateescape")
                return ScriptError(f"-e expression #{number}, char {len(before) + more}: {message}")
            start = end + 1
        return ScriptError(f"-e expression #1, char 0: {message}")

    def unclosed(self) -> ScriptError:
        """Make the error of an open block; only files give its position."""
        place = re.sub(r"char \d+", "char 0", str(self.error("", self.blocks_at[-1])))
        return ScriptError(f"{place}unmatched `{{'")

    def source_end(self) -> int:
        """Return the end of the current source: only inserted text continues after it."""
        return next((end for end in self.ends if end >= self.pos), len(self.text))

    # ------------------------------------------------------------------ characters

    def peek(self) -> str:
        return self.text[self.pos] if self.pos < len(self.text) else ""

    def take(self) -> str:
        char = self.peek()
        self.pos += 1
        return char

    def blanks(self) -> None:
        while self.pos < len(self.text) and self.text[self.pos] in " \t":
            self.pos += 1

    def spaces(self) -> None:
        while self.pos < len(self.text) and self.text[self.pos].isspace():
            self.pos += 1

    def number(self) -> int:
        start = self.pos
        while self.peek().isdecimal():
            self.pos += 1
        return int(self.text[start : self.pos])

    # ------------------------------------------------------------------ grammar

    def program(self) -> list[Instruction]:
        while True:
            while self.pos < len(self.text) and (self.text[self.pos].isspace() or self.text[self.pos] == ";"):
                self.pos += 1
            if self.pos >= len(self.text):
                break
            self.command()
        if self.blocks:
            raise self.unclosed()
        return [self.resolved(instruction) for instruction in self.out]

    def resolved(self, instruction: Instruction) -> Instruction:
        if instruction.name not in "btT" or not instruction.name:
            return instruction
        label = instruction.text.decode("utf-8", "surrogateescape")
        if not label:
            return replace(instruction, target=len(self.out))
        if label not in self.labels:
            raise ScriptError(f"can't find label for jump to `{label}'", 4)
        return replace(instruction, target=self.labels[label])

    def command(self) -> None:
        first = self.address()
        second = None
        if first is not None:
            self.blanks()
            if first.kind in (Kind.PLUS, Kind.MULTIPLE):
                raise self.error("invalid usage of +N or ~N as first address")
            if self.peek() == ",":
                self.pos += 1
                self.blanks()
                second = self.address()
                if second is None:
                    raise self.error("unexpected `,'", self.pos + 1)
            ranged = second is not None and second.kind is Kind.REGEX and not self.flavour.posix
            if first.kind is Kind.ZERO and not ranged and not (second is None and self.peek() == "r"):
                self.blanks()
                self.pos += 1
                raise self.error("invalid usage of line address 0")
        self.blanks()
        negated = False
        if self.peek() == "!":
            self.pos += 1
            negated = True
            self.blanks()
            if self.peek() == "!":
                self.pos += 1
                raise self.error("multiple `!'s")
        name = self.take()
        if not name or (name == "\n" and self.pos - 1 in self.ends):
            self.pos -= 1
            raise self.error("missing command")
        if name == "#":
            if first is not None:
                raise self.error("comments don't accept any addresses")
            end = self.text.find("\n", self.pos)
            self.pos = len(self.text) if end < 0 else end
            return
        if self.flavour.posix and name in _EXTENSIONS:
            raise self.error(f"unknown command: `{name}'")
        if (
            name in _ONE_ADDRESS
            and second is not None
            and (name not in "=aiqQrRl" or name in "qQ" or self.flavour.posix)
        ):
            raise self.error("command only uses one address")
        self.body(Instruction(name, first, second, negated))

    def body(self, head: Instruction) -> None:
        name = head.name
        if name == "{":
            self.blocks.append(len(self.out))
            self.blocks_at.append(self.pos)
            self.out.append(head)
        elif name == "}":
            self.close_block(head)
        elif name == ":":
            self.label(head)
        elif name in "aic":
            self.out.append(replace(head, text=self.inserted()))
        elif name in "btT":
            self.out.append(replace(head, text=self.word(semicolons=True)))
        elif name in "rRwW":
            self.out.append(replace(head, text=self.file_name(name in "wW").encode("utf-8", "surrogateescape")))
        elif name in "qQl":
            self.blanks()
            number = self.number() if self.peek().isdecimal() and not self.flavour.posix else -1
            self.end_of_command()
            self.out.append(replace(head, number=number))
        elif name == "s":
            self.out.append(replace(head, substitution=self.substitution()))
        elif name == "y":
            self.out.append(self.transliteration(head))
        elif name == "e":
            self.forbid_in_sandbox()
            self.blanks()
            command = b""
            if self.peek() in ("", "\n"):
                self.pos += 1
            else:
                command = self.inserted().removesuffix(b"\n")
            self.out.append(replace(head, text=command))
        elif name == "v":
            self.blanks()
            start = self.pos
            version = self.word(semicolons=True).decode("ascii", "replace")
            if version[:1] > "9" or [int(part) for part in version.split(".") if part.isdigit()] > [4, 9]:
                raise self.error("expected newer version of sed", start + len(version))
        elif name in _PLAIN:
            self.end_of_command()
            self.out.append(head)
        else:
            raise self.error(f"unknown command: `{name}'")

    def end_of_command(self) -> None:
        self.blanks()
        char = self.peek()
        if not char or char in "\n;":
            self.pos += 1
        elif char in "}#":
            return
        else:
            self.pos += 1
            raise self.error("extra characters after command")

    def close_block(self, head: Instruction) -> None:
        if not self.blocks:
            raise self.error("unexpected `}'")
        if head.first is not None:
            raise self.error("`}' doesn't want any addresses")
        opened = self.blocks.pop()
        self.blocks_at.pop()
        self.out[opened] = replace(self.out[opened], target=len(self.out))
        self.end_of_command()

    def label(self, head: Instruction) -> None:
        if head.first is not None:
            raise self.error(": doesn't want any addresses")
        self.blanks()
        start = self.pos
        while self.peek() and not self.peek().isspace() and self.peek() not in ";}#":
            self.pos += 1
        label = self.text[start : self.pos]
        if not label:
            raise self.error('":" lacks a label')
        self.labels[label] = len(self.out)

    def word(self, semicolons: bool) -> bytes:
        self.blanks()
        start = self.pos
        while self.peek() and self.peek() != "\n" and not (semicolons and self.peek() in ";}# \t"):
            self.pos += 1
        word = self.text[start : self.pos]
        # A blank ends a label, and another command may follow it.
        self.blanks()
        if self.peek() in ("", "\n", ";"):
            self.pos += 1
        return word.encode("utf-8", "surrogateescape")

    def forbid_in_sandbox(self) -> None:
        if self.flavour.sandbox:
            raise self.error("e/r/w commands disabled in sandbox mode")

    def file_name(self, writes: bool) -> str:
        self.forbid_in_sandbox()
        self.blanks()
        end = self.text.find("\n", self.pos)
        end = len(self.text) if end < 0 else end
        name = self.text[self.pos : end]
        if not name:
            raise self.error("missing filename in r/R/w/W commands", end if end in self.ends else end + 1)
        self.pos = end if end in self.ends else end + 1
        if writes:
            self.written.append(name)
        return name

    # ------------------------------------------------------------------ addresses

    def address(self) -> Address | None:
        char = self.peek()
        if char == "/" or char == "\\":
            self.pos += 1
            delimiter = "/"
            if char == "\\":
                delimiter = self.take()
            regex = self.delimited(delimiter, regex=True)
            if regex is None:
                raise self.error("unterminated address regex", self.stopped)
            icase = multi = False
            while not self.flavour.posix:
                self.blanks()
                flag = self.peek()
                if flag == "I":
                    icase = True
                elif flag == "M":
                    multi = True
                else:
                    break
                self.pos += 1
            return Address(Kind.REGEX, matcher=self.compiled(regex, icase, multi))
        if char.isdecimal() and char.isascii():
            line = self.number()
            self.blanks()
            if self.peek() == "~" and not self.flavour.posix:
                self.pos += 1
                self.blanks()
                step = self.number() if self.peek().isdecimal() else 0
                if step > 0:
                    return Address(Kind.STEP, line, step)
            return Address(Kind.LINE if line else Kind.ZERO, line)
        if char and char in "+~" and not self.flavour.posix:
            self.pos += 1
            amount = self.number() if self.peek().isdecimal() else 0
            return Address(Kind.PLUS if char == "+" else Kind.MULTIPLE, amount)
        if char == "$":
            self.pos += 1
            return Address(Kind.LAST)
        return None

    def compiled(self, regex: str, icase: bool, multi: bool) -> Matcher | None:
        if not regex:
            if icase or multi:
                raise self.error("cannot specify modifiers on empty regexp")
            return None
        try:
            return patterns.compile(
                _with_codes(regex).encode("utf-8", "surrogateescape"),
                replace(self.flavour.dialect, newline_apart=multi),
                icase=icase,
                lines=Lines.MULTI if multi and not self.flavour.null_data else Lines.TEXT,
                utf8=self.flavour.utf8,
                seconds=self.flavour.seconds,
            )
        except PatternError as error:
            if str(error) == CLASS_SYNTAX:
                raise ScriptError(CLASS_SYNTAX, 4) from None
            raise self.error(str(error)) from None

    def delimited(self, delimiter: str, regex: bool) -> str | None:
        """Read up to the delimiter, which a backslash or (in a regex) brackets protect; None without one."""
        text, start, last = self.text, self.pos, self.source_end()
        out: list[str] = []
        while self.pos < last:
            char = text[self.pos]
            if char == delimiter:
                self.pos += 1
                return "".join(out)
            if char == "\\":
                self.pos += 1
                if self.pos >= last:
                    break
                escaped = text[self.pos]
                if escaped == delimiter:
                    # An escaped delimiter loses its backslash, unless that changes its meaning.
                    out.append("\\" + escaped if not regex and escaped == "&" else escaped)
                elif escaped == "\n" and regex:
                    out.append("\n")
                else:
                    out.append("\\" + escaped)
                self.pos += 1
                continue
            if char == "\n":
                break
            if char == "[" and regex:
                end = self.bracket_end(self.pos)
                if end < 0:
                    self.pos = (text.find("\n", self.pos, last) + 1 or last + 1) - 1
                    break
                out.append(text[self.pos : end])
                self.pos = end
                continue
            out.append(char)
            self.pos += 1
        self.stopped = min(self.pos, last)
        self.pos = start
        return None

    def bracket_end(self, at: int) -> int:
        """Return the end of a bracket expression; -1 if it is open."""
        text = self.text
        at += 1
        if text.startswith("^", at):
            at += 1
        if text.startswith("]", at):
            at += 1
        while at < len(text) and text[at] != "]":
            if text[at] == "\n":
                return -1
            if text[at] == "[" and text[at + 1 : at + 2] in (":", ".", "=") and at + 1 < len(text):
                close = text.find(text[at + 1] + "]", at + 2)
                if close < 0:
                    return -1
                at = close + 2
                continue
            at += 1
        return at + 1 if at < len(text) else -1

    # ------------------------------------------------------------------ a, i, c

    def inserted(self) -> bytes:
        """Read the text of a, i or c, on the same line or the next ones."""
        self.blanks()
        nothing = self.ends.get(self.pos) is False
        if nothing or (self.flavour.posix and self.peek() != "\\"):
            raise self.error("expected \\ after `a', `c' or `i'", self.pos + (not nothing))
        at = -1
        if self.peek() == "\\":
            self.pos += 1
            at = self.pos
            self.blanks()
            if self.peek() == "\n":
                self.pos += 1
            elif self.pos >= len(self.text):
                if self.flavour.posix:
                    raise self.error("incomplete command")
                return b""
            else:
                # `a\  text` keeps its blanks.
                self.pos = at
        out: list[str] = []
        if self.pos == at and (lead := _LEAD.match(self.text, at)):
            # The first backslash after `a\` is text and does not escape the newline.
            self.pos = lead.end() + 1
            out.append("\\" * (len(lead[0]) // 2) + "\n")
            if len(lead[0]) % 2:
                return "".join(out).encode()
        while self.pos < len(self.text):
            char = self.take()
            if char == "\n":
                break
            if char == "\\":
                if self.pos >= len(self.text):
                    break
                char = self.take()
                if char in _TEXT_ESCAPES:
                    char = _TEXT_ESCAPES[char]
                elif char in "xdoc":
                    char = self.coded(char)
            out.append(char)
        return ("".join(out) + "\n").encode("utf-8", "surrogateescape")

    def coded(self, letter: str) -> str:
        """A character given by number: `\\x41`, `\\d065`, `\\o101`, `\\cA`; the letter has been read."""
        if letter == "c":
            if self.pos >= len(self.text):
                return "\\"
            char = self.take()
            if char == "\\":
                if self.peek() != "\\":
                    raise ScriptError(RECURSIVE_ESCAPE)
                self.pos += 1
            return chr(ord(char.upper()) ^ 0x40)
        base, width, digits = {
            "x": (16, 2, "0123456789abcdefABCDEF"),
            "d": (10, 3, "0123456789"),
            "o": (8, 3, "01234567"),
        }[letter]
        start = self.pos
        while self.pos - start < width and self.peek() and self.peek() in digits:
            self.pos += 1
        if self.pos == start:
            return letter
        value = int(self.text[start : self.pos], base) & 0xFF
        return bytes((value,)).decode("utf-8", "surrogateescape")

    # ------------------------------------------------------------------ s and y

    def delimiter(self, command: str) -> str:
        """Read the delimiter of `s` or `y`."""
        char = self.take()
        if not char or char == "\n":
            raise self.error(f"unterminated `{command}' command", self.pos + 1)
        lead = char.encode("utf-8", "surrogateescape")[0]
        if self.flavour.utf8 and 0xC2 <= lead <= 0xF4:
            raise self.error("delimiter character is not a single-byte character", self.pos - 1, 1)
        return char

    def substitution(self) -> Substitution:
        delimiter = self.delimiter("s")
        regex = self.delimited(delimiter, regex=True)
        if regex is None:
            raise self.error("unterminated `s' command", self.stopped)
        replacement = self.delimited(delimiter, regex=False)
        if replacement is None:
            raise self.error("unterminated `s' command", self.stopped)
        flags = self.flags()
        matcher = self.compiled(regex, flags.icase, flags.multi)
        pieces = self.pieces(replacement)
        highest = max((piece.group for piece in pieces), default=0)
        if matcher is not None and highest > matcher.groups and self.flavour.lax_references:
            pieces = tuple(piece for piece in pieces if piece.group <= matcher.groups)
        elif matcher is not None and highest > matcher.groups:
            raise self.error(f"invalid reference \\{highest} on `s' command's RHS")
        return Substitution(matcher, pieces, flags.every, flags.number or 1, flags.show, flags.file, flags.run)

    def flags(self) -> Flags:
        every = icase = multi = run = False
        number = show = 0
        while True:
            flag = self.take()
            if flag == "g":
                if every:
                    raise self.error("multiple `g' options to `s' command")
                every = True
            elif flag == "p":
                if show:
                    raise self.error("multiple `p' options to `s' command")
                show = AFTER_RUN if run else 1
            elif flag and flag in "iImMe" and self.flavour.posix:
                raise self.error("unknown option to `s'")
            elif flag in ("i", "I"):
                icase = True
            elif flag in ("m", "M"):
                multi = True
            elif flag == "e":
                self.forbid_in_sandbox()
                run = True
            elif flag == "w":
                return Flags(every, number, show, icase, multi, self.file_name(True), run)
            elif flag.isdecimal() and flag.isascii() and flag:
                if number:
                    raise self.error("multiple number options to `s' command")
                self.pos -= 1
                number = self.number()
                if not number:
                    raise self.error("number option to `s' command may not be zero")
            elif flag == "}" or flag == "#":
                self.pos -= 1
                return Flags(every, number, show, icase, multi, None, run)
            elif not flag or flag in "\n;":
                if not flag or self.pos - 1 in self.ends:
                    self.pos -= 1
                return Flags(every, number, show, icase, multi, None, run)
            elif flag in " \t" or (flag == "\r" and (self.peek() == "\n" or self.ends.get(self.pos))):
                continue
            else:
                raise self.error("unknown option to `s'")

    def pieces(self, text: str) -> tuple[Piece, ...]:
        """Parse a replacement to text, groups and case changes."""
        inner = self.inner(text)
        pieces: list[Piece] = []
        literal: list[str] = []
        case = ""

        def flush(group: int = -1) -> None:
            nonlocal case
            if literal:
                pieces.append(Piece("".join(literal).encode("utf-8", "surrogateescape"), -1, case))
                literal.clear()
                case = ""
            if group >= 0:
                pieces.append(Piece(b"", group, case))
                case = ""

        while inner.pos < len(text):
            char = inner.take()
            if char == "&":
                flush(0)
            elif char == "\\" and inner.pos < len(text):
                char = inner.take()
                if char in "0123456789":
                    flush(int(char))
                elif char in "LUEul" and not self.flavour.posix:
                    flush()
                    # `\L\u` apply together; `\L` cancels an earlier `\u`.
                    case = case + char if char in "ul" else char
                elif char in _TEXT_ESCAPES:
                    literal.append(_TEXT_ESCAPES[char])
                elif char in "xdoc":
                    literal.append(self.coded_in(inner, char))
                else:
                    literal.append(char)
            else:
                literal.append(char)
        flush()
        if case:
            pieces.append(Piece(b"", -1, case))
        return tuple(pieces)

    def transliteration(self, head: Instruction) -> Instruction:
        delimiter = self.delimiter("y")
        source = self.delimited(delimiter, regex=False)
        target = self.delimited(delimiter, regex=False) if source is not None else None
        if source is None or target is None:
            raise self.error("unterminated `y' command", self.stopped)
        left, right = self.characters(source), self.characters(target)
        if len(left) != len(right):
            raise self.error("strings for `y' command are different lengths")
        self.end_of_command()
        if not self.flavour.utf8 or all(char.isascii() for char in left + right):
            table = bytearray(range(256))
            for old, new in reversed(list(zip(left, right, strict=True))):
                table[ord(old)] = ord(new)
            return replace(head, table=bytes(table))
        return replace(head, mapping=tuple(reversed(list(zip(left, right, strict=True)))))

    def characters(self, text: str) -> list[str]:
        """Split an argument of `y` into characters; bytes as Latin-1 without UTF-8."""
        inner = self.inner(text)
        out: list[str] = []
        while inner.pos < len(text):
            char = inner.take()
            if char == "\\" and inner.pos < len(text):
                char = inner.take()
                if char in _TEXT_ESCAPES:
                    char = _TEXT_ESCAPES[char]
                elif char == "c" and inner.pos >= len(text):
                    char = "\\c"
                elif char in "xdoc":
                    char = self.coded_in(inner, char)
            out += char if self.flavour.utf8 else char.encode("utf-8", "surrogateescape").decode("latin-1")
        return out

    def inner(self, text: str) -> _ScriptParser:
        return _ScriptParser([ScriptSource(text)], self.flavour)

    def coded_in(self, inner: _ScriptParser, letter: str) -> str:
        """Read a coded character of an extracted argument; errors get the current position."""
        try:
            return inner.coded(letter)
        except ScriptError as error:
            raise self.error(str(error)) from None
