"""The database itself: connections, locks, pages, migrations, rights."""
