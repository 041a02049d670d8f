"""How often who may ask."""
