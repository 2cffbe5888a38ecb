"""Live workspaces bound to a store: leases, commits, drafts, recovery."""
