"""Text formats that the shell and the commands share: dates, globs, quoting, case."""
