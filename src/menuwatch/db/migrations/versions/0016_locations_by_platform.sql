-- A platform's ids are its own: two platforms may know different shops by one number. The table keeps its first platform's name, because
-- others' SQL knows it by that; the locations of every platform are in it.
ALTER TABLE dutchie_discovery_locations ADD COLUMN platform text;
UPDATE dutchie_discovery_locations l
   SET platform = coalesce((SELECT d.platform FROM dispensaries d WHERE d.id = l.dispensary_id), 'dutchie');
ALTER TABLE dutchie_discovery_locations ALTER COLUMN platform SET DEFAULT 'dutchie', ALTER COLUMN platform SET NOT NULL;
ALTER TABLE dutchie_discovery_locations DROP CONSTRAINT dutchie_discovery_locations_platform_dispensary_id_key;
CREATE UNIQUE INDEX dutchie_discovery_locations_store ON dutchie_discovery_locations (platform, platform_dispensary_id);
