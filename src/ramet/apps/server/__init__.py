"""The HTTP server: workspaces of a store, and workspaces in memory, for programs on this machine or elsewhere."""
