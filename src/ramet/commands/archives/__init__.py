"""Archive and compression commands: tar, zip, gzip and the rest."""
