"""Object storage and numbered logs: everything a store needs of a server."""
