"""The tree of a shell script: frozen values, equal when they mean the same text, printable back to equal text.

Rules: text is ``str`` decoded as UTF-8 with surrogateescape; positions (``line``) never take part in equality;
words carry no
position at all, so equal words may be one shared object; line continuations are gone; lists, chains and pipelines
are tuples, never nested pairs, so that no length of script makes a deep tree.
"""

from __future__ import annotations

from typing import Any
from typing import Literal as OneOf

from ramet.shell.syntax.node import node, position

# --------------------------------------------------------------------------- words


@node
class Literal:
    """Text as written.

    In an unquoted word the text is active: it may hold ``~``, braces, ``*?[`` and extglob operators such as
    ``@(a|b)``
    (whose parentheses and bars are Literal text, while expansions inside them are parts of their own). Inside
    DoubleQuoted, inside a here-document and inside
    the argument words of a double-quoted Param it is plain quoted text.
    """

    text: str


@node
class Escaped:
    """``\\c``: one quoted character. Inside double quotes only for the characters a backslash quotes there."""

    char: str


@node
class SingleQuoted:
    """``'text'``."""

    text: str


@node
class AnsiQuoted:
    """``$'...'``: ``value`` is decoded (and ends at an embedded NUL), ``source`` is what stood between the quotes."""

    value: str
    source: str = position(default="")


@node
class DoubleQuoted:
    """``"..."``; ``locale`` when written ``$"..."``. Parts are Literal, Escaped, Param, CommandSub and ArithSub."""

    parts: tuple[Part, ...]
    locale: bool = False


class Bad(str):
    """The text of a parameter that bash calls a bad substitution. ``around`` is the text that it stands in: what is
    between the same quotes, the same word, the same document. ``unclosed`` says that nothing closes it for bash: it
    is in quotes, and the bracket of its subscript is open; then all of the word is around it."""

    __slots__ = ("around", "unclosed")
    around: str
    unclosed: bool


@node
class Param:
    """``$name``, ``${name}`` and every ``${...}`` form.

    ``name``       a variable name, digits, or one of ``@ * # ? - $ !``.
    ``subscript``  None; ``"@"`` or ``"*"`` for ``a[@]``/``a[*]``; else the Word between the brackets (evaluated as
                   arithmetic for an indexed array, expanded to a key for an associative one).
    ``form``       ``"value"``     ``$x ${x} ${a[i]} ${x<op>...}``
                   ``"length"``    ``${#x} ${#a[@]} ${#@}``
                   ``"indirect"``  ``${!x} ${!x<op>...} ${!a[i]}`` (the value of x names the parameter that is meant)
                   ``"keys"``      ``${!a[@]} ${!a[*]}`` (also with an operator, which applies to an indirection in
                                   bash)
                   ``"names"``     ``${!prefix@} ${!prefix*}``; ``name`` is the prefix, ``op`` is ``"@"`` or ``"*"``.
    ``op``         ``""``, ``- :- = := ? :? + :+``          args: (word,)
                   ``# ## % %%``                            args: (pattern,)
                   ``/ // /# /%``                           args: (pattern, replacement) or (pattern,) when no
                                                            second slash
                   ``^ ^^ , ,, ~ ~~``                       args: (pattern,) or ()
                   ``:``                                    args: (offset,) or (offset, length), arithmetic text
                   ``@Q @U @u @L @E @P @A @a @K @k``        args: ()
    ``braced``     False for ``$x``.
    ``bad``        the text between the braces when bash would call it a bad substitution (a run-time error in
                   bash); then only
                   ``bad`` means something. None otherwise.

    The argument words of a Param inside double quotes (or a here-document) were read by the rules that hold there:
    for the
    ``- = ? +`` family Literal text in them is quoted text, single quotes are ordinary characters and a
    DoubleQuoted part is a nested pair of quotes;
    pattern operands (``# % / ^ ,``) are always read as unquoted words.
    """

    name: str
    subscript: Word | OneOf["@", "*"] | None = None
    form: OneOf["value", "length", "indirect", "keys", "names"] = "value"
    op: str = ""
    args: tuple[Word, ...] = ()
    braced: bool = True
    bad: str | None = None


@node
class CommandSub:
    """``$(body)``, or `` `source` `` with ``body`` None: bash parses backticks only when they run.

    ``source`` is the text of the backtick form with its backslashes already removed, and empty for ``$(...)``.
    ``$(< file)`` is a body of one Simple with one redirect and no words. ``size`` counts the characters of ``body``,
    here as elsewhere: large ones are compiled in a thread.
    """

    body: Script | None
    source: str = ""
    backtick: bool = False
    line: int = position(default=0)
    size: int = position(default=0)
    written: str = position(default="")
    """What stands between backticks, where its backslashes make it differ from `source`."""


