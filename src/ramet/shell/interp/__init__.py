"""Running shell programs: `Shell` runs text in a `ShellState`."""

from ramet.shell.interp.main.shell import Hook, Shell
from ramet.shell.interp.state.shell_state import ShellState

__all__ = ["Hook", "Shell", "ShellState"]
