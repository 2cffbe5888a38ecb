"""Ramet: every backend as one file tree, a real shell over it, every state saved and versioned."""
