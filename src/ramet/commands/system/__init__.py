"""Commands about processes, time and the system."""
