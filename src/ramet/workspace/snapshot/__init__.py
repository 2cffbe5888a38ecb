"""Snapshots and copies: the one state of a workspace and its carriers."""
