"""What users do with revisions: fork, revert, merge, diff, blame, bisect, export."""
