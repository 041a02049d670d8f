"""The signer: what it may sign, signs, sends, follows and finds again."""
