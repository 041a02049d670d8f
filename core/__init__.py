"""Values and pure rules: the ground floor, which imports nothing else of ours."""

__version__ = "0.1.0"
