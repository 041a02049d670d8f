"""What merchants set, move and owe: allowlists, terms, transfers, debts."""
