"""Declares the requests and answers of the HTTP edge, the targets it may call and the addresses it is called from."""
