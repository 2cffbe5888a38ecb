"""Perl-style patterns (`grep -P`, `rg`, jq), rewritten for `regex`, or for RE2 if the meaning is the same.

Every construct is parsed here; nothing that an engine would read differently is passed through.
"""

from __future__ import annotations

import re

from ramet.concurrency.offload import checkpoint
from ramet.patterns import size_limits as bounds
from ramet.patterns.errors import PatternError
from ramet.patterns.perl_reader import NO_NAME_END, TOKEN, UNSUPPORTED, NotForRe2, Reader, Scope, Style
from ramet.patterns.perl_sets import ESCAPES, Members, point, spelled

_QUANTIFIER = re.compile(r"(?:[*+?]|\{(\d+)(?:(,)(\d*))?\})([?+]?)")
_FLAGS = re.compile(r"\(\?(\^?)([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)])")
_NAMED = re.compile(r"\(\?(?:P?<([^>]*)>|'([^']*)')")
_CALL = re.compile(r"\(\?(?:R|([+-]?)(\d+)|(?:&|P>)(\w+))\)")
_CONDITION = re.compile(r"\(\?\((?:<(\w+)>|'(\w+)'|([+-]?)(\d+)|(\w+))\)")
_CALLOUT = re.compile(r"\(\?C(?:\d*|\"[^\"]*\")\)")
_START = re.compile(r"\(\*(?:UTF8?|UCP|CR|LF|CRLF|ANY|ANYCRLF|NUL|BSR_\w+|NO_\w+|NOTEMPTY\w*|LIMIT_\w+=\d+)\)")
_LITERAL = re.compile(r"\w(?![*?{])")
_VERB = re.compile(r"\(\*(\w*)(:[^)]*)?\)")
_WORDY = re.compile(r"\(\*(\w+):")
_ASSERTIONS = {
    "pla": "(?=",
    "positive_lookahead": "(?=",
    "nla": "(?!",
    "negative_lookahead": "(?!",
    "plb": "(?<=",
    "positive_lookbehind": "(?<=",
    "nlb": "(?<!",
    "negative_lookbehind": "(?<!",
    "atomic": "(?>",
    "sr": "(?:",
    "script_run": "(?:",
    "asr": "(?>",
    "atomic_script_run": "(?>",
}
_ACCEPTED = "ramet_accepted"
_NO_REPEAT = "quantifier does not follow a repeatable item"
_TOO_LARGE = "regular expression is too large"
_DEEPEST = 250
"""Groups within groups that PCRE reads."""
_NO_GROUP = "reference to non-existent subpattern"
_WORD = "[0-9A-Za-z_]"
_BOUNDARY = f"(?:(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD}))"
_INSIDE = f"(?:(?<={_WORD})(?={_WORD})|(?<!{_WORD})(?!{_WORD}))"


