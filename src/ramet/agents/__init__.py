"""Adapters: a workspace for agent frameworks. Each module needs its own extra."""
