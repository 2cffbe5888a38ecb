"""Text commands: cat, cut, sort, tr, wc and the rest."""
