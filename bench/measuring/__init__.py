"""Runs the programs to measure, times them, and prints figures with their goals. Used by every benchmark."""
