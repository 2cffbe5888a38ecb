"""File commands: cp, mv, rm, ls, chmod and the rest."""
