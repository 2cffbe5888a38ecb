"""Trees on other machines: SSH, HTTP, mail, fsspec."""
