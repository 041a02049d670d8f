"""What leaves our addresses on TRON: tried, signed, sent, followed, and brought home."""