@node
class ArithSub:
    """``$((body))``, or ``$[body]`` when ``bracket``. Expand ``body`` like a double-quoted string, then evaluate
    it."""

    body: Word
    bracket: bool = False


@node
class ProcessSub:
    """``<(body)`` (direction ``"<"``: we read what body writes) or ``>(body)``."""

    direction: OneOf["<", ">"]
    body: Script
    line: int = position(default=0)
    size: int = position(default=0)


Part = Literal | Escaped | SingleQuoted | AnsiQuoted | DoubleQuoted | Param | CommandSub | ArithSub | ProcessSub


@node
class Word:
    """One word. ``parts`` is empty only where an absent text is allowed (``${x:-}``, ``a=``, an empty document)."""

    parts: tuple[Part, ...]


# --------------------------------------------------------------------- assignments


@node
class ArrayElement:
    """One element of ``a=(...)``: ``word``, ``[sub]=word`` or ``[sub]+=word``.

    Without a subscript the value undergoes full expansion (several fields possible); with one it is assigned as text.
    """

    subscript: Word | None
    append: bool
    value: Word


@node
class ArrayLiteral:
    """The ``(...)`` of a compound assignment."""

    elements: tuple[ArrayElement, ...]


@node
class Assignment:
    """``name=value``, ``name[sub]=value``, ``name+=value``, ``name=(...)``; value is the empty Word for ``name=``."""

    name: str
    subscript: Word | None
    append: bool
    value: Word | ArrayLiteral


# -------------------------------------------------------------------- redirections


@node
class HereDoc:
    """The document of ``<<`` and ``<<-`` (tabs already stripped for ``<<-``).

    ``body`` holds document parts (Literal, Escaped, Param, CommandSub, ArithSub); when the delimiter was
    ``quoted`` it is one Literal
    to be taken as it stands. ``delimiter`` has its quotes removed.
    """

    body: Word
    delimiter: str
    quoted: bool


@node
class Redirect:
    """One redirection.

    ``op``      ``< > >> >| <> <& >& &> &>> << <<- <<<``.
    ``fd``      the number before the operator, None when there is none (the default depends on the operator).
    ``var``     the name of ``{name}>file``, else None.
    ``target``  the word after the operator (for ``<<``/``<<-`` the delimiter as written, not to be expanded). For
                ``<&``/``>&`` it is expanded and then
                read as a number, ``-``, ``n-`` or, for ``>&`` without fd, a file name.
    ``here``    the document for ``<<`` and ``<<-``.
    """

    op: str
    target: Word
    fd: int | None = None
    var: str | None = None
    here: HereDoc | None = None
    line: int = position(default=0)


# ------------------------------------------------------------------------ commands


@node
class Simple:
    """Assignments, words and redirections of a simple command, in that grouping (each in written order).

    When the first word is a declaration builtin written literally (``declare typeset local export readonly
    alias``, in POSIX mode also after ``command``), the later words that look like assignments are Assignment nodes:
    expand their values as assignments do (no splitting, no globbing, tildes after ``=`` and ``:``) and pass
    ``name=value`` to the builtin, or the ArrayLiteral itself.
    """

    assigns: tuple[Assignment, ...]
    words: tuple[Word | Assignment, ...]
    redirects: tuple[Redirect, ...]
    line: int = position(default=0)
    _first: Word = position(default=None)
    _text: str = position(default=None)


@node
class Group:
    """``{ body; }``."""

    body: Script
    redirects: tuple[Redirect, ...] = ()
    line: int = position(default=0)


@node
class Subshell:
    """``( body )``."""

    body: Script
    redirects: tuple[Redirect, ...] = ()
    line: int = position(default=0)


@node
class If:
    """``if``/``elif`` clauses as (condition, body) pairs, and the ``else`` body."""

    clauses: tuple[tuple[Script, Script], ...]
    orelse: Script | None = None
    redirects: tuple[Redirect, ...] = ()
    line: int = position(default=0)


@node
class While:
    """``while`` or, with ``until``, ``until``."""

    condition: Script
    body: Script
    until: bool = False
    redirects: tuple[Redirect, ...] = ()
    line: int = position(default=0)


@node
class For:
    """``for name in words``; ``words`` is None without ``in`` (the positional parameters)."""

    name: str
    words: tuple[Word, ...] | None
    body: Script
    redirects: tuple[Redirect, ...] = ()
    line: int = position(default=0)


@node
class Select:
    """``select name in words``; as For."""

    name: str
    words: tuple[Word, ...] | None
    body: Script
    redirects: tuple[Redirect, ...] = ()
    line: int = position(default=0)


