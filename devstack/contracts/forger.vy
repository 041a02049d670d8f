# pragma version ~=0.4.3
# pragma evm-version paris
"""
@title Writes Transfer logs that move nothing, in every shape that a careless scanner would credit.
"""

event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    value: uint256

TRANSFER: constant(bytes32) = keccak256("Transfer(address,address,uint256)")


@external
def erc20(receiver: address, amount: uint256):
    log Transfer(sender=msg.sender, receiver=receiver, value=amount)


@external
def erc721(receiver: address, token_id: uint256):
    raw_log([TRANSFER, convert(msg.sender, bytes32), convert(receiver, bytes32), convert(token_id, bytes32)], b"")


@external
def erc721_with_data(receiver: address, token_id: uint256):
    raw_log(
        [TRANSFER, convert(msg.sender, bytes32), convert(receiver, bytes32), convert(token_id, bytes32)],
        convert(token_id, bytes32),
    )


@external
def unindexed(receiver: address, amount: uint256):
    raw_log([TRANSFER], abi_encode(msg.sender, receiver, amount))


@external
def long_data(receiver: address, amount: uint256):
    raw_log([TRANSFER, convert(msg.sender, bytes32), convert(receiver, bytes32)], abi_encode(amount, amount))


@external
def odd_receiver(receiver: address, amount: uint256):
    # The receiver's topic carries bytes above the address: no honest token writes that.
    dirty: bytes32 = convert(convert(receiver, uint256) + (1 << 160), bytes32)
    raw_log([TRANSFER, convert(msg.sender, bytes32), dirty], convert(amount, bytes32))
