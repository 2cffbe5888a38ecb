"""The record: each change of a tree with its command, and the writer of each line."""
