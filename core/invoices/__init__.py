"""Invoices as requests ask for them, as their states follow each other, and as they are shown."""
