# pragma version ~=0.4.3
# pragma evm-version paris
"""
@title A token whose issuer freezes holders, as the great stable coins do. Same storage layout as token.vy, and one more.
"""

event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    value: uint256

balanceOf: public(HashMap[address, uint256])
allowance: public(HashMap[address, HashMap[address, uint256]])
totalSupply: public(uint256)
name: public(String[32])
symbol: public(String[32])
decimals: public(uint8)
isFrozen: public(HashMap[address, bool])


@external
def freeze(holder: address):
    self.isFrozen[holder] = True


@external
def transfer(receiver: address, amount: uint256) -> bool:
    assert not self.isFrozen[msg.sender], "frozen"
    assert not self.isFrozen[receiver], "frozen"
    self.balanceOf[msg.sender] -= amount
    self.balanceOf[receiver] += amount
    log Transfer(sender=msg.sender, receiver=receiver, value=amount)
    return True
