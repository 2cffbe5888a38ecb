"""The shell as a program: command line, startup files, interactive mode."""
