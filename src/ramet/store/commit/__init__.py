"""Commit: write trees into a store from memory, host directories and archives."""
