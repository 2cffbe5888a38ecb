"""The workspace: mounts, sessions, jobs, history, cache, snapshot and branches, composed from the engines below."""
