"""Verify a store, and repair damage."""
