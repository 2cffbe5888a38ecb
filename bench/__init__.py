"""Benchmarks: ours beside the real tool and the installed peers, in one run, as ratios."""
