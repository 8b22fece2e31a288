-- Which backups there are: what is known of them here; the folders themselves may have gone since.

-- name: known
SELECT to_regclass('backups') IS NOT NULL AS known;

-- name: note
INSERT INTO backups (host, folder, backup, made_at, rows, files, bytes, missing)
VALUES (%(host)s, %(folder)s, %(backup)s, %(made_at)s, %(rows)s, %(files)s, %(bytes)s, %(missing)s)
    ON CONFLICT (host, folder) DO UPDATE
       SET backup = excluded.backup, made_at = excluded.made_at, rows = excluded.rows, files = excluded.files, bytes = excluded.bytes,
           missing = excluded.missing
     WHERE backups.made_at < excluded.made_at;

-- name: newest
SELECT host, folder, made_at, rows, files, bytes, missing FROM backups ORDER BY made_at DESC, host, folder LIMIT %(limit)s;