class _Rewriter(Reader):
    # ------------------------------------------------------------------ the walk

    def run(self) -> str:
        pattern = self.pattern
        while found := _START.match(pattern, self.pos):
            if "UCP" in found[0]:
                self.style = self.style._replace(unicode=True)
            self.pos = found.end()
        if len(pattern) > bounds.LENGTH or self.total > bounds.GROUPS:
            raise PatternError(_TOO_LARGE)
        while self.pos < len(pattern):
            checkpoint()
            self.step(pattern[self.pos])
        if len(self.scopes) > 1:
            raise PatternError("missing closing parenthesis")
        self.close()
        return "".join(self.out)

    def step(self, char: str) -> None:
        scope = self.scopes[-1]
        if char == "\\":
            self.escape()
        elif char == "[":
            self.set()
        elif char == "(":
            self.group()
        elif char == ")":
            self.pos += 1
            if len(self.scopes) == 1:
                raise PatternError("unmatched closing parenthesis")
            self.close()
            self.emit(")")
            self.scopes[-1].units += scope.units
            self.scopes[-1].options += scope.options
            self.last_units, self.last_options = scope.units, scope.options
            if scope.accepts and not scope.looks:
                self.skip_accepted()
        elif char == "|":
            self.pos += 1
            scope.choices += 1
            self.close_flags()
            self.emit("|" + "".join(scope.opened), repeatable=False)
            scope.start, scope.flags = len(self.out), len(scope.opened)
        elif char in "*+?{":
            self.quantifier()
        elif char in "^$":
            self.pos += 1
            whole = not (self.style.lines or self.style.unicode or self.style.re2 or scope.multiline)
            # In one text the end is the end, and not a newline before it.
            self.emit("\\Z" if char == "$" and whole else char, repeatable=self.style.unicode)
        elif char == ".":
            self.pos += 1
            self.emit(self.dot(scope.dotall))
        elif scope.extended and char in " \t\n\r\f\v":
            self.pos += 1
        elif scope.extended and char == "#":
            stop = self.pattern.find("\n", self.pos)
            self.pos = len(self.pattern) if stop < 0 else stop + 1
        else:
            self.pos += 1
            self.emit(self.literal(char))

    def close_flags(self) -> None:
        """The end of an alternative."""
        scope = self.scopes[-1]
        for place in scope.thens if scope.choices else ():
            self.out[scope.start] = "(?>" + self.out[scope.start]
            self.out[place] += ")"
        if scope.choices:
            scope.thens.clear()
            if scope.inner:
                raise PatternError("(*THEN) is not supported in a group without alternatives")
        self.out.append(")" * (len(scope.opened) + scope.closers))
        scope.closers = 0

    def close(self) -> None:
        """The end of a group."""
        self.close_flags()
        scope = self.scopes.pop()
        places = scope.thens + scope.inner
        if not places:
            return
        if scope.looks:
            raise PatternError("(*THEN) is not supported in an assertion without alternatives")
        if self.scopes:
            self.scopes[-1].inner += places
            return
        for place in places:  # without alternatives around it, (*THEN) is (*PRUNE)
            self.out[place] += "(*PRUNE)"

    def skip_accepted(self) -> None:
        """What follows a group that may have ended the match counts only if it has not."""
        found = _QUANTIFIER.match(self.pattern, self.pos)
        if found is not None or self.refers():
            raise PatternError("(*ACCEPT) is not supported in a group that is repeated or referred to")
        scope = self.scopes[-1]
        self.emit(f"(?({_ACCEPTED})|", repeatable=False)
        scope.closers += 1
        scope.accepts = True

    def refers(self) -> bool:
        """Whether groups are named by number: one more would move them."""
        return re.search(r"\\[1-9g]|\(\?(?:[+-]?\d|R|\([+-]?\d)", self.pattern) is not None

    # ------------------------------------------------------------------ quantifiers

    def quantifier(self) -> None:
        found = _QUANTIFIER.match(self.pattern, self.pos)
        if found is None:
            self.pos += 1
            self.emit("\\{")
            return
        self.pos = found.end()
        if not self.repeatable:
            raise PatternError(_NO_REPEAT)
        low, comma, high, suffix = found.groups()
        for bound in (low, high):
            if bound and int(bound) > 65535:
                raise PatternError("number too big in {} quantifier")
        if low and comma and high and int(low) > int(high):
            raise PatternError("numbers out of order in {} quantifier")
        self.repeat(int(low or 0), int(high or low or 1))
        if suffix == "+":
            self.only_regex()
        elif self.scopes[-1].ungreedy:
            suffix = "" if suffix else "?"
        self.emit(found[0][: len(found[0]) - len(found[4])] + suffix, repeatable=False)

    def repeat(self, low: int, high: int) -> None:
        """Engines write out what is repeated a number of times."""
        scope = self.scopes[-1]
        scope.units += self.last_units * max(0, high - 1)
        scope.options += self.last_options * max(0, high - 1) + high - low
        if scope.units > bounds.UNITS or scope.options > bounds.OPTIONS:
            raise PatternError(_TOO_LARGE)

    # ------------------------------------------------------------------ groups

    def group(self) -> None:
        pattern, pos = self.pattern, self.pos
        if pattern.startswith("(*", pos):
            self.verb()
            return
        if not pattern.startswith("(?", pos):
            self.groups += 1
            self.open("(", 1)
            return
        if pattern.startswith("(?#", pos):
            stop = pattern.find(")", pos)
            if stop < 0:
                raise PatternError("missing ) after (?# comment")
            self.pos = stop + 1
            return
        for start in ("(?:", "(?=", "(?!", "(?>", "(?|", "(?<=", "(?<!"):
            if pattern.startswith(start, pos):
                if start != "(?:":
                    self.only_regex()
                self.open(start, len(start))
                return
        self.special_group()

    def open(self, start: str, size: int) -> None:
        self.pos += size
        if len(self.scopes) > _DEEPEST:
            raise PatternError("parentheses are too deeply nested")
        above = self.scopes[-1]
        self.scopes.append(Scope(above.extended, above.spaced_sets, above.dotall, above.ungreedy, above.multiline))
        self.emit(start, repeatable=False)
        self.scopes[-1].looks = start in ("(?=", "(?!", "(?<=", "(?<!")
        self.scopes[-1].start = len(self.out)

    def special_group(self) -> None:
        pattern, pos = self.pattern, self.pos
        if found := _NAMED.match(pattern, pos):
            name = found[1] if found[1] is not None else found[2]
            self.name(name)
            self.groups += 1
            self.open(f"(?P<{name}>", len(found[0]))
        elif found := re.compile(r"\(\?P=(\w+)\)").match(pattern, pos):
            self.only_regex()
            self.pos = found.end()
            self.emit(f"(?P={found[1]})")
        elif found := _CALL.match(pattern, pos):
            self.pos = found.end()
            self.call(found[3] or str(self.number(found[1] or "", int(found[2] or 0))))
        elif found := _CONDITION.match(pattern, pos):
            self.only_regex()
            what = found[1] or found[2] or found[5] or str(self.number(found[3], int(found[4])))
            self.open(f"(?({what})", len(found[0]))
        elif pattern.startswith("(?(?", pos):
            self.only_regex()
            self.emit("(?", repeatable=False)
            self.pos += 2
            above = self.scopes[-1]
            self.scopes.append(Scope(above.extended, above.spaced_sets, above.dotall, above.ungreedy, above.multiline))
            self.group()
        elif found := _CALLOUT.match(pattern, pos):
            self.pos = found.end()
        elif found := _FLAGS.match(pattern, pos):
            self.flags(found)
        else:
            self.bad_group()

    def bad_group(self) -> None:
        rest = self.pattern[self.pos + 2 :]
        if (re.fullmatch(r"[\^a-zA-Z-]*", rest) and rest != "R") or re.fullmatch(r"[+-]?\d+", rest):
            raise PatternError("missing closing parenthesis")
        if rest.startswith(("<", "'", "P<")):
            named = rest.lstrip("P")[1:]
            raise PatternError(NO_NAME_END if named[:1].isalnum() else "subpattern name expected")
        if rest.startswith("R"):
            raise PatternError("(?R (recursive pattern call) must be followed by a closing parenthesis")
        if rest.startswith("P"):
            raise PatternError("unrecognized character after (?P")
        raise PatternError("unrecognized character after (? or (?-")

    def name(self, name: str) -> None:
        if not name:
            raise PatternError("subpattern name expected")
        if name[0].isdigit():
            raise PatternError("subpattern name must start with a non-digit")
        if not name.isidentifier():
            raise PatternError(NO_NAME_END)

    def number(self, sign: str, number: int) -> int:
        if sign == "-":
            number = self.groups + 1 - number
            if number < 1:
                raise PatternError(_NO_GROUP)
        elif sign == "+":
            number += self.groups
        if number > self.total:
            raise PatternError(_NO_GROUP)
        return number

    def call(self, what: str) -> None:
        self.only_regex()
        self.emit(f"(?&{what})" if not what.isdigit() else "(?R)" if what == "0" else f"(?{what})")

    def flags(self, found: re.Match[str]) -> None:
        reset, on, off = found[1], found[2], found[3] or ""
        known = set("imsxnJU")
        if not (set(on) | set(off)) <= known:
            raise PatternError("unrecognized character after (? or (?-")
        scoped = found[4] == ":"
        if scoped:
            self.open("", len(found[0]))
        else:
            self.pos = found.end()
            self.repeatable = False
        scope = self.scopes[-1]
        if reset:
            off += "imsx"
        for flag, value in ((flag, flag in on) for flag in on + off):
            if flag == "x":
                scope.extended = value
                scope.spaced_sets = value and "xx" in on
            elif flag == "s":
                scope.dotall = value
            elif flag == "U":
                scope.ungreedy = value
            elif flag == "m":
                scope.multiline = value
        wanted = "i" if self.style.lines else "im"
        turned_on = "".join(flag for flag in wanted if flag in on)
        turned_off = "".join(flag for flag in wanted if flag in off and flag not in on)
        start = f"(?{turned_on}{'-' + turned_off if turned_off else ''}:"
        if scoped:
            self.out.append(start)
        elif turned_on or turned_off:
            self.out.append(start)
            scope.opened.append(start)
            if scope.start == len(self.out) - 1:
                scope.start, scope.flags = len(self.out), len(scope.opened)

    def verb(self) -> None:
        found = _VERB.match(self.pattern, self.pos)
        if found is None:
            wordy = _WORDY.match(self.pattern, self.pos)
            start = _ASSERTIONS.get(wordy[1]) if wordy else None
            if wordy is None or start is None:
                if self.pos + 2 >= len(self.pattern):
                    raise PatternError(_NO_REPEAT)
                raise PatternError("(*VERB) not recognized or malformed")
            self.only_regex()
            self.open(start, len(wordy[0]))
            return
        name = found[1]
        if name in _ASSERTIONS and found[2]:
            self.only_regex()
            self.open(_ASSERTIONS[name], len(name) + 3)
            return
        self.pos = found.end()
        if name in ("", "MARK"):
            return
        self.only_regex()
        if name in ("F", "FAIL"):
            self.emit("(?!)", repeatable=False)
        elif name in ("SKIP", "PRUNE"):
            self.emit(f"(*{name})", repeatable=False)
        elif name == "COMMIT" and not any(self.out) and _LITERAL.match(self.pattern, self.pos):
            return  # a search that knows what a match begins with starts there
        elif name == "COMMIT":
            # Backtracking to here means failure: the next attempt starts at the end of the line.
            rest = "[^\\n]*" if self.style.lines else "(?s:.*)"
            self.emit(f"(?:|{rest}(*SKIP)(?!))", repeatable=False)
        elif name == "ACCEPT":
            self.accept()
        elif name == "THEN":
            scope = self.scopes[-1]
            if scope.closers or len(scope.opened) > scope.flags:
                raise PatternError("(*THEN) is not supported behind (*ACCEPT) or flags")
            self.emit("", repeatable=False)
            scope.thens.append(len(self.out) - 1)
        else:
            raise PatternError("(*VERB) not recognized or malformed")

    def accept(self) -> None:
        """Nothing more is asked for: what is left of the alternative may be nothing, which is tried first."""
        scope = self.scopes[-1]
        if len(self.scopes) > 1 and not scope.looks:
            self.emit(f"(?P<{_ACCEPTED}>)")
            scope.accepts = True
        self.emit("(?:|", repeatable=False)
        scope.closers += 1

    # ------------------------------------------------------------------ escapes

    def escape(self) -> None:
        pattern, pos = self.pattern, self.pos
        if pos + 1 >= len(pattern):
            raise PatternError("\\ at end of pattern")
        char = pattern[pos + 1]
        after = pos + 2
        if char == "Q":
            stop = pattern.find("\\E", after)
            for quoted in pattern[after : stop if stop >= 0 else len(pattern)]:
                self.emit(self.literal(quoted))
            self.pos = stop + 2 if stop >= 0 else len(pattern)
            return
        if char == "E":
            self.pos = after
            return
        code = self.code()
        if code is not None:
            self.emit(self.literal(chr(code)) if code < 128 else point(code))
            return
        self.pos = after
        lower = char.lower()
        if char in "123456789":
            self.pos = pos + 1
            self.backreference()
        elif lower in ESCAPES:
            self.emit(self.class_escape(char))
        elif char in "bBAzZGK":
            self.assertion(char)
        elif lower == "p":
            self.emit(self.property(char == "P"))
        elif char == "N":
            self.emit(self.dot(False))
        elif char == "R":
            self.only_regex()
            lone = spelled(Members(list(ESCAPES["v"]), []), False, self.never, self.last)
            self.emit(lone if self.style.lines else f"(?>\\r\\n|{lone})")
        elif char == "X":
            self.only_regex()
            # A carriage return and the newline behind it are one, unless the newline ends the line.
            self.emit("(?:\\r|(?!\\n)\\X)" if self.style.lines else "\\X")
        elif char == "C":
            self.emit(self.dot(True))
        elif char == "g":
            self.group_reference()
        elif char == "k":
            self.named_reference()
        elif char in "FLlUu":
            raise PatternError(UNSUPPORTED)
        elif char.isalnum():
            raise PatternError("unrecognized character follows \\")
        else:
            self.emit(self.literal(char))

    def assertion(self, char: str) -> None:
        lines, wide = self.style.lines, self.style.text and not self.style.unicode
        text = "\\" + char
        if char in "bB" and wide:
            text = _BOUNDARY if char == "b" else _INSIDE
        elif char == "A" and lines:
            text = "^"
        elif char in "zZ":
            text = "$" if lines else "\\z" if self.style.re2 else "\\Z"
            if char == "Z" and not lines:
                self.only_regex()
                text = "(?=\\n?\\Z)"
        elif char in "GK":
            self.only_regex()
            if char == "G" and lines:
                text = "(?:^|\\G)"
        self.emit(text, repeatable=self.style.unicode)

    # ------------------------------------------------------------------ references

    def backreference(self) -> None:
        found = re.compile(r"\d+").match(self.pattern, self.pos)
        assert found is not None
        self.pos = found.end()
        self.reference(int(found[0]))

    def reference(self, number: int) -> None:
        self.only_regex()
        if not 1 <= number <= self.total:
            raise PatternError(_NO_GROUP)
        self.emit(f"(?:\\{number})")

    def group_reference(self) -> None:
        within = self.delimited()
        if within is None:
            found = re.compile(r"([+-]?)(\d+)").match(self.pattern, self.pos)
            if found is None:
                raise PatternError(
                    "a numbered reference must not be zero"
                    if self.pos < len(self.pattern) and self.pattern[self.pos] == "0"
                    else "\\g is not followed by a braced, angle-bracketed, or quoted name/number or by a plain number"
                )
            self.pos = found.end()
            self.reference(self.number(found[1], int(found[2])))
            return
        opening, text = within
        number = re.fullmatch(r"([+-]?)(\d+)", text)
        if opening != "{":
            self.call(str(self.number(number[1], int(number[2]))) if number else text)
        elif number:
            self.reference(self.number(number[1], int(number[2])))
        else:
            self.only_regex()
            self.emit(f"(?P={text})")

    def named_reference(self) -> None:
        within = self.delimited()
        if within is None:
            raise PatternError("\\k is not followed by a braced, angle-bracketed, or quoted name")
        self.only_regex()
        self.emit(f"(?P={within[1]})")


