"""Compile awk programs to Python source."""
