"""Calls that came through the queue, with their stored responses."""
