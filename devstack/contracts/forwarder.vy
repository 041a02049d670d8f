# pragma version ~=0.4.3
# pragma evm-version paris
"""
@title Moves coin and tokens from inside a contract, as exchanges and smart wallets do.
"""

interface Token:
    def transfer(receiver: address, amount: uint256) -> bool: nonpayable


@external
@payable
def forward(receiver: address):
    raw_call(receiver, b"", value=msg.value)


@external
@payable
def forward_and_revert(receiver: address):
    raw_call(receiver, b"", value=msg.value)
    raise "reverted after the transfer"


@external
def pay_twice(token: address, receiver: address, first: uint256, second: uint256):
    extcall Token(token).transfer(receiver, first)
    extcall Token(token).transfer(receiver, second)


@external
def pay_and_revert(token: address, receiver: address, amount: uint256):
    extcall Token(token).transfer(receiver, amount)
    raise "reverted after the transfer"
