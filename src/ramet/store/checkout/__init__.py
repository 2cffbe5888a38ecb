"""Read trees out of a store: into memory or into a directory."""
