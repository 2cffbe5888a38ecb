"""The mount table as one file system: longest prefix wins, links resolve across mounts, files open as streams."""
