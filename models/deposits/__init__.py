"""What came to addresses: deposits, their crediting, their witnesses, and how far the scan has come."""
