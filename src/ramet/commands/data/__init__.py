"""Structured data commands: jq, yq, sqlite3, query."""
