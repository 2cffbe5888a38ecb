"""`RAMET_PLAIN=1`: run every command the general way, without the shell's shortcuts.

Set it in the environment of the process to find out whether a shortcut is at fault. A shortcut is any path that skips
steps of the general way: the modules of `interp/fast/`, direct stores of plain variables, prepared arithmetic, and
patterns compiled ahead. Each must give the result that the general way gives.
"""

from __future__ import annotations

import os
from typing import Final

FAST: Final = os.environ.get("RAMET_PLAIN", "") in ("", "0")
"""Whether shortcuts are compiled; read once, when the shell is imported."""
