"""Declares values and pure rules. The lowest layer: it imports none of our other packages."""

__version__ = "0.1.0"
