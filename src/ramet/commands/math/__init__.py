"""Calculation commands: bc, expr, seq, numfmt."""
