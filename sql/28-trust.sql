-- Whose signatures count, and whether this database is the original (G3, G7).

-- Public keys that are trusted, for as long as they are.  No secret key is in any table.
CREATE TABLE trusted_key (
  kid           text        COLLATE "C" PRIMARY KEY,
  public_key    bytea       NOT NULL UNIQUE CHECK (octet_length(public_key) = 32),
  gateway       text        COLLATE "C",              -- whose reports it signs; NULL: the ledger's, for shards
  trusted_from  timestamptz NOT NULL,
  trusted_until timestamptz,                          -- NULL: until further notice
  actor         text        NOT NULL
);

-- What this database takes itself for.  A witness file outside the data folder has to agree.
CREATE TABLE incarnation (
  only_one          boolean     PRIMARY KEY DEFAULT true CHECK (only_one),
  incarnation       uuid        NOT NULL,
  system_identifier bigint      NOT NULL,
  database_oid      oid         NOT NULL,
  table_oid         oid         NOT NULL,               -- this table: a dump brings the number of another
  data_folder       text        NOT NULL,
  timeline          integer     NOT NULL,
  server_started    timestamptz NOT NULL,
  acknowledged_at   timestamptz NOT NULL,
  actor             text        NOT NULL,
  reason            text        NOT NULL
);

SELECT pg_catalog.pg_extension_config_dump('trusted_key', '');
SELECT pg_catalog.pg_extension_config_dump('incarnation', '');
