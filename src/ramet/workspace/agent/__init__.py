"""Workspaces for agents: sandboxes and model tools."""
