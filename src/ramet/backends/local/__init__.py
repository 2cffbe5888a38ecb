"""Trees on this machine: in memory and on disk."""
