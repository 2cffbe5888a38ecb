"""What every command is built on: declaration, options, help, inputs, messages."""
