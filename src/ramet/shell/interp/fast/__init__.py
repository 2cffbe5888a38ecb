"""Shortcuts for common commands, each equal to the general way in `run/`.

Every module states at its top why it equals the general way, and checks at run time what that depends on.
`RAMET_PLAIN=1` in the environment of the process switches all shortcuts off, to find out whether one is at fault.
"""

from __future__ import annotations

import os
from typing import Final

FAST: Final = os.environ.get("RAMET_PLAIN", "") in ("", "0")
"""Whether shortcuts are compiled; read once, when the shell is imported."""
