"""Join the lines of one command to a history entry, as bash does.

- `places` scans a command and returns for each line what decides the separator: the open quote, whether the line
  belongs to a here-document, and the tokens before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_RESERVED: Final = frozenset(
    ("case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select", "then",
     "time", "until", "while", "{", "}", "!", "[[", "]]")
)  # fmt: skip
_OPENS: Final = frozenset(
    ("", "\n", "{", "(", ")", ";", "&", "|", "|&", "&&", "||", ";;", ";&", ";;&", "case", "do", "else", "elif", "if",
     "then", "until", "while", "!", "time", "fi", "done", "esac", "}")
)  # fmt: skip
"""Tokens after which a word may be a reserved one."""
_NO_SEMICOLON: Final = frozenset(
    ("\n", "{", "(", ")", ";", "&", "|", "case", "do", "else", "if", ";;", ";&", ";;&", "then", "until", "while", "&&",
     "||", "in")
)  # fmt: skip
"""Tokens that no semicolon may follow."""
_OPERATOR: Final = re.compile(
    r";;&|;;|;&|;|&&|&>>|&>|&|\|\||\|&|\||<<<|<<-|<<|<&|<>|<(?!\()|>>|>&|>\||>(?!\()|\(|\)"
).match
_PLAIN: Final = re.compile(r"[^ \t\n\"'`$\\|&;()<>#?*+@!]+").match
_WORD: Final = r"[ \t]*((?:[^ \t\n\"'\\|&;()<>]|\\.|'[^'\n]*'|\"[^\"\n]*\")+)"
_DOCUMENT_WORD: Final = re.compile(_WORD).match
_DOCUMENT: Final = re.compile(r"<<(?!<)(-?)" + _WORD).match
_ODD: Final = re.compile(r"(?<!\\)(?:\\\\)*\\\Z").search
_UNQUOTED: Final = re.compile(r"\\(.)|['\"]")


@dataclass(slots=True)
class Line:
    """A line of a command, and what is known where it begins."""

    text: str
    quote: str = ""
    """The quote or bracket that is open: `'`, `"`, a backtick, `(` or `{`."""
    document: int = 0
    """1 for the first line of a here-document, 2 for its others."""
    before: str = ""
    """The token before the newline."""
    earlier: str = ""
    """The token before that."""
    assigning: bool = False
    in_case: bool = False
    continued: bool = False
    """Whether the next line of its document goes on where it ends."""
    comment: int = 0
    """1 when it is nothing but a comment, 2 when it ends in one."""


class _Reader:
    """Goes through a command once."""

    def __init__(self, text: str) -> None:
        self.text, self.n, self.i = text, len(text), 0
        self.tokens = ["", "", ""]
        self.lines: list[Line] = []
        self.documents: list[tuple[str, bool, bool]] = []
        """Where documents end, whether tabs are dropped, and whether backslashes join their lines."""
        self.cases = 0
        self.assigning = 0
        self._begin("")

    def _begin(self, quote: str, document: int = 0) -> None:
        end = self.text.find("\n", self.i)
        line = self.text[self.i : self.n if end < 0 else end]
        self.lines.append(
            Line(line, quote, document, self.tokens[1], self.tokens[0], self.assigning > 0, self.cases > 0)
        )

    def _token(self, name: str) -> None:
        self.tokens = [self.tokens[1], self.tokens[2], name]

    def run(self) -> list[Line]:
        text, n = self.text, self.n
        while self.i < n:
            char = text[self.i]
            if char in " \t":
                self.i += 1
            elif char == "\n":
                self.i += 1
                self._token("\n")
                if self.documents:
                    self._bodies()
                if self.i < n:
                    self._begin("")
            elif text.startswith("\\\n", self.i):
                self.i += 2
                if self.i < n:
                    self._begin("")
            elif char == "#":
                bare = not self.lines[-1].text.lstrip(" \t").startswith("#")
                self.lines[-1].comment = 2 if bare else 1
                end = text.find("\n", self.i)
                self.i = n if end < 0 else end
            elif (found := _OPERATOR(text, self.i)) is not None:
                self._operator(found[0])
            else:
                self._word()
        return self.lines

    def _operator(self, name: str) -> None:
        if name == "(" and self.text.startswith("((", self.i) and self.tokens[2] in _OPENS | {"for"}:
            self._inside(")", "", self.i + 2, 2)
            self._token("((")
            return
        self.i += len(name)
        if name in ("<<", "<<-"):
            word = _DOCUMENT_WORD(self.text, self.i)
            if word is not None:
                self._document(word[1], name == "<<-")
                self.i = word.end()
                self._token(name)
                self._token("word")
                return
        if self.assigning:
            self.assigning += (name == "(") - (name == ")")
        self._token(name)

    def _document(self, word: str, tabs: bool) -> None:
        end = _UNQUOTED.sub(r"\1", word)
        self.documents.append((end, tabs, end == word))

    def _bodies(self) -> None:
        first = 1
        for end, tabs, joins in self.documents:
            whole = ""
            while self.i < self.n:
                self._begin("", first)
                first = 2
                line = self.lines[-1]
                self.i = min(self.i + len(line.text) + 1, self.n)
                if joins and _ODD(line.text):
                    line.text, line.continued = line.text[:-1], True
                    whole += line.text
                    continue
                whole += line.text
                if (whole.lstrip("\t") if tabs else whole) == end:
                    break
                whole = ""
        self.documents.clear()

    def _word(self) -> None:
        begin = self.i
        text, n = self.text, self.n
        while self.i < n:
            char = text[self.i]
            plain = _PLAIN(text, self.i)
            if plain is not None:
                self.i = plain.end()
            elif char == "\\":
                self.i += 2
                if text.startswith("\n", self.i - 1) and self.i < n:
                    self._begin("")
            elif char in "'\"`":
                escapes = char == "'" and text.startswith("$'", self.i - 1) and self.i > 0
                self._quoted(char, char, escapes)
            elif char == "$" and text[self.i + 1 : self.i + 2] in ("(", "{") and self.i + 1 < n:
                self._inside(")" if text[self.i + 1] == "(" else "}", text[self.i + 1], self.i + 2)
            elif char in "<>?*+@!" and text.startswith("(", self.i + 1):
                self._inside(")", "(", self.i + 2)
            elif char in " \t\n|&;()<>":
                break
            else:
                self.i += 1
        word = text[begin : self.i]
        if text.startswith("(", self.i) and word.endswith("=") and word[:1].isalpha():
            self.assigning += 1
            self.i += 1
            self._token("(")
            return
        self._token(self._kind(word))

    def _kind(self, word: str) -> str:
        earlier, before = self.tokens[1], self.tokens[2]
        if word not in _RESERVED or self.assigning:
            return "word"
        if earlier in ("for", "case", "select") and before == "word" and word in ("in", "do"):
            if earlier == "case":
                self.cases += 1
            return word
        if word == "in" and before == "\n" and earlier == "word" and self.tokens[0] in ("for", "case", "select"):
            self.cases += self.tokens[0] == "case"
            return word
        if before not in _OPENS and not (word == "{" and before in ("word", ")")):
            return "word"
        if word == "esac":
            self.cases = max(self.cases - 1, 0)
        return word

    def _quoted(self, close: str, quote: str, escapes: bool = False) -> None:
        """Past a text in quotes; lines that begin in it know of the quote."""
        text, n = self.text, self.n
        self.i += 1
        while self.i < n and text[self.i] != close:
            char = text[self.i]
            if char == "\n":
                self.i += 1
                self._begin(quote)
            elif char == "\\" and (close != "'" or escapes):
                self.i += 2
                if text.startswith("\n", self.i - 1):
                    self._begin(quote)
            elif close == '"' and char == "$" and text[self.i + 1 : self.i + 2] in ("(", "{") and self.i + 1 < n:
                self._inside(")" if text[self.i + 1] == "(" else "}", quote, self.i + 2)
            elif close == '"' and char == "`":
                self._quoted("`", quote)
            else:
                self.i += 1
        self.i = min(self.i + 1, n)

    def _inside(self, close: str, quote: str, start: int, depth: int = 1) -> None:
        """Past a substitution or an expression in brackets."""
        opening = "(" if close == ")" else "{"
        commands = close == ")" and depth == 1
        outer, self.documents = self.documents, []
        self.i = start
        self._through(close, opening, quote, depth, commands)
        self.documents = outer

    def _through(self, close: str, opening: str, quote: str, depth: int, commands: bool) -> None:
        text, n = self.text, self.n
        while self.i < n:
            char = text[self.i]
            if char == close:
                depth -= 1
                self.i += 1
                if not depth:
                    return
            elif char == "\n":
                self.i += 1
                if self.documents:
                    self._bodies()
                if self.i < n:
                    self._begin(quote)
            elif commands and (found := _DOCUMENT(text, self.i)) is not None:
                self._document(found[2], found[1] == "-")
                self.i = found.end()
            elif char in "'\"`" and not (char == "'" and close == "}" and quote == '"'):
                self._quoted(char, char if quote != '"' else quote)
            elif char == "\\":
                self.i += 2
                if text.startswith("\n", self.i - 1):
                    self._begin(quote)
            else:
                depth += char == opening
                self.i += 1
        self.i = n


def places(command: str) -> list[Line]:
    """The lines of a command with what is known where each of them begins."""
    return _Reader(command).run()


def joined(lines: list[Line], literal: bool) -> str:
    """All lines as one entry, as `cmdhist` and `lithist` want it."""
    entry = lines[0].text
    comment = lines[0].comment != 0
    for line in lines[1:]:
        text = line.text
        quoted = bool(line.quote)
        if not text and not line.document and not quoted and not _between(line).startswith(";"):
            continue
        if line.comment == 1 and not (line.document or literal or quoted):
            comment = True
            continue
        if line.document and not line.continued:
            text += "\n"
        if line.document == 2:
            between = ""
        elif comment or literal:
            between = "\n"
        else:
            between = _between(line)
        if not quoted and entry.endswith("\\") and not entry.endswith("\\\\"):
            entry, between = entry[:-1], ""
        if not quoted and entry.endswith("\n") and between.startswith(";"):
            between = between[1:]
        entry += between + text
        comment = line.comment != 0
    return entry


def _between(line: Line) -> str:
    """What stands between a line and the one before it."""
    if line.quote or line.document:
        return "\n"
    if line.assigning:
        return " "
    if line.before == ")":
        return " " if line.earlier == "(" or line.in_case else "; "
    if line.before == "word" and line.earlier == "function":
        return " "
    if "<<" in line.text:
        return "\n"
    if line.before == "word" and line.earlier == "for":
        return " " if line.text.lstrip(" \t").startswith("in") else ";"
    if line.before == "word" and line.earlier == "case":
        return " "
    return " " if line.before in _NO_SEMICOLON else "; "


def separate(lines: list[Line]) -> list[str]:
    """Every line as an entry, as without `cmdhist`."""
    return [
        line.text + ("\n" if line.document else "")
        for place, line in enumerate(lines)
        if not place
        or ((line.text or line.document or _between(line).startswith(";")) and (line.comment != 1 or line.document))
    ]
