"""The pool of deposit addresses, and who has which."""
