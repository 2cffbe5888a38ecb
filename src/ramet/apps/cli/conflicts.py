"""Merge conflicts on the command line: show both sides, read --take, resolve in an editor."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Final

from ramet.apps.cli.patches import show_patches
from ramet.apps.cli.terminal import has_terminal
from ramet.core.errors import RametError

if TYPE_CHECKING:
    from ramet.apps.client.reference import RemoteRef
    from ramet.store.verbs.merge import Side
    from ramet.store.verbs.revert import MergeResult
    from ramet.workspace.stored.reference import StoredWorkspaceRef

EDITORS: Final = ("editor", "nano", "vi")
"""Programs that edit where neither $VISUAL nor $EDITOR names one."""
_MARKER: Final = re.compile(rb"^(<<<<<<<|=======|>>>>>>>)", re.MULTILINE)


def parse_sides(take: list[str], ours: bool, theirs: bool) -> dict[str, Side]:
    """Return which side resolves which path; `*` is every other one."""
    if ours and theirs:
        raise RametError("invalid_argument", "cannot take both sides", "Pass --ours or --theirs.")
    sides: dict[str, Side] = {"*": "ours"} if ours else {"*": "theirs"} if theirs else {}
    for word in take:
        path, _, side = word.rpartition("=")
        if side == "ours" and path:
            sides[path] = "ours"
        elif side == "theirs" and path:
            sides[path] = "theirs"
        else:
            raise RametError("invalid_argument", f"cannot read --take {word}", "Write --take PATH=ours or PATH=theirs.")
    return sides


def show_conflicts(handle: StoredWorkspaceRef | RemoteRef, other: str, result: MergeResult) -> None:
    """Print each conflict as a patch from our side to theirs, and how to resolve them."""
    from ramet.workspace.stored.file_patch import file_patch

    theirs = other if "@" in other else f"{other}@head"
    for conflict in result.conflicts:
        print(f"conflict: {conflict.path}: {conflict.why}")
    sys.stdout.flush()
    contents = ((c.path, _content(handle, c.path, None), _content(handle, c.path, theirs)) for c in result.conflicts)
    show_patches(
        file_patch(path, mine, yours) for path, mine, yours in contents if mine is not None or yours is not None
    )
    print("nothing was merged; pass --ours, --theirs, --take PATH=ours, or --edit", file=sys.stderr)


def edit_conflicts(handle: StoredWorkspaceRef | RemoteRef, other: str, result: MergeResult) -> dict[str, bytes]:
    """Let the user edit each conflict between markers; return the contents."""
    from ramet.store.verbs.merge import conflict_text

    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor and has_terminal():
        editor = next(filter(shutil.which, EDITORS), None)
    if not editor:
        raise RametError("invalid_argument", "cannot edit conflicts: no editor is set", "Set $EDITOR, or pass --take.")
    theirs = other if "@" in other else f"{other}@head"
    found: dict[str, bytes] = {}
    for conflict in result.conflicts:
        sides = [_content(handle, conflict.path, revision) for revision in (None, theirs)]
        before = _content(handle, conflict.path, result.base) if result.base else None
        text = (
            None
            if None in sides
            else conflict_text(before or b"", sides[0] or b"", sides[1] or b"", (handle.name, other))
        )
        if text is None:
            raise RametError(
                "invalid_argument", f"cannot edit {conflict.path}: not text on both sides",
                f"Pass --take {conflict.path}=ours or --take {conflict.path}=theirs.",
            )  # fmt: skip
        found[conflict.path] = _edit(editor, conflict.path, text)
    return found


def _edit(editor: str, path: str, text: bytes) -> bytes:
    name = os.path.basename(path).replace("\0", "")
    with tempfile.TemporaryDirectory(prefix="ramet-merge-") as folder:
        place = os.path.join(folder, name)
        with open(place, "wb") as file:
            file.write(text)
        while True:
            status = subprocess.call([*shlex.split(editor), place])
            with open(place, "rb") as file:
                edited = file.read()
            if status == 0 and not _MARKER.search(edited):
                return edited
            why = f"the editor ended with status {status}" if status else "markers are left in it"
            if status or not has_terminal() or not _again(f"{path}: {why}. Edit it again?"):
                raise RametError(
                    "invalid_argument", f"cannot resolve {path}: {why}", "Nothing was merged; merge again."
                )  # fmt: skip


def _again(question: str) -> bool:
    """Ask on the terminal; Return and Y mean yes, the end of input means no."""
    try:
        return input(f"{question} [Y/n] ").strip().lower() in ("", "y", "yes")
    except EOFError:
        return False


def _content(handle: StoredWorkspaceRef | RemoteRef, path: str, revision: str | None) -> bytes | None:
    """The content of a file of a revision; None where there is no such file."""
    with contextlib.suppress(RametError):
        return b"".join(handle.show(path, revision))
    return None
