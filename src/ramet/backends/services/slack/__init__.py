"""Slack: `api` asks, `texts` renders, `workspace` is the resource."""
