"""What a store holds: ids, chunks, trees, revisions, addresses."""
