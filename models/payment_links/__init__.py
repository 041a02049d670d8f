"""Payment links and what is bought over them."""
