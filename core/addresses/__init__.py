"""The written forms of addresses: one module for each family of chains, and addresses.py for who asks by network."""
