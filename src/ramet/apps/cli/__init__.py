"""The `ramet` command line."""
