-- Of what came back from a cold address: what the books had there, so that custody held it all the time; and what is
-- beyond that, so that an operator brought it, which is booked like any other top-up. Both are decided when it is booked.
ALTER TABLE treasury_topups ADD COLUMN known_units units NOT NULL DEFAULT 0;
ALTER TABLE treasury_topups ADD COLUMN excess_units units NOT NULL DEFAULT 0;
-- Nothing was booked of earlier ones. They took no more from a cold address than spends had brought there.
UPDATE treasury_topups t SET known_units = LEAST(t.units, GREATEST(0, b.brought - b.before)) FROM (
    SELECT r.id,
        COALESCE((SELECT sum(c.units) FROM (
            SELECT div(sum(m.units) * 10::numeric ^ l.scale, 10::numeric ^ m.decimals) AS units
            FROM spends s JOIN spend_outputs o ON o.spend_id = s.id
            JOIN spend_movements m ON m.spend_id = s.id AND m.address = o.recipient AND m.currency = s.currency
            JOIN ledger_scales l ON l.currency = m.currency
            WHERE s.purpose = 'cold' AND s.network = r.network AND m.currency = r.currency GROUP BY m.decimals, l.scale
        ) c), 0) - COALESCE((SELECT sum(v.units) FROM treasury_moves v
            WHERE v.from_network = r.network AND v.currency = r.currency), 0) AS brought,
        sum(r.units) OVER (PARTITION BY r.network, r.currency ORDER BY r.block_height, r.id) - r.units AS before
    FROM treasury_topups r WHERE r.origin = 'cold' AND r.status = 'booked'
) b WHERE b.id = t.id;
