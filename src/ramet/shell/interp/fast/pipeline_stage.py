"""Shortcut: run a stage of a pipeline that is a quick builtin without a separate task.

It equals `run/pipeline.py` because such a builtin writes at once and reads nothing: it has ended before the next
stage starts, or waits for its reader in a task as any other stage does.
"""

from __future__ import annotations

from typing import Any

from ramet.shell.interp.builtins import PROMPT_BUILTINS
from ramet.shell.plain_mode import FAST
from ramet.shell.syntax.nodes import Simple, Word
from ramet.shell.syntax.printer import word_text


def runs_inline(stage: Any) -> bool:
    """Return whether a stage is a builtin that needs no task."""
    if not FAST or not isinstance(stage, Simple) or stage.assigns or not stage.words:
        return False
    first = stage.words[0]
    return isinstance(first, Word) and word_text(first) in PROMPT_BUILTINS
