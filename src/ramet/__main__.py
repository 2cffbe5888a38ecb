"""`python -m ramet` is the `ramet` command."""

from ramet.apps.cli.entry import entry

entry()
