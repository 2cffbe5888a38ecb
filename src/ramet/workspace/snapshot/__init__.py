"""Snapshots and copies of the state of a workspace."""
