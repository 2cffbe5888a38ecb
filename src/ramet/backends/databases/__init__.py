"""Databases as trees: PostgreSQL, MongoDB, Redis."""
