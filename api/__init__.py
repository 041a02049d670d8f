"""The HTTP side: authenticates, validates, calls an actor or reads PostgreSQL, answers. Domain rules live elsewhere."""
