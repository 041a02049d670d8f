"""The pool of deposit addresses: filled by the signer, tidied by maintenance."""
