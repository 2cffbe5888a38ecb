"""Operations on revisions: fork, revert, merge, diff, blame, bisect, export."""
