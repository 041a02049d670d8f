"""What operators and developers type: the `sluice` command."""
