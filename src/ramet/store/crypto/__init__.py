"""Encryption at rest: keys, keyrings and encrypted objects."""
