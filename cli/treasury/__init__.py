"""`sluice treasury`, and what it does after a database lost its last commits."""
