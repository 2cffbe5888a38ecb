"""Surfaces of the library: command line, HTTP server, client, MCP, web page. They add no behaviour."""
