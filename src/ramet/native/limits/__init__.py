"""Bounds of a box that are no rlimits: control groups, and the bytes of all its files."""
