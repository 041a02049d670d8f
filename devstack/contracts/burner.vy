# pragma version ~=0.4.3
# pragma evm-version paris
"""
@title Takes coin in a trial that costs nothing, or before a block; else burns all gas that it is given.
"""

since: public(uint256)


@external
@payable
def __default__():
    if tx.gasprice > 0 and block.number >= self.since:
        raise UNREACHABLE