def rewrite(pattern: str, style: Style) -> str:
    """The same pattern in the spelling of the `regex` module, or of RE2; PatternError when it is not valid."""
    return _Rewriter(pattern, style).run()


def whole_line(pattern: str) -> str:
    """The same pattern for whole lines only; what it begins with for all of it stays there, what it quotes ends."""
    start = 0
    while found := _START.match(pattern, start):
        start = found.end()
    return f"{pattern[:start]}^(?:{pattern[start:]}\\E)$"


def flaw(pattern: bytes) -> str:
    """What is wrong with the first character of a pattern that is none in UTF-8."""
    try:
        pattern.decode()
    except UnicodeDecodeError as error:
        rest = pattern[error.start :]
    first = rest[0]
    if first < 0xC0:
        return "UTF-8 error: isolated byte with 0x80 bit set"
    if first >= 0xFE:
        return "UTF-8 error: illegal byte (0xfe or 0xff)"
    size = next(size for size in range(2, 7) if not first << size & 0x80)
    for place, byte in enumerate(rest[1:size], 2):
        if byte & 0xC0 != 0x80:
            return f"UTF-8 error: byte {place} top bits not 0x80"
    missing = size - len(rest)
    if missing > 0:
        return f"UTF-8 error: {missing} byte{'s' if missing > 1 else ''} missing at end"
    return "UTF-8 error: code point is not defined or overlong"


