"""Gives merchants turns, in SQL: one's crowd costs the others neither their places nor time.

Used by models.payouts.queue, models.payout_links, models.batches. It hops from merchant to merchant by an index that
begins with what `waiting` asks for and merchant_id: the cost is that of the merchants, not of their rows.
"""

from __future__ import annotations

from core.ids import NIL


def walk(table: str, waiting: str, *, after: str = f"'{NIL}'", most: str = "NULL") -> str:
    """Return SQL for the beginning of a statement: `walk (merchant_id, number)` names merchants with waiting rows.

    table: with its alias, by which `waiting` names columns. The last row's merchant_id is NULL where all were passed.
    """
    alias = table.rsplit(maxsplit=1)[-1]
    hop = f"SELECT {alias}.merchant_id FROM {table} WHERE {waiting} AND {alias}.merchant_id >"
    return (
        f"WITH RECURSIVE walk (merchant_id, number) AS (SELECT ({hop} {after} ORDER BY 1 LIMIT 1), 1 UNION ALL"
        f" SELECT ({hop} walk.merchant_id ORDER BY 1 LIMIT 1), walk.number + 1 FROM walk"
        f" WHERE walk.merchant_id IS NOT NULL AND (walk.number < {most}) IS NOT FALSE)"
    )


def fair(table: str, waiting: str, *, due: str, order: str, since: str, whose: str = "TRUE") -> str:
    """Return SQL for the ids of up to %(limit)s due rows: a turn of each merchant before the second of any.

    due: a further condition on a waiting row; whose: one on its merchant, walk.merchant_id. order: of a merchant's
    rows, by which the index gives them; since: the column by which the same turns of all merchants are ordered.
    """
    alias = table.rsplit(maxsplit=1)[-1]
    return (
        f"{walk(table, waiting)} SELECT due.id FROM walk CROSS JOIN LATERAL ("
        f"SELECT {alias}.id, {alias}.{since} AS since, row_number() OVER (ORDER BY {order}) AS turn FROM {table}"
        f" WHERE {waiting} AND {alias}.merchant_id = walk.merchant_id AND {due} ORDER BY {order} LIMIT %(limit)s) due"
        f" WHERE {whose} ORDER BY due.turn, due.since, due.id LIMIT %(limit)s"
    )
