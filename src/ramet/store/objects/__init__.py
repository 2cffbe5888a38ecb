"""Object storage and append-only logs: the only interfaces to a storage server."""
