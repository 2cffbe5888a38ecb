"""Comparison commands: diff and cmp."""
