-- What a backup has to know of a database, whatever its schema.

-- name: tables
-- Those of this schema that are not parts of others, with the columns that have to be kept: generated ones follow from the rest.
SELECT c.relname::text AS name,
       coalesce((SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_attribute a
                  WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''), '{}') AS columns
  FROM pg_class c
 WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = current_schema()::regnamespace
 ORDER BY c.relname;

-- name: parts
-- Parts of partitioned tables, each with the beginning of its range.
SELECT p.relname::text AS parent, (regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM \(''([^'']+)''\)'))[1] AS lower
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent
 WHERE p.relkind = 'p' AND p.relnamespace = current_schema()::regnamespace AND NOT i.inhdetachpending
 ORDER BY 1, 2;

-- name: sequences
-- Null where a sequence has given nothing yet.
SELECT sequencename::text AS name, last_value FROM pg_sequences WHERE schemaname = current_schema() ORDER BY 1;

-- name: set_sequence
SELECT setval(format('%%I', %(name)s::text)::regclass, %(last)s::bigint);

-- name: foreign_keys
-- Who refers to whom; those that refer to themselves are no matter, for a table is filled by one statement.
SELECT DISTINCT c.relname::text AS child, p.relname::text AS parent
  FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_class p ON p.oid = k.confrelid
 WHERE k.contype = 'f' AND k.conrelid <> k.confrelid AND c.relnamespace = current_schema()::regnamespace;

-- name: settled
-- Texts of values that do not depend on who asks, and no limits of time.
SELECT set_config(name, value, true)
  FROM (VALUES ('client_encoding', 'UTF8'), ('timezone', 'UTC'), ('datestyle', 'ISO, YMD'), ('intervalstyle', 'postgres'),
               ('extra_float_digits', '1'), ('bytea_output', 'hex'), ('statement_timeout', '0'), ('lock_timeout', '0'),
               ('idle_in_transaction_session_timeout', '0')) AS s (name, value);

-- name: restoring
-- How far a restore into this database is, as the comment of a table that is there meanwhile; null where there is none.
SELECT obj_description(to_regclass('menuwatch_restore'), 'pg_class');
