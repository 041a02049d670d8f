"""The schema, as numbered SQL files that models.migrate applies in order."""
