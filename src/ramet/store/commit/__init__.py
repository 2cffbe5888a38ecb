"""Write trees into a store: from memory, from a directory, from archives."""
