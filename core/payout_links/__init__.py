"""Cheques as requests ask for them and as they are shown, and the tokens that claim them."""
