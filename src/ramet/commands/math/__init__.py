"""Calculation commands: bc, factor, numfmt, seq."""
