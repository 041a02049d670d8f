"""Runs what is measured, takes its times, and prints them with their goals. Used by every benchmark."""
