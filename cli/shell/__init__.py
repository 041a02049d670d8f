"""The command line's surroundings: its settings, its words on errors and progress, completion."""
