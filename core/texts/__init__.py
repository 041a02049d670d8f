"""Writes letters, QR codes and amounts as people read them."""
