"""The runtime of awk programs: values, fields, records, streams, built-in functions."""
