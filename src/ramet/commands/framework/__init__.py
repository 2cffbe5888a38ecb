"""Command framework: declaration, option parsing, help, inputs and messages."""
