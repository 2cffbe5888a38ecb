"""Commands on processes: ps, kill, pgrep, pidof."""
