"""Shell patterns: tokens and matchers, for the shell's expansions and for fnmatch."""
