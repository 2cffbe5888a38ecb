"""GNU's column layout of names, and their quoting styles."""

from __future__ import annotations

from ramet.commands.framework.command import quote, shown
from ramet.commands.framework.messages import c_escaped


def quoted_name(name: str, style: str) -> str:
    """Return a name in one of GNU's quoting styles."""
    if style in ("shell", "shell-always") and not name.isprintable():
        # Without escapes only the quotes are left, around the characters as they are.
        visible = "".join(c for c in name if c.isprintable() or c in "\t\n")
        if style == "shell" and (not visible or shown(visible) == visible):
            return name
        return "'" + name.replace("'", "'\\''") + "'"
    if style in ("shell", "shell-escape"):
        return shown(name)
    if style in ("shell-always", "shell-escape-always"):
        return quote(name)
    if style == "curly":
        return "\u2018" + c_escaped(name, "") + "\u2019"
    if style in ("locale", "clocale"):
        return "'" + c_escaped(name, "'") + "'" if style == "locale" else '"' + c_escaped(name, '"') + '"'
    if style == "escape":
        return c_escaped(name, " ")
    if style == "c-maybe":
        tame = name.replace("\\", "")
        return name if c_escaped(tame, '"') == tame else '"' + c_escaped(name, '"') + '"'
    return '"' + c_escaped(name, '"') + '"'


_NARROWEST = 3
"""No column is narrower: a character and two spaces."""


def columns(labels: list[str], widths: list[int], limit: int, across: bool, tab: int = 8, end: str = "\n") -> str:
    """GNU's column layout: as many columns as fit, two spaces between, tabs where they reach."""
    count = len(labels)
    best, best_widths, best_rows = 1, [max(widths) + 2], count
    for cols in range(min(count, max(1, -(-limit // _NARROWEST))), 1, -1):
        rows = -(-count // cols)
        if (sizes := _column_sizes(widths, cols, rows, limit, across)) is not None:
            best, best_widths, best_rows = cols, sizes, rows
            break
    out: list[str] = []
    for row in range(best_rows):
        position = column = 0
        picks = range(row * best, min((row + 1) * best, count)) if across else range(row, count, best_rows)
        for n, i in enumerate(picks):
            if n:
                out.append(_indent(position, column, tab))
                position = column
            out.append(labels[i])
            position += widths[i]
            column += best_widths[n]
        out.append(end)
    return "".join(out)


def _column_sizes(widths: list[int], cols: int, rows: int, limit: int, across: bool) -> list[int] | None:
    """Return the widths of `cols` columns, or None if they do not fit the limit."""
    sizes, total = [_NARROWEST] * cols, _NARROWEST * cols
    for i, width in enumerate(widths):
        col = i % cols if across else i // rows
        wanted = width + (0 if col == cols - 1 else 2)
        if wanted > sizes[col]:
            total += wanted - sizes[col]
            sizes[col] = wanted
            if total >= limit:
                return None
    return sizes


def _indent(start: int, to: int, tab: int) -> str:
    out = ""
    while start < to:
        if tab and to // tab > (start + 1) // tab:
            out += "\t"
            start += tab - start % tab
        else:
            out += " "
            start += 1
    return out
