"""The commands of `sluice treasury` for a database that lost its last commits."""
