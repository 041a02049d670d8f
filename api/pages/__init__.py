"""The hosted pages of payments and cheques."""
