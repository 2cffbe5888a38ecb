"""`python -m ramet.apps.cli`."""

from ramet.apps.cli import main

main()
