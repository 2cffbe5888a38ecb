"""The HTTP handlers, one file per subject."""
