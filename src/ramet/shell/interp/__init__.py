"""Running shell programs: `Shell` runs text in a `Session`."""

from ramet.shell.interp.session import Session
from ramet.shell.interp.shell import Hook, Shell

__all__ = ["Hook", "Session", "Shell"]
