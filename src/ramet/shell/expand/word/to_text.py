"""Compile words to functions that give one text: as text, pattern, regular expression or here-document.

A word that cannot suspend becomes a plain function; one with a command or process substitution in it, or with an
operator that may be offloaded, a coroutine function (`wait`).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from ramet.concurrency.offload import offload, offload_large
from ramet.concurrency.recursion import in_new_task, level, with_room
from ramet.concurrency.sizes import LONG_SCRIPT
from ramet.shell.expand.arith import evaluate as arith
from ramet.shell.expand.arith.from_word import calculated, filled, joined_pieces, subscripted
from ramet.shell.expand.arith.parser import ArithFailure
from ramet.shell.expand.errors import Fatal, LineError, PosixFatal, TooLong
from ramet.shell.expand.values import Subscript
from ramet.shell.expand.word.array_join import DOCUMENTS, LISTED, joint, spaced
from ramet.shell.expand.word.fields import escape
from ramet.shell.expand.word.param_defaults import Choice, chosen, message_word, refuse_unset
from ramet.shell.expand.word.param_lookup import (
    HEAVY,
    HEAVY_AT,
    NO_ARGUMENTS,
    all_values,
    applied,
    is_plain,
    keys,
    nothing,
    variable,
)
from ramet.shell.expand.word.param_strip import stripped
from ramet.shell.expand.word.params import (
    Found,
    apply_of,
    base_of,
    one_text,
    parameter,
    unbound,
)
from ramet.shell.expand.word.pieces import Text as Text
from ramet.shell.expand.word.pieces import concat as concat
from ramet.shell.expand.word.pieces import const as const
from ramet.shell.expand.word.pieces import ready as ready
from ramet.shell.expand.word.quote_marks import (
    Quote,
    alone,
    as_element,
    as_fields,
    as_is,
    mark_ampersand,
    marked,
    regex_escape,
)
from ramet.shell.expand.word.tilde import ASSIGNMENT, tilded
from ramet.shell.plain_mode import FAST
from ramet.shell.syntax.nodes import (
    AnsiQuoted,
    ArithSub,
    CommandSub,
    DoubleQuoted,
    Escaped,
    Literal,
    Param,
    Part,
    ProcessSub,
    SingleQuoted,
    Word,
)
from ramet.shell.syntax.printer import word_text

CHOOSING: Final = frozenset(("-", ":-", "=", ":=", "?", ":?", "+", ":+"))


# ------------------------------------------------------------------------------------------------------- texts


def declared(word: Word) -> Text:
    """The value in an argument of `declare` and its kin: where IFS is empty, `$*` has its spaces all the same."""
    return _spaced_without_ifs(word, None, True)


def _spaced_without_ifs(word: Word, quote: Quote, assign: bool) -> Text:
    usual = text(word, quote=quote, assign=assign)
    if not any(map(_joins, word.parts)):
        return usual
    spaced_text = text(Word(tuple(map(_by_spaces, word.parts))), quote=quote, assign=assign)

    def run(host: Any) -> Any:
        return (spaced_text if host.variables.get("IFS") == "" else usual).run(host)

    return Text(usual.wait, run)


def _joins(part: Part) -> bool:
    """Is this `$*` or a kin of it? The plain values of an array have a way of their own, as have some changed ones."""
    if not isinstance(part, Param):
        return False
    if part.name == "*":
        return part.op[:1] not in ("^", ",", "~")
    return part.subscript == "*" and (part.form == "keys" or part.op[:1] in ("#", "%", "@") or part.op == ":")


def _by_spaces(part: Part) -> Part:
    if not isinstance(part, Param) or not _joins(part):
        return part
    name, subscript = ("@", part.subscript) if part.name == "*" else (part.name, "@")
    return Param(name, subscript, part.form, part.op, part.args, part.braced, part.bad)


def text(word: Word, quoted: bool = False, quote: Quote = None, assign: bool = False) -> Text:
    """A word as one text; with `quote` as a pattern, with `assign` with the tildes of an assignment."""
    parts = word.parts
    if not quoted and parts and type(parts[0]) is Literal and "~" in parts[0].text:
        return concat(with_tildes(parts, assign, quote))
    if assign and len(parts) > 1 and any(type(p) is Literal and ":~" in p.text for p in parts):
        return concat(with_tildes(parts, assign, quote))
    if assign:
        return concat([_assigned_part(part, quote) for part in parts])
    return concat([part_text(part, quoted, quote) for part in parts])


def _assigned_part(part: Part, quote: Quote) -> Text:
    """A part of an assignment's value: the words of its operators have the tildes of an assignment too."""
    if not isinstance(part, Param) or part.bad is not None or part.op not in CHOOSING:
        return part_text(part, False, quote)
    with level as station:
        text = _choice_text(part, False, None if quote is as_element else quote, assign=True)
    return _stationed(text) if station else text


