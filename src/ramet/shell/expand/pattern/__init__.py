"""Shell patterns: tokens, matcher and pathname expansion."""
