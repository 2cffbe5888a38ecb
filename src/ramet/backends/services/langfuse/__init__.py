"""Langfuse: `api` speaks to both generations of its servers, `project` is the resource."""
