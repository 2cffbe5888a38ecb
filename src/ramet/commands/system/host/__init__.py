"""Commands that describe the host and the user: uname, id, hostname and the like."""
