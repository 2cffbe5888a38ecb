"""Everything that moves: heads, tags, grants, retention, drafts, the change feed."""
