"""Hunks of a patch, the same for every format."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field


@dataclass
class Hunk:
    """Old and new lines, each with their mark: ` ` common, `-` old, `+` new. Lines keep their newline."""

    start: int
    new_start: int
    lines: list[tuple[str, bytes]]
    header: bytes = b""

    def old(self) -> list[bytes]:
        return [text for mark, text in self.lines if mark != "+"]

    def new(self) -> list[bytes]:
        return [text for mark, text in self.lines if mark != "-"]

    def reversed(self) -> Hunk:
        swap = {"-": "+", "+": "-", " ": " "}
        flipped = [(swap[mark], text) for mark, text in self.lines]
        # Keep removals before insertions, as a diff writes them.
        out: list[tuple[str, bytes]] = []
        run: list[tuple[str, bytes]] = []
        for item in flipped:
            if item[0] == " ":
                out += [*sorted(run, key=lambda x: x[0] == "+"), item]
                run = []
            else:
                run.append(item)
        out += sorted(run, key=lambda x: x[0] == "+")
        return Hunk(self.new_start, self.start, out, self.header)

    def edges(self) -> tuple[int, int]:
        """Return the number of common lines before the first and after the last change."""
        marks = [mark for mark, _ in self.lines]
        lead = next((i for i, m in enumerate(marks) if m != " "), len(marks))
        tail = next((i for i, m in enumerate(reversed(marks)) if m != " "), len(marks))
        return lead, tail


@dataclass
class FilePatch:
    old_name: str | None = None
    new_name: str | None = None
    index_name: str | None = None
    hunks: list[Hunk] = field(default_factory=list)
    git: bool = False
    new_file: bool = False
    deleted: bool = False
    rename_from: str | None = None
    rename_to: str | None = None
    mode: int | None = None
    kind: str = "unified"
    ed_script: list[bytes] = field(default_factory=list)
    old_stamp_epoch: bool = False
    new_stamp_epoch: bool = False
    headers: tuple[bytes, bytes] | None = None


def keep_lines(data: bytes) -> list[bytes]:
    """Split into lines that keep their newline."""
    return io.BytesIO(data).readlines()


def stripped_name(name: str | None, strip: str | None) -> str | None:
    if name is None:
        return None
    if strip is None:
        return name.rpartition("/")[2]
    parts = re.split(r"/+", name)
    count = int(strip)
    return "/".join(parts[count:]) if count < len(parts) else None
