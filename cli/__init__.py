"""The `sluice` command, for operators and developers."""
