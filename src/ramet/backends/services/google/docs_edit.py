"""Edits of a document: what differs between two Markdown texts, as requests to the API of Docs.

Rules that this file keeps:
- Only blocks that differ are touched, and of a block only what is between the first and the last difference.
- Requests go from the end backwards, so that no index moves before it is used. Indices count UTF-16 units.
- The newline that ends a document, or stands before a table, is never deleted.
- What Markdown cannot say again, such as an image, is never deleted by an edit around it: that is refused.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import cache
from typing import Any, Final

from ramet.backends.services.google.docs_markdown import PLAIN, Atom, Block, Form, Style
from ramet.core.errors import fail
from ramet.core.paths import Path

Request = dict[str, Any]
_ITEM: Final = re.compile(r"([ \t]*)(?:([-*+])|(\d{1,9})[.)])(?:[ \t]+(.*)|$)", re.DOTALL)
_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
_FENCE: Final = re.compile(r"(`{3,}|~{3,})[^`]*")
_NOTE: Final = re.compile(r"\[\^[^\]]+\]: ")
_THING: Final = 0xF0000
"""The first of the private characters that stand for things while Markdown is parsed."""
_FIELDS: Final = "bold,italic,strikethrough,link"
_CODE_FIELDS: Final = f"{_FIELDS},weightedFontFamily"


def split(text: str) -> list[str]:
    """The blocks of a Markdown text, as `docs_markdown` writes them."""
    blocks: list[str] = []
    lines = text.replace("\r\n", "\n").split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
            continue
        to = at + 1
        fence = _FENCE.fullmatch(line)
        if fence is not None:
            while to < len(lines) and lines[to].strip() != fence[1]:
                to += 1
            to += 1
        elif line.startswith("|"):
            while to < len(lines) and lines[to].startswith("|"):
                to += 1
        elif _HEADING.fullmatch(line) is None:
            while to < len(lines) and _continues(lines[to], lines[to - 1]):
                to += 1
        blocks.append("\n".join(lines[at:to]))
        at = to
    return blocks


def _continues(line: str, before: str) -> bool:
    if not line.strip():
        return False
    if before.endswith("\\"):
        return True
    return not (_ITEM.fullmatch(line) or _HEADING.fullmatch(line) or _FENCE.fullmatch(line) or line.startswith("|"))


def edit_requests(blocks: Sequence[Block], new: str, tab: str, path: Path, first: int) -> list[Request]:
    """The requests that turn a tab into the new text; `first` is where an empty tab begins."""
    edit = _Edit(blocks, tab, path, first)
    wanted = split(new)
    matcher = SequenceMatcher(None, [block.text for block in blocks], wanted, autojunk=False)
    for verb, i1, i2, j1, j2 in reversed(matcher.get_opcodes()):
        if verb != "equal":
            edit.replace(i1, i2, wanted[j1:j2])
    return edit.requests


class _Edit:
    def __init__(self, blocks: Sequence[Block], tab: str, path: Path, first: int) -> None:
        self._blocks, self._path, self._first = blocks, path, first
        self._tab: Request = {"tabId": tab} if tab else {}
        self.requests: list[Request] = []

    def _refuse(self, words: str) -> OSError:
        return fail(errno.EINVAL, self._path, f"Invalid argument: {words}; nothing was changed")

    def replace(self, i1: int, i2: int, wanted: Sequence[str]) -> None:
        """Turn the blocks from `i1` to `i2` into others; those that stand for each other are edited in place."""
        old = self._blocks[i1:i2]
        for block in old:
            if block.fixed:
                raise self._refuse(f"{block.fixed} cannot be changed here")
        pairs = min(len(old), len(wanted))
        while pairs and not all(_alike(old[k], wanted[k]) for k in range(pairs)):
            pairs -= 1
        for text in reversed(wanted[pairs:]):
            self._insert(i1 + pairs, i2, text)
        for block in reversed(old[pairs:]):
            self._delete(block)
        for block, text in reversed(list(zip(old[:pairs], wanted[:pairs], strict=True))):
            self._change(block, text)

    # ------------------------------------------------------------------------------------------------- blocks

    def _change(self, block: Block, text: str) -> None:
        if block.form.kind == "table":
            self._change_table(block, text)
            return
        form, atoms = _parsed(text, block.atoms)
        self._change_text(block, atoms, code=form.kind == "code" or block.form.kind == "code")
        if form != block.form:
            length = sum(atom.units for atom in atoms)
            self._shape(form, block.form, block.start, block.start + length + 1)

    def _change_text(self, block: Block, atoms: Sequence[Atom], *, code: bool = False) -> None:
        old = block.atoms
        head = 0
        while head < min(len(old), len(atoms)) and old[head] == atoms[head]:
            head += 1
        tail = 0
        while tail < min(len(old), len(atoms)) - head and old[-1 - tail] == atoms[-1 - tail]:
            tail += 1
        gone, come = old[head : len(old) - tail], atoms[head : len(atoms) - tail]
        lost = [atom.text for atom in gone if atom.is_thing]
        if lost:
            raise self._refuse(
                f"this edit removes {lost[0]}, which only Google Docs can write; change the text around it"
            )
        at = block.start + sum(atom.units for atom in old[:head])
        if gone:
            self._remove(at, at + sum(atom.units for atom in gone))
        if come:
            self._put(at, come, code=code or any(atom.style.code for atom in (*old, *come)))

    def _change_table(self, block: Block, text: str) -> None:
        lines = [line for number, line in enumerate(text.split("\n")) if number != 1]
        before = [line for number, line in enumerate(block.text.split("\n")) if number != 1]
        rows, shown = [_cells(line) for line in lines], [_cells(line) for line in before]
        if [len(row) for row in rows] != [len(row) for row in block.table]:
            raise self._refuse("the shape of a table cannot be changed here; use Google Docs or query -w")
        for r in range(len(rows) - 1, -1, -1):
            for c in range(len(rows[r]) - 1, -1, -1):
                if rows[r][c] == shown[r][c]:
                    continue
                cell = block.table[r][c]
                if cell is None:
                    raise self._refuse("a cell of several paragraphs cannot be changed here")
                self._change_text(cell, _inline(rows[r][c].replace("\\|", "|").replace("<br>", "\\\n"), cell.atoms))

    def _delete(self, block: Block) -> None:
        if block.form.kind == "table":
            self._remove(block.start, block.end)
            return
        lost = [atom.text for atom in block.atoms if atom.is_thing]
        if lost:
            raise self._refuse(f"this removes {lost[0]}, which only Google Docs can write; delete it there")
        end = block.end - 1 if block.holds_newline else block.end
        if end > block.start:
            self._remove(block.start, end)
        if block.holds_newline and block.form.kind in ("item", "heading"):
            self._shape(Form(), block.form, block.start, block.start + 1)

    def _insert(self, at: int, after: int, text: str) -> None:
        """A new block before the one at `at`; those up to `after` are being deleted."""
        if text.startswith("|"):
            raise self._refuse("a new table cannot be written here; use Google Docs or query -w")
        if _NOTE.match(text):
            raise self._refuse("a new footnote cannot be written here")
        form, atoms = _parsed(text, ())
        tabs = [Atom("\t")] * form.level if form.kind == "item" else []
        all_atoms = [*tabs, *atoms]
        length = sum(atom.units for atom in all_atoms)
        before = self._blocks[at - 1] if at else None
        behind = self._blocks[after] if after < len(self._blocks) else None
        if behind is not None and behind.start < 0:
            behind = None
        if before is not None and before.form.kind != "table" and before.start >= 0:
            place, was = before.end - 1, before.form
            self._put(place, [Atom("\n"), *all_atoms], code=True)
            start = place + 1
        elif at < after and self._blocks[at].form.kind != "table":
            place = start = self._blocks[at].start  # before a block that is being deleted
            was = self._blocks[at].form
            self._put(place, [*all_atoms, Atom("\n")], code=True)
        elif behind is not None and behind.form.kind != "table":
            place = start = behind.start
            was = behind.form
            self._put(place, [*all_atoms, Atom("\n")], code=True)
        elif not self._blocks:
            start, was = self._first, Form()
            self._put(start, [*all_atoms, Atom("\n")], code=True)
        else:
            raise self._refuse("nothing can be written next to a table without a paragraph there; use Google Docs")
        self._shape(form, was, start, start + length + 1, new=True)

    # ------------------------------------------------------------------------------------------------ requests

    def _range(self, start: int, end: int) -> Request:
        return {"startIndex": start, "endIndex": end, **self._tab}

    def _remove(self, start: int, end: int) -> None:
        self.requests.append({"deleteContentRange": {"range": self._range(start, end)}})

    def _put(self, at: int, atoms: Sequence[Atom], *, code: bool) -> None:
        if any(atom.is_thing for atom in atoms):
            raise self._refuse("an image, a footnote or a person cannot be written here")
        text = "".join(atom.text for atom in atoms)
        self.requests.append({"insertText": {"location": {"index": at, **self._tab}, "text": text}})
        start = at
        for number, atom in enumerate(atoms):
            start_of_run = number == 0 or atoms[number - 1].style != atom.style
            if start_of_run:
                end = start
                for other in atoms[number:]:
                    if other.style != atom.style:
                        break
                    end += other.units
                self.requests.append({
                    "updateTextStyle": {
                        "range": self._range(start, end), "textStyle": _text_style(atom.style),
                        "fields": _CODE_FIELDS if code else _FIELDS,
                    }
                })  # fmt: skip
            start += atom.units

    def _shape(self, form: Form, was: Form, start: int, end: int, *, new: bool = False) -> None:
        where = self._range(start, end)
        level = form.level if form.kind == "heading" else 0
        if level != (was.level if was.kind == "heading" else 0):
            named = f"HEADING_{level}" if level else "NORMAL_TEXT"
            style = {"range": where, "paragraphStyle": {"namedStyleType": named}, "fields": "namedStyleType"}
            self.requests.append({"updateParagraphStyle": style})
        if form.kind == "item" and (new or was != form):
            if not new and form.level:
                tabs = {"location": {"index": start, **self._tab}, "text": "\t" * form.level}
                self.requests.append({"insertText": tabs})
                where = self._range(start, end + form.level)
            preset = "NUMBERED_DECIMAL_ALPHA_ROMAN" if form.ordered else "BULLET_DISC_CIRCLE_SQUARE"
            self.requests.append({"createParagraphBullets": {"range": where, "bulletPreset": preset}})
        elif was.kind == "item" and form.kind != "item":
            self.requests.append({"deleteParagraphBullets": {"range": where}})


def _alike(block: Block, text: str) -> bool:
    """Whether a block can become this text without another one."""
    return (block.form.kind == "table") == text.startswith("|")


def _text_style(style: Style) -> Request:
    made: Request = {"bold": style.bold, "italic": style.italic, "strikethrough": style.struck}
    if style.link:
        made["link"] = {"url": style.link}
    if style.code:
        made["weightedFontFamily"] = {"fontFamily": "Roboto Mono"}
    return made


# --------------------------------------------------------------------------------------------------------- parsing


def _parsed(text: str, known: Sequence[Atom]) -> tuple[Form, list[Atom]]:
    fence = _FENCE.match(text)
    if fence is not None:
        lines = text.split("\n")[1:]
        if lines and lines[-1].strip() == fence[1]:
            lines.pop()
        return Form("code"), [Atom(character, Style(code=True)) for character in "\n".join(lines)]
    item = _ITEM.fullmatch(text)
    if item is not None:
        depth = min(len(item[1].expandtabs(4)) // 2 if "    " not in item[1] else len(item[1].expandtabs(4)) // 4, 8)
        return Form("item", depth, item[3] is not None), _inline(item[4] or "", known)
    heading = _HEADING.fullmatch(text)
    if heading is not None:
        return Form("heading", len(heading[1])), _inline(heading[2], known)
    return Form(), _inline(text, known)


@cache
def _parser() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("strikethrough")


def _inline(text: str, known: Sequence[Atom]) -> list[Atom]:
    """The characters of inline Markdown; things of the old text are found again by what stands for them."""
    things = [atom for atom in known if atom.is_thing]
    for number, thing in enumerate(things):
        text = text.replace(thing.text, chr(_THING + number), 1)
    atoms: list[Atom] = []
    bold = italic = struck = 0
    links: list[str] = []

    def style(*, code: bool = False) -> Style:
        return Style(bold > 0, italic > 0, struck > 0, code, links[-1] if links else "")

    def add(words: str, given: Style) -> None:
        for character in words:
            number = ord(character) - _THING
            atoms.append(things[number] if 0 <= number < len(things) else Atom(character, given))

    for token in (_parser().parseInline(text)[0].children) or ():
        match token.type:
            case "text" | "html_inline" | "text_special":
                add(token.content, style())
            case "code_inline":
                add(token.content, style(code=True))
            case "strong_open" | "strong_close":
                bold += token.nesting
            case "em_open" | "em_close":
                italic += token.nesting
            case "s_open" | "s_close":
                struck += token.nesting
            case "link_open":
                links.append(str(token.attrs.get("href", "")))
            case "link_close":
                links.pop()
            case "softbreak":
                add(" ", style())
            case "hardbreak":
                add("\x0b", style())
            case "image":
                atoms.append(Atom(f"![{token.content}]({token.attrs.get('src', '')})", PLAIN, True, 1))
            case _:
                add(token.content, style())
    return atoms


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))]
