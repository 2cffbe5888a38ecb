"""The awk language: lexer, parser and tree."""
