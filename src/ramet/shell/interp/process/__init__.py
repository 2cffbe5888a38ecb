"""Virtual processes: jobs, descriptors, signals, process groups."""
