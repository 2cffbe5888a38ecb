"""The MCP server: a workspace for models, over stdio or streamable HTTP."""
