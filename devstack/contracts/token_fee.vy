# pragma version ~=0.4.3
# pragma evm-version paris
"""
@title A token that keeps one percent of each transfer for a collector. Same storage layout as token.vy.
"""

event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    value: uint256

COLLECTOR: constant(address) = 0x000000000000000000000000000000000000dEaD

balanceOf: public(HashMap[address, uint256])
allowance: public(HashMap[address, HashMap[address, uint256]])
totalSupply: public(uint256)
name: public(String[32])
symbol: public(String[32])
decimals: public(uint8)


@external
def transfer(receiver: address, amount: uint256) -> bool:
    fee: uint256 = amount // 100
    self.balanceOf[msg.sender] -= amount
    self.balanceOf[COLLECTOR] += fee
    self.balanceOf[receiver] += amount - fee
    log Transfer(sender=msg.sender, receiver=COLLECTOR, value=fee)
    log Transfer(sender=msg.sender, receiver=receiver, value=amount - fee)
    return True