@node
class ForArith:
    """``for ((init; condition; step))``; an empty Word is an absent expression (an absent condition is true)."""

    init: Word
    condition: Word
    step: Word
    body: Script
    redirects: tuple[Redirect, ...] = ()
    line: int = position(default=0)


@node
class CaseItem:
    """``patterns) body end``; ``end`` is ``;;`` also where the last one was left out."""

    patterns: tuple[Word, ...]
    body: Script
    end: OneOf[";;", ";&", ";;&"] = ";;"


@node
class Case:
    """``case word in items esac``."""

    word: Word
    items: tuple[CaseItem, ...]
    redirects: tuple[Redirect, ...] = ()
    line: int = position(default=0)


@node
class Function:
    """A definition. Redirections written after the body belong to ``body`` and are made at each call.

    ``keyword`` is True for ``function name``. ``name`` is the raw text (bash allows nearly any word).
    ``printer.function_text(node)`` is what ``declare -f`` shows.
    """

    name: str
    body: Command
    keyword: bool = position(default=False)
    line: int = position(default=0)
    size: int = position(default=0)


@node
class ArithCommand:
    """``((body))``; as ArithSub, the status is 0 when the value is not zero."""

    body: Word
    redirects: tuple[Redirect, ...] = ()
    line: int = position(default=0)


@node
class Cond:
    """``[[ expr ]]``."""

    expr: CondExpr
    redirects: tuple[Redirect, ...] = ()
    line: int = position(default=0)


@node
class Coproc:
    """``coproc [name] command``; ``name`` is ``COPROC`` when not written."""

    name: str
    body: Command
    line: int = position(default=0)


# ------------------------------------------------------------- inside of [[ ... ]]


@node
class CondWord:
    """A single word: true when not empty."""

    word: Word


@node
class CondUnary:
    """``-f word`` and its like; ``op`` with its dash."""

    op: str
    word: Word


@node
class CondBinary:
    """``left op right``.

    ``op`` is ``= == != =~ < > -eq -ne -lt -le -gt -ge -nt -ot -ef``. For ``= == !=`` the right word is a
    pattern (extglob always on), for ``=~`` a regular expression (unquoted parentheses, bars, ... are Literal text;
    quoted
    parts match literally), for ``-eq`` and its like both are arithmetic expressions.
    """

    op: str
    left: Word
    right: Word


@node
class CondNot:
    """``! expr``."""

    expr: CondExpr


@node
class CondAnd:
    """``a && b && ...``, two items or more."""

    items: tuple[CondExpr, ...]


@node
class CondOr:
    """``a || b || ...``, two items or more; binds weaker than ``&&``."""

    items: tuple[CondExpr, ...]


@node
class CondGroup:
    """``( expr )``; kept for printing."""

    expr: CondExpr


CondExpr = CondWord | CondUnary | CondBinary | CondNot | CondAnd | CondOr | CondGroup


# ----------------------------------------------------------------- lists of commands


@node
class Pipeline:
    """Two or more stages, or any number with ``negated`` or ``timed``; a plain single command is never wrapped.

    ``merge[i]`` is True where stage i is followed by ``|&``. ``!`` or ``time`` alone has no stages. ``timed`` is
    ``""``, ``"time"`` or ``"time -p"``.
    """

    stages: tuple[Command, ...]
    negated: bool = False
    timed: OneOf["", "time", "time -p"] = ""
    merge: tuple[bool, ...] = ()
    line: int = position(default=0)


@node
class AndOr:
    """``first`` followed by (``"&&"`` or ``"||"``, command) links, evaluated left to right, both of equal
    precedence."""

    first: Command | Pipeline
    rest: tuple[tuple[OneOf["&&", "||"], Command | Pipeline], ...]


@node
class Statement:
    """One element of a list; ``background`` when ended by ``&``. ``line`` is that of its first token, ``newline``
    says that only the end of its line parts it from the next one. ``end`` is the line at which the whole command line
    was read, for what is not simple and stands within nothing else."""

    node: Node
    background: bool = False
    line: int = position(default=0)
    newline: bool = position(default=False)
    end: int = position(default=0)


@node
class Script:
    """A list of statements: a complete line, a whole script, or the body of a compound command."""

    statements: tuple[Statement, ...]
    _made: dict[object, Any] = position(default=None)


def made_of(script: Script) -> dict[object, Any]:
    """What others have made of a script, by whom: it goes when the script goes."""
    try:
        return script._made
    except AttributeError:
        put: Any = script
        put._made = {}
        return put._made  # type: ignore[no-any-return]


Command = (
    Simple | Group | Subshell | If | While | For | ForArith | Select | Case | Function | ArithCommand | Cond | Coproc
)
"""What can be a stage of a pipeline. (``coproc`` and function definitions are commands in bash's grammar too.)"""

Node = Command | Pipeline | AndOr
