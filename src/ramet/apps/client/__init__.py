"""The HTTP client: workspaces of a server with the names of a local store."""
