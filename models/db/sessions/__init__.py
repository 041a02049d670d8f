"""How sessions with PostgreSQL are watched, kept and, behind a pooler, refused. Used by models.db.base."""
