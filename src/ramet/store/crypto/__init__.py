"""Encryption: keys, keyrings, and objects that are encrypted at rest."""
