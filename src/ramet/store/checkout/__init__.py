"""Checkout: read trees from a store into memory or into a directory."""
