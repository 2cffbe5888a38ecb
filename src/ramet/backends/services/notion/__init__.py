"""Notion: `api` asks, `values` and `texts` render, `workspace` is the resource."""
