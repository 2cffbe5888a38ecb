"""awk programs to Python source."""