def element(word: Word) -> Text:
    """The value of an element in a compound assignment."""
    return text(word, quote=as_element, assign=True)


def document(word: Word) -> Text:
    """The body of a here-document."""
    listed = any(
        isinstance(part, Param) and "@" in (part.name, part.subscript) and part.form != "length" for part in word.parts
    )
    return text(word, quoted=True, quote=as_fields if listed else as_is)


def bare(word: Word) -> Text:
    """A word as one text in which tildes are text as well."""
    return concat([part_text(part, False, alone) for part in word.parts])


def _in_condition(word: Word, quote: Quote) -> Text:
    first = word.parts[0] if word.parts else None
    if type(first) is not Literal or "~" not in first.text or (head := ASSIGNMENT.match(first.text)) is None:
        return text(word, quote=quote)
    rest = first.text[head.end() :]
    parts = (*((Literal(rest),) if rest else ()), *word.parts[1:])
    return concat([const(head[0]), *with_tildes(parts, True, quote)])


def operand(word: Word) -> Text:
    """The word of `case`, or an operand of `[[`."""
    return _in_condition(word, alone)


def pattern(word: Word, tilde: bool = True) -> Text:
    """A word as a pattern in which quoted characters stand for themselves."""
    first = word.parts[0] if word.parts else None
    if not tilde or type(first) is not Literal or "~" not in first.text:
        return concat([part_text(part, False, escape) for part in word.parts])
    return _in_condition(word, escape)


def regex(word: Word) -> Text:
    """A word as a regular expression in which quoted characters stand for themselves."""
    return _in_condition(word, regex_escape)


def part_text(part: Part, quoted: bool, quote: Quote) -> Text:
    kind = type(part)
    if kind is Literal:
        return const(marked(part.text, quote) if quoted else part.text)  # type: ignore[union-attr]
    if kind is SingleQuoted:
        return const(marked(part.text, quote))  # type: ignore[union-attr]
    if kind is Escaped:
        char: str = part.char  # type: ignore[union-attr]
        return const(marked(char, quote))
    if kind is AnsiQuoted:
        return const(marked(part.value, quote))  # type: ignore[union-attr]
    if isinstance(part, CommandSub):
        return Text(True, _command_text(part, quote if quoted else None))
    if isinstance(part, ProcessSub):
        found = part
        return Text(True, lambda host: host.process_path(found))
    if isinstance(part, Param) and not part.args and part.subscript is None:
        return _param_text(part, quoted, quote)
    with level as station:
        if isinstance(part, DoubleQuoted):
            text = concat([part_text(inner, True, quote) for inner in part.parts])
        elif isinstance(part, Param):
            text = _param_text(part, quoted, quote)
        else:
            assert isinstance(part, ArithSub)
            text = number_text(*number(part.body))
    return _stationed(text) if station else text


def _stationed(text: Text) -> Text:
    """Return the same in a separate task, or with a raised recursion limit."""
    if text.const is not None:
        return text
    return text._replace(run=in_new_task(text.run) if text.wait else with_room(text.run))


def _command_text(part: CommandSub, quote: Quote) -> Callable[[Any], Awaitable[str]]:
    if quote is None:
        return lambda host: host.command_text(part)

    async def run(host: Any) -> str:
        return quote(await host.command_text(part))

    return run


def number_text(wait: bool, value: Callable[[Any], Any]) -> Text:
    """Return the text of a number that `number` has compiled."""
    if wait:

        async def waiting(host: Any) -> str:
            return str(await value(host))

        return Text(True, waiting)

    def run(host: Any) -> str:
        try:
            return str(value(host))
        except TooLong as error:
            if error.resume is None:
                raise
            return str(error.resume())

    return Text(False, run)


def number(word: Word) -> tuple[bool, Callable[[Any], Any]]:
    """The value of an arithmetic expression: (wait, function)."""
    pieces = [part_text(part, True, None) for part in word.parts]
    subscripts = subscripted(word.parts, pieces)
    body = joined_pieces(pieces, subscripts)
    if FAST and body.const is not None:
        code = arith.prepare(body.const)
        if len(body.const) <= LONG_SCRIPT:
            return False, lambda host: code(host.variables)
        return True, lambda host: offload(host.budget, partial(code, host.variables))
    inner = body.run
    if body.wait:

        async def run(host: Any) -> int:
            try:
                found = await inner(host)
            except ArithFailure as failure:
                failure.nested = True
                raise
            return int(await offload_large(host.budget, len(found), partial(host.calculate, found), LONG_SCRIPT))

        return True, run
    code_with = filled(pieces, subscripts) if FAST else None
    if code_with is not None:
        return False, code_with

    def several(host: Any) -> int:
        try:
            found = inner(host)
        except ArithFailure as failure:
            failure.nested = True
            raise
        return calculated(host, found)

    return False, several


