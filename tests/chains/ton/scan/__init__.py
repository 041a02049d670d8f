"""Tests of chains.ton.scan, which finds transfers in the blocks of shards."""
