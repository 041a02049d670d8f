"""Values and pure rules: the ground floor, which imports nothing else of ours."""
