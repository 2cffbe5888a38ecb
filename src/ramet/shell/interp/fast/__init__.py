"""Shortcuts for common commands; each must equal what run/ does."""
