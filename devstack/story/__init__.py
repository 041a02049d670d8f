"""The accounts of a development stack, and the story of the demonstration."""