def expression(word: Word) -> Text:
    """The text of an arithmetic expression, expanded."""
    pieces = [part_text(part, True, None) for part in word.parts]
    return joined_pieces(pieces, subscripted(word.parts, pieces))


def with_tildes(parts: tuple[Part, ...], assign: bool, quote: Quote, loose: bool = False) -> list[Text]:
    """The parts of an unquoted word with `~` at its start (and after each colon of an assignment) expanded.

    `loose`: the word only looks like an assignment, which in POSIX mode is not enough.
    """
    out: list[Text] = []
    for number, part in enumerate(parts):
        if type(part) is not Literal:
            out.append(_assigned_part(part, quote) if assign else part_text(part, False, quote))
            continue
        out += tilded(part.text, number == 0, number == len(parts) - 1, assign, quote, loose)
    return out


# ------------------------------------------------------------------------------------------------ parameters


def getter(node: Param, quoted: bool = False, key: Text | None = None) -> tuple[bool, Callable[[Any], Any]]:
    """The value of a parameter with every operator applied except the choosing ones: (wait, function).

    `key` is its subscript, where that is compiled already.
    """
    if node.subscript is None and not node.op and node.form == "value" and node.bad is None and is_plain(node.name):
        return False, variable(node.name)
    if node.bad is not None:
        message = (getattr(node.bad, "around", f"${{{node.bad}}}"), ": bad substitution")
        if getattr(node.bad, "unclosed", False):
            message = ("bad substitution: no closing `}' in ", message[0])
        elif node.bad.startswith("\0"):
            message = ("bad substitution: no closing `}' in ", node.bad[1:])

        unknown = _UNKNOWN_TRANSFORMATION(node.bad)
        attributes = unknown is not None and unknown[0].startswith(("a", "A"), unknown.end(1) + 1)

        def bad(host: Any) -> Found:
            if unknown is None:
                raise PosixFatal(message)
            found = parameter(host, unknown[1])
            if unknown[0].startswith("!"):
                if not isinstance(found, str):
                    raise LineError(f"{unknown[1]}: invalid indirect expansion")
                found = parameter(host, found)
            if found in (None, []) and not attributes:
                if found is None:
                    unbound(host, unknown[1])
                return None  # bash looks at the letter only when there is something to change
            raise Fatal(message, 1)

        return False, bad
    if node.name in ("?", "-") and node.op[:1] in ("^", ",", "~"):
        refused = f"{word_text(Word((node,)))}: bad substitution"

        def refuse(host: Any) -> Found:
            raise PosixFatal(refused)

        return False, refuse
    choosing = node.op in CHOOSING
    base, apply = base_of(node), None if choosing else apply_of(node)
    args = [] if choosing or node.form == "names" else _arguments(node, quoted)
    strip = stripped(node, args)
    if strip is not None:
        return False, strip
    if key is None:
        key = key_text(node)
    strict = not choosing and node.form != "length"
    runs = [arg.run for arg in args]

    def value(host: Any, subscript: str | None) -> Found:
        found = base(host, subscript)
        if found is None and strict and host.nounset:
            refuse_unset(host, node)
        return found

    if apply is not None and node.op and (node.op[0] in HEAVY or node.op in HEAVY_AT):
        return True, applied(node, key, args, base, apply, strict)
    if node.form == "keys" and not node.op:
        return True, keys(node, base)
    if (key is not None and key.wait) or any(arg.wait for arg in args):

        async def waiting(host: Any) -> Found:
            found = value(host, None if key is None else await key.run(host) if key.wait else key.run(host))
            if apply is None:
                return found
            if nothing(found, node):
                return apply(host, found, NO_ARGUMENTS)
            return apply(host, found, [await arg.run(host) if arg.wait else arg.run(host) for arg in args])

        return True, waiting
    index = None if key is None else key.run
    if apply is None:
        if index is None:
            return False, lambda host: value(host, None)
        return False, lambda host: value(host, index(host))
    operation = apply

    def run(host: Any) -> Found:
        found = value(host, None if index is None else index(host))
        if nothing(found, node):
            return operation(host, found, NO_ARGUMENTS)
        return operation(host, found, [run(host) for run in runs])

    return False, run


_UNKNOWN_TRANSFORMATION: Final = re.compile(
    r"!?([A-Za-z_][A-Za-z0-9_]{0,65535}+(?:\[[^]]+\])?|[0-9]+|[@*])@.*", re.ASCII | re.DOTALL
).fullmatch


def code_of(word: Word) -> Callable[[Any], int] | None:
    """The code of a constant arithmetic expression, to be called with the variables."""
    body = expression(word)
    return None if body.const is None else arith.prepare(body.const)


