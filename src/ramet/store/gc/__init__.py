"""Collect garbage and consolidate packs."""
