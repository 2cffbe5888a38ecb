"""The workspace: mounts, sessions, jobs, history, cache, snapshots and branches."""