_GROUP_NAME = re.compile(r"\(\?(?:P?<|')(\w+)")


def group_names(pattern: str) -> dict[str, int]:
    """The numbers of the groups that have names."""
    names: dict[str, int] = {}
    number = 0
    for found in TOKEN.finditer(pattern):
        if found[1]:
            number += 1
            named = _GROUP_NAME.match(pattern, found.start())
            if named:
                names[named[1]] = number
    return names


def for_re2(pattern: str, style: Style) -> str | None:
    """The pattern in RE2's spelling when both engines mean the same by it; None when only `regex` will do."""
    if not pattern.isascii():
        return None
    try:
        return rewrite(pattern, style._replace(re2=True))
    except NotForRe2:
        return None


_LOOKBEHIND = re.compile(r"\\.|\[\^?\]?(?:\\.|[^]\\])*\]|(\(\?<[=!])|(\()|(\))|(\|)", re.DOTALL)


def check_lookbehind(pattern: str) -> None:
    """What looks behind must know how far: each alternative of it has one length."""
    open_groups: list[list[int] | None] = []
    for found in _LOOKBEHIND.finditer(pattern):
        if found[1]:
            open_groups.append([found.end()])
        elif found[2]:
            open_groups.append(None)
        elif found[4] and open_groups and open_groups[-1] is not None:
            open_groups[-1].append(found.end())
        elif found[3] and open_groups:
            starts = open_groups.pop()
            if starts is not None:
                ends = [start - 1 for start in starts[1:]] + [found.start()]
                for start, end in zip(starts, ends, strict=True):
                    _check_fixed(pattern[start:end])


def _check_fixed(body: str) -> None:
    try:
        re.compile(f"(?<={body})")
    except re.error as error:
        # Anything else that `re` does not know is for the engine in use to judge.
        if "look-behind" in str(error):
            raise PatternError("lookbehind assertion is not fixed length") from None
