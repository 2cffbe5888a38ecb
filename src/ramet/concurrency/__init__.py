"""How work shares one process: offloading, fair turns, recursion, size thresholds."""
