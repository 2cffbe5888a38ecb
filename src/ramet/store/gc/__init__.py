"""Garbage collection and consolidation of packs."""
