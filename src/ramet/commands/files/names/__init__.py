"""Commands on file names: basename, dirname, readlink, realpath, pathchk, which, whereis."""
