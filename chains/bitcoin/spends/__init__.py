"""How bitcoin leaves: fees, coins, transactions and what becomes of them."""
