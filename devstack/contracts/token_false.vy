# pragma version ~=0.4.3
# pragma evm-version paris
"""
@title A token that answers false instead of reverting, and moves nothing. Same storage layout as token.vy.
"""

balanceOf: public(HashMap[address, uint256])
allowance: public(HashMap[address, HashMap[address, uint256]])
totalSupply: public(uint256)
name: public(String[32])
symbol: public(String[32])
decimals: public(uint8)


@external
def transfer(receiver: address, amount: uint256) -> bool:
    return False
