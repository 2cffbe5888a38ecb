"""The state of a shell: variables, options, functions, and its serialized form."""
