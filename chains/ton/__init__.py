"""TON: reads cells, blocks and accounts through toncenter, and sends by wallets of version 5."""
