"""Print patches: coloured on a terminal, through a pager when they are long, or counted by file."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol

from ramet.apps.cli.output import plural, show

if TYPE_CHECKING:
    from ramet.workspace.stored.file_patch import FilePatch

_HUNK: Final = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_RANGES: Final = ("old_start", "old_lines", "new_start", "new_lines")
BAR: Final = 40
"""Characters of the longest bar of `--stat`."""


class Writer(Protocol):
    """Takes bytes of the output."""

    def __call__(self, data: bytes, /) -> object: ...


def show_patches(patches: Iterable[FilePatch], context: int = 3, head: str = "") -> None:
    """Print patches one after the other, below a text."""
    color = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM", "dumb") != "dumb"
    with _pager() as write:
        empty = not head
        write(head.encode("utf-8", "replace"))
        for patch in patches:
            empty = False
            for line in patch.lines(color=color, context=context):
                write(line)
    if empty:
        print("nothing differs", file=sys.stderr)


def hunks(patch: FilePatch, context: int = 3) -> list[dict[str, Any]]:
    """Return the hunks of a patch for programs: where they begin, how many lines they have, and the lines."""
    found: list[dict[str, Any]] = []
    for line in b"".join(patch.lines(context=context)).split(b"\n")[:-1]:
        if head := _HUNK.match(line):
            numbers = [1 if text is None else int(text) for text in head.groups()]
            found.append({**dict(zip(_RANGES, numbers, strict=True)), "lines": []})
        elif found:
            found[-1]["lines"].append(line.decode("utf-8", "replace"))
    return found


def show_stat(patches: list[FilePatch], as_json: bool = False) -> None:
    """Print the number of added and removed lines of each file, and their sum."""
    if as_json or not patches:
        rows = [
            {"change": p.what, "path": p.path, "added": p.added, "removed": p.removed,
             **({"from": p.old} if p.old else {}), **({"note": p.note} if p.note else {})}
            for p in patches
        ]  # fmt: skip
        show(rows, (), as_json, empty="nothing differs")
        return
    names = [f"{p.old} => {p.path}" if p.old else p.path for p in patches]
    most = max(p.added + p.removed for p in patches)
    scale = min(1.0, BAR / most) if most else 1.0
    width, digits = max(map(len, names)), len(str(most))
    for name, patch in zip(names, patches, strict=True):
        count = patch.note or f"{patch.added + patch.removed:>{digits}}"
        bar = "+" * round(patch.added * scale) + "-" * round(patch.removed * scale)
        print(f" {name:<{width}} | {count} {bar}".rstrip())
    added, removed = sum(p.added for p in patches), sum(p.removed for p in patches)
    files = plural(len(patches), "path")
    print(f" {files} changed, {plural(added, 'line')} added, {plural(removed, 'line')} removed")


@contextlib.contextmanager
def _pager() -> Iterator[Writer]:
    """Write to `$PAGER` (default: less, which leaves at once what fits on the screen) on a terminal, else to stdout."""
    command = os.environ.get("PAGER", "less")
    if not sys.stdout.isatty() or command in ("", "cat") or shutil.which(command.split()[0]) is None:
        yield sys.stdout.buffer.write
        sys.stdout.buffer.flush()
        return
    child = subprocess.Popen(command, shell=True, stdin=subprocess.PIPE, env={"LESS": "FRX", "LV": "-c", **os.environ})
    assert child.stdin is not None
    try:
        yield child.stdin.write
    except BrokenPipeError:
        pass  # the reader has seen enough
    finally:
        with contextlib.suppress(BrokenPipeError):
            child.stdin.close()
        while True:
            try:
                child.wait()
                break
            except KeyboardInterrupt:
                continue  # the pager handles it
