"""sqlite3: SQL on a database file of the tree."""
