"""Word expansion: parameters, braces, tildes, quotes and field splitting."""
