"""Declares the requests and answers of the HTTP edge, allowed targets and source addresses, and e-mails."""
