"""Mutable state of a store: heads, leases, tags, grants, retention, drafts, the change feed."""
