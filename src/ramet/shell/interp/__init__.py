"""Running shell programs: `Shell` runs text in a `Session`."""

from ramet.shell.interp.main.shell import Hook, Shell
from ramet.shell.interp.state.shell_state import Session

__all__ = ["Hook", "Session", "Shell"]
