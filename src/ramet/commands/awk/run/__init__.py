"""What a running awk program uses: values, fields, records, streams, builtins."""
