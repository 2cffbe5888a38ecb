"""JSON input and output of jq."""
