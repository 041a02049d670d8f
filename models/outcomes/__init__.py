"""The top layer of models: ends payouts and reverses deposits, with everything that depends on them."""
