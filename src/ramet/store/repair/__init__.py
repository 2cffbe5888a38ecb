"""Verify a store, and bring back what damage took."""
