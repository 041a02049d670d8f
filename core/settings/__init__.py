"""The operator's settings, read once from the environment, and the rules that they obey."""