def _arguments(node: Param, quoted: bool) -> list[Text]:
    op = node.op
    if op in ("#", "##", "%", "%%") or op[:1] in ("^", ",", "~"):
        return [pattern(arg, op[0] in "#%" or not quoted) for arg in node.args]
    if op[:1] == "/":
        # The mark of an anchored pattern stands before the tilde.
        tilde = op in ("/", "//")
        return [pattern(node.args[0], tilde)] + [text(arg, quote=mark_ampersand) for arg in node.args[1:]]
    return [text(arg, quoted=True) for arg in node.args]


def choice_of(node: Param, quoted: bool) -> Choice:
    key = key_text(node)
    wait, get = getter(node, False, key)
    if quoted and not wait and (node.name == "*" or node.subscript == "*") and node.form == "value":
        each = get

        def get(host: Any) -> Found:
            """Without a separator between them, empty values make an empty text."""
            found = each(host)
            return "".join(found) if found and isinstance(found, list) and host.variables.get("IFS") == "" else found

    word = node.args[0] if node.args else Word(())
    return Choice(node, wait, get, message_word(word) if node.op[-1] == "?" else word, key)


def argument_text(choice: Choice, quoted: bool, quote: Quote, assign: bool = False) -> Text:
    if choice.node.op[-1] == "?" or (choice.node.op[-1] == "=" and not quoted):
        return text(choice.word, quote=None)
    if not quoted:
        return _spaced_without_ifs(choice.word, quote, assign)
    return text(choice.word, quoted=quoted, quote=quote)


def key_text(node: Param) -> Text | None:
    return subscript(node.subscript) if isinstance(node.subscript, Word) else None


def subscript(word: Word) -> Text:
    """The subscript of an element. Quotes and backslashes vanish for associative arrays; to arithmetic they matter."""
    pieces = [part_text(part, False, None) for part in word.parts]
    key = concat(pieces)
    if key.wait or not any(isinstance(part, SingleQuoted | AnsiQuoted | Escaped) for part in word.parts):
        return key
    written = concat([_written(part) or piece for part, piece in zip(word.parts, pieces, strict=True)])

    def run(host: Any) -> str:
        found = Subscript(key.run(host))
        found.arithmetic = written.run(host)
        return found

    return Text(False, run)


def _written(part: Part) -> Text | None:
    """A quoted part with its quotes; None for any other."""
    if isinstance(part, SingleQuoted):
        return const(f"'{part.text}'")
    if isinstance(part, AnsiQuoted):
        return const(f"'{part.value}'")
    return const("\\" + part.char) if isinstance(part, Escaped) else None


def _param_text(node: Param, quoted: bool, quote: Quote) -> Text:
    if node.bad is None and node.op in CHOOSING:
        return _choice_text(node, quoted, quote)
    wait, get = getter(node, quoted)
    escaped = quote if quoted and quote is not alone else None
    join = joint(node, quoted, quote)
    if wait:

        async def waiting(host: Any) -> str:
            return marked(join(host, await get(host)), escaped)

        return Text(True, waiting)
    listed = join in LISTED and node.form == "value" and not node.op and (node.subscript or node.name) in ("@", "*")
    if listed and escaped in (None, *DOCUMENTS, as_element):
        return all_values(node, join)
    if escaped is not None:
        return Text(False, lambda host: escaped(join(host, get(host))))

    def run(host: Any) -> str:
        found = get(host)
        return found if type(found) is str else join(host, found)

    return Text(False, run)


def _choice_text(node: Param, quoted: bool, quote: Quote, assign: bool = False) -> Text:
    choice = choice_of(node, quoted and quote not in DOCUMENTS)
    argument = argument_text(choice, quoted, quote, assign)
    key = choice.key if node.op[-1] == "=" else None
    escaped = quote if quoted and quote is not alone else None
    get = choice.get
    join = spaced if quote in DOCUMENTS and node.name == "*" else one_text

    def settle(host: Any, found: str, subscript: str | None) -> str:
        return one_text(host, chosen(choice, host, found, subscript))

    if choice.wait or argument.wait or (key is not None and key.wait):

        async def waiting(host: Any) -> str:
            found = await get(host) if choice.wait else get(host)
            if not choice.takes_word(found, assign):
                return "" if node.op[-1] == "+" else marked(join(host, found), escaped)
            word = await argument.run(host) if argument.wait else argument.run(host)
            subscript = None if key is None else await key.run(host) if key.wait else key.run(host)
            return settle(host, word, subscript)

        return Text(True, waiting)

    def run(host: Any) -> str:
        found = get(host)
        if not choice.takes_word(found, assign):
            return "" if node.op[-1] == "+" else marked(join(host, found), escaped)
        return settle(host, argument.run(host), None if key is None else key.run(host))

    return Text(False, run)
