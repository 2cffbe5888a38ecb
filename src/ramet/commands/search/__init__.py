"""Search commands: grep, rg, find, fd."""
