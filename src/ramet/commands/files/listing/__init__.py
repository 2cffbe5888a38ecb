"""Commands that list files and their attributes: ls, tree, du, df, stat."""
