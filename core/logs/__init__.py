"""Writes the log, hides secrets from it, and limits how often an event repeats."""
