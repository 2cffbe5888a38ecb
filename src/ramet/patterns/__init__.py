"""Regular expressions and shell patterns over bytes and text, on engines that cannot hang; depends on nothing above `core`."""
