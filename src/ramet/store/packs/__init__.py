"""Packs: many chunks and trees in one object, with their indexes."""
