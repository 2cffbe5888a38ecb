"""The virtual file system: the mount table as one tree with links, open files and devices."""
