"""Syntax colors and Markdown as data, computed in a process that can be killed.

`python -m ramet.apps.ui.render` reads a request per line and writes an answer per line, both JSON. It ends when its
stdin does, or after `IDLE` seconds without a request. Lexers match regular expressions against text that anyone may
have written: one that does not end must not stop the server, so `renderer.py` kills this process.
"""

from __future__ import annotations

import json
import re
import resource
import select
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markdown_it.token import Token
    from pygments.lexer import Lexer

IDLE: Final = 300.0
MEMORY: Final = 1 << 30
"""Bytes of address space."""
SHADES: Final = {
    "Comment": "c", "Comment.Preproc": "d", "Comment.PreprocFile": "s", "Literal.String": "s", "Literal.Number": "n",
    "Literal.String.Escape": "e", "Literal.String.Interpol": "e", "Literal.String.Regex": "e",
    "Literal.String.Affix": "k", "Literal.Date": "n", "Keyword": "k", "Keyword.Constant": "n", "Keyword.Type": "t",
    "Operator.Word": "k", "Name.Function": "f", "Name.Class": "t", "Name.Exception": "t", "Name.Decorator": "d",
    "Name.Builtin": "b", "Name.Builtin.Pseudo": "n", "Name.Constant": "n", "Name.Tag": "k", "Name.Attribute": "f",
    "Name.Variable": "b", "Name.Label": "d", "Name.Entity": "e", "Generic.Heading": "k", "Generic.Subheading": "k",
    "Generic.Deleted": "x", "Generic.Inserted": "s", "Generic.Strong": "k", "Generic.Emph": "e",
}  # fmt: skip
"""Letters that the style sheet gives a color, by kind of token; a kind that is not here has that of its parent."""
PROGRAM: Final = re.compile(r"#!\s*\S*?(?:env\s+(?:-S\s+)?)?([A-Za-z]+)[\d.]*(?:\s|$)")
TAGS: Final = {
    "paragraph": "p", "blockquote": "blockquote", "bullet_list": "ul", "list_item": "li", "table": "table",
    "thead": "thead", "tbody": "tbody", "tr": "tr", "th": "th", "td": "td", "em": "em", "strong": "strong", "s": "del",
    "hr": "hr", "hardbreak": "br", "code_inline": "code",
}  # fmt: skip
"""Elements by type of Markdown token; those with attributes are made by `_element`."""


# ---------------------------------------------------------------------------------------------------------- colors


def colors(name: str, text: str) -> dict[str, Any]:
    """Color a file: per line `[shade, length, ...]`, with lengths in UTF-16 units, as JavaScript counts."""
    lexer = _lexer(name, text)
    return {"language": None, "lines": []} if lexer is None else {"language": lexer.name, "lines": _lines(lexer, text)}


def _lexer(name: str, text: str) -> Lexer | None:
    """The lexer by the file's name, else by the program of its first line."""
    from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
    from pygments.lexers.special import TextLexer
    from pygments.util import ClassNotFound

    try:
        found = get_lexer_for_filename(name, text)
    except ClassNotFound:
        program = PROGRAM.match(text[:200])
        if program is None:
            return None
        try:
            found = get_lexer_by_name(program[1].lower())
        except ClassNotFound:
            return None
    return None if isinstance(found, TextLexer) else found


def _lines(lexer: Lexer, text: str) -> list[list[str | int]]:
    lines: list[list[str | int]] = [[]]
    for shade, piece in _pieces(lexer, text):
        for number, part in enumerate(piece.split("\n")):
            if number:
                lines.append([])
            if not part:
                continue
            size = len(part) if part.isascii() else len(part.encode("utf-16-le", "surrogatepass")) // 2
            line = lines[-1]
            if line and line[-2] == shade:
                line[-1] += size  # type: ignore[operator]
            else:
                line += (shade, size)
    return lines


def _pieces(lexer: Lexer, text: str) -> Iterator[tuple[str, str]]:
    """Yield the whole text in pieces with their shades; what a lexer leaves out or repeats stays plain."""
    done = 0
    for at, kind, value in lexer.get_tokens_unprocessed(text):
        if at < done or not text.startswith(value, at):
            continue
        if at > done:
            yield "", text[done:at]
        yield _shade(str(kind)[6:]), value
        done = at + len(value)
    yield "", text[done:]


def _shade(kind: str) -> str:
    while kind and kind not in SHADES:
        kind = kind.rpartition(".")[0]
    return SHADES.get(kind, "")


# -------------------------------------------------------------------------------------------------------- Markdown


def markdown(text: str) -> dict[str, Any]:
    """Parse Markdown to a tree of text and `[tag, attributes, child, ...]`; HTML in it stays text."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    front = re.match(r"---\n(.*?)\n---\n", text, re.S)
    tree = _tree(parser.parse(text[front.end() :] if front else text))
    if front:
        tree.insert(0, ["pre", _code("front.yaml", front[1])])
    return {"tree": tree}


def _tree(tokens: list[Token]) -> list[Any]:
    top: list[Any] = []
    open_: list[list[Any]] = [top]
    for token in tokens:
        if token.nesting < 0:
            if not token.hidden:
                open_.pop()
            continue
        made = _element(token)
        if token.nesting > 0:
            if not token.hidden:
                open_[-1].append(made)
                open_.append(made)
        elif token.type == "inline":
            open_[-1] += _checked(_tree(token.children or []), open_[-1])
        elif made is not None:
            open_[-1].append(made)
    return top


def _element(token: Token) -> Any:
    kind = token.type.removesuffix("_open")
    if kind in ("text", "softbreak"):
        return token.content if kind == "text" else "\n"
    if kind in ("html_inline", "html_block"):
        return None if token.content.strip().startswith("<!--") else ["code", {}, token.content.rstrip("\n")]
    if kind in ("fence", "code_block"):
        word = token.info.split()[0] if token.info.split() else ""
        return ["pre", _code(word, token.content.rstrip("\n"), named=True)]
    if kind == "heading":
        return [token.tag, {}]
    if kind == "ordered_list":
        return ["ol", {"start": token.attrs.get("start", 1)}]
    if kind == "link":
        return ["a", {"href": token.attrs.get("href", "")}]
    if kind == "image":
        return ["img", {"src": token.attrs.get("src", ""), "alt": token.content}]
    aligned = re.fullmatch(r"text-align:(left|right|center)", str(token.attrs.get("style", "")))
    found: list[Any] = [TAGS.get(kind, "span"), {"align": aligned[1]} if aligned else {}]
    return [*found, token.content] if token.content else found


def _checked(children: list[Any], above: list[Any]) -> list[Any]:
    """The children of a line, with the box of a task list as `["check", {"done": bool}]`."""
    first = children[0] if children else None
    if above[:1] in (["li"], ["p"]) and isinstance(first, str) and re.match(r"\[[ xX]\] ", first):
        return [["check", {"done": first[1] != " "}], first[3:], *children[1:]]
    return children


def _code(language: str, text: str, *, named: bool = False) -> dict[str, Any]:
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_by_name(language) if named else _lexer(language, text)
    except ClassNotFound:
        lexer = None
    return {"text": text, "lines": [] if lexer is None else _lines(lexer, text)}


# ------------------------------------------------------------------------------------------------------ the process


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    while select.select([sys.stdin], [], [], IDLE)[0] and (line := sys.stdin.readline()):
        asked = json.loads(line)
        made = markdown(asked["text"]) if asked["kind"] == "markdown" else colors(asked["name"], asked["text"])
        sys.stdout.write(json.dumps(made, separators=(",", ":")) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
