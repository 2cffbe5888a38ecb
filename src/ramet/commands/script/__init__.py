"""Commands that scripts call for output, conditions and arithmetic: echo, printf, test, expr."""
