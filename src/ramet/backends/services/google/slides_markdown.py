"""Presentations as Markdown: the texts of a slide from top to bottom, and its speaker notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

TITLES: Final = frozenset(("TITLE", "CENTERED_TITLE"))


def deck(presentation: Mapping[str, Any]) -> str:
    slides = presentation.get("slides") or ()
    parts = [f"# {presentation.get('title') or 'Untitled'}\n"]
    parts += [f"---\n\n{slide_text(slide, number)}" for number, slide in enumerate(slides, 1)]
    return "\n".join(parts)


def notes(presentation: Mapping[str, Any]) -> str:
    parts = []
    for number, slide in enumerate(presentation.get("slides") or (), 1):
        text = notes_text(slide)
        if text:
            parts.append(f"## {number}\n\n{text}\n")
    return "\n".join(parts)


def slide_text(slide: Mapping[str, Any], number: int) -> str:
    """A slide: its title as a heading, then its other elements by their place."""
    title, blocks = "", []
    for element in _ordered(slide.get("pageElements") or ()):
        shape = element.get("shape") or {}
        kind = (shape.get("placeholder") or {}).get("type")
        if kind in TITLES and not title:
            title = " ".join(_paragraphs(shape.get("text") or {}))
        else:
            blocks += _blocks(element)
    heading = f"## {number}. {title}".rstrip(". ") if not title else f"## {number}. {title}"
    return "\n\n".join([heading, *blocks]) + "\n"


def notes_text(slide: Mapping[str, Any]) -> str:
    page = (slide.get("slideProperties") or {}).get("notesPage") or {}
    id = (page.get("notesProperties") or {}).get("speakerNotesObjectId")
    for element in page.get("pageElements") or ():
        if element.get("objectId") == id:
            return "\n\n".join(_paragraphs((element.get("shape") or {}).get("text") or {}))
    return ""


def _ordered(elements: Any, top: float = 0.0, left: float = 0.0) -> list[Mapping[str, Any]]:
    """Elements from top to bottom, then from left to right; those of groups stand where they are shown."""
    placed = [(y, x, number, element) for number, (y, x, element) in enumerate(_placed(elements, top, left))]
    return [element for *_, element in sorted(placed, key=lambda one: one[:3])]


def _placed(elements: Any, top: float, left: float) -> Iterator[tuple[float, float, Mapping[str, Any]]]:
    for element in elements:
        transform = element.get("transform") or {}
        y, x = top + float(transform.get("translateY", 0)), left + float(transform.get("translateX", 0))
        children = (element.get("elementGroup") or {}).get("children")
        if children:
            yield from _placed(children, y, x)
        else:
            yield y, x, element


def _blocks(element: Mapping[str, Any]) -> list[str]:
    if "table" in element:
        return [_table(element["table"])]
    if "image" in element or "video" in element:
        words = str(element.get("description") or element.get("title") or "")
        kind = "image" if "image" in element else "video"
        url = (element.get("video") or {}).get("url")
        return [f"[{kind}: {words}]({url})" if url else f"[{kind}: {words}]" if words else f"[{kind}]"]
    paragraphs = _paragraphs((element.get("shape") or {}).get("text") or {})
    blocks: list[str] = []
    for paragraph in paragraphs:
        is_item = paragraph.lstrip().startswith("- ")
        if is_item and blocks and blocks[-1].lstrip().startswith("- "):
            blocks[-1] += f"\n{paragraph}"
        else:
            blocks.append(paragraph)
    return blocks


def _paragraphs(text: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    prefix, line = "", ""

    def end() -> None:
        nonlocal line
        if line.strip():
            found.append(prefix + line.strip().replace("\x0b", " "))
        line = ""

    for element in text.get("textElements") or ():
        if "paragraphMarker" in element:
            end()
            bullet = element["paragraphMarker"].get("bullet")
            prefix = "" if bullet is None else "  " * int(bullet.get("nestingLevel", 0)) + "- "
        run = element.get("textRun")
        if run is not None:
            line += _run(str(run.get("content", "")), run.get("style") or {})
        line += str((element.get("autoText") or {}).get("content", ""))
    end()
    return found


def _run(content: str, style: Mapping[str, Any]) -> str:
    words = content.strip()
    if not words:
        return content
    start = content[: len(content) - len(content.lstrip())]
    end = content[len(content.rstrip()) :]
    marked = f"**{words}**" if style.get("bold") else words
    marked = f"*{marked}*" if style.get("italic") else marked
    url = (style.get("link") or {}).get("url")
    return f"{start}[{marked}]({url}){end}" if url else start + marked + end


def _table(table: Mapping[str, Any]) -> str:
    rows = [
        [" ".join(_paragraphs(cell.get("text") or {})).replace("|", "\\|") for cell in row.get("tableCells") or ()]
        for row in table.get("tableRows") or ()
    ]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if rows:
        lines.insert(1, f"|{' --- |' * len(rows[0])}")
    return "\n".join(lines)
