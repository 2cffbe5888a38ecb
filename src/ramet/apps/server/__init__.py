"""The HTTP server: stored workspaces and workspaces in memory."""
