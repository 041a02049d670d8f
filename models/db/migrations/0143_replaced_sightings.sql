-- One that left the pools and was replaced holds no quote: it is not about to be included.
UPDATE sightings SET is_soon = false WHERE lost_height IS NOT NULL AND replaced_by IS NOT NULL AND is_soon;
