"""Commands that show stored objects and change nothing."""
