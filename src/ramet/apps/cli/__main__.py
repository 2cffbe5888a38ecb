"""`python -m ramet.apps.cli`."""

from ramet.apps.cli.entry import entry

entry()
