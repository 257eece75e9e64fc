-- Emergency shards, on the side of a gateway: the same extension on the gateway's own
-- server, which spends what it was given and nothing else (G4).
--
-- The row of local_gateway is locked first, by what accepts a shard or begins a boot; the
-- shards of a pair in the order of their fences; then reservations and operations by key.

-- Which gateway this database is, if it is one, and its present boot (G5).  A boot is one
-- start of the server, of this database and this very table: what was copied, by CREATE
-- DATABASE or from a dump, has another one.
CREATE TABLE local_gateway (
  only_one       boolean     PRIMARY KEY DEFAULT true CHECK (only_one),
  gateway        text        COLLATE "C" NOT NULL,
  boot_epoch     uuid        NOT NULL,
  server_started timestamptz NOT NULL,                -- of which start of the server it is,
  database_oid   oid         NOT NULL,                -- in which database,
  relation_oid   oid         NOT NULL,                -- and in which local_gateway
  booted_at      timestamptz NOT NULL,
  last_fence     bigint      NOT NULL DEFAULT 0 CHECK (last_fence >= 0)
);

CREATE TABLE local_shard (
  subject              text        COLLATE "C" NOT NULL,
  shard_id             text        COLLATE "C" NOT NULL,
  route                text        COLLATE "C" NOT NULL,
  generation           bigint      NOT NULL,
  epoch                timestamptz NOT NULL,
  boot_epoch           uuid        NOT NULL,
  fence                bigint      NOT NULL CHECK (fence >= 1),
  allocated_units      bigint      NOT NULL CHECK (allocated_units >= 1),
  largest_reservation  bigint      NOT NULL CHECK (largest_reservation >= 1),
  hard_execution_limit bigint      NOT NULL CHECK (hard_execution_limit >= 1),
  hold_ttl             interval    NOT NULL CHECK (hold_ttl > interval '0'),
  execution_ttl        interval    NOT NULL CHECK (execution_ttl > interval '0'),
  issued_at            timestamptz NOT NULL,
  expires_at           timestamptz NOT NULL,
  accepted_at          timestamptz NOT NULL,

  local_available      bigint      NOT NULL,
  local_reserved       bigint      NOT NULL DEFAULT 0,
  local_spent          bigint      NOT NULL DEFAULT 0,
  local_retired        bigint      NOT NULL DEFAULT 0,
  local_excess         bigint      NOT NULL DEFAULT 0,
  sealed_at            timestamptz,
  sealed_by            text        COLLATE "C" CHECK (sealed_by IN ('operator', 'expiry', 'boot')),
  seen_at              timestamptz NOT NULL,          -- latest instant seen (A3)
  last_sequence        bigint      NOT NULL DEFAULT 0 CHECK (last_sequence >= 0),

  PRIMARY KEY (subject, shard_id),
  CONSTRAINT local_shard_fence UNIQUE (fence),
  CONSTRAINT local_sign CHECK (
    least(local_available, local_reserved, local_spent, local_retired, local_excess) >= 0),
  CONSTRAINT local_conservation CHECK (
    allocated_units = local_available + local_reserved + local_spent + local_retired),
  CONSTRAINT sealed_has_none CHECK (sealed_at IS NULL OR local_available = 0),
  CONSTRAINT sealed_by_whom CHECK ((sealed_at IS NULL) = (sealed_by IS NULL))
) WITH (fillfactor = 50);
-- What can be spent, in the order in which it is locked.  No column here changes but the last, once.
CREATE INDEX local_shard_open ON local_shard (subject, route, fence) WHERE sealed_at IS NULL;
-- The last one of a pair says why there is none that can be spent.
CREATE INDEX local_shard_pair ON local_shard (subject, route, fence);

-- Reservations against shards, named by the caller like those of the ledger (D).
CREATE TABLE shard_reservation (
  subject        text        COLLATE "C" NOT NULL,
  reservation_id text        COLLATE "C" NOT NULL,
  shard_id       text        COLLATE "C" NOT NULL,
  state          text        COLLATE "C" NOT NULL,
  reserved_units bigint      NOT NULL CHECK (reserved_units >= 1),
  actual_units   bigint,
  excess_units   bigint      NOT NULL DEFAULT 0 CHECK (excess_units >= 0),
  request_digest bytea       NOT NULL,
  operation_id   text        COLLATE "C",
  expires_at     timestamptz NOT NULL,
  reserved_at    timestamptz NOT NULL,
  started_at     timestamptz,
  unknown_at     timestamptz,
  ended_at       timestamptz,
  receipt_digest bytea,
  receipt_source text        COLLATE "C",
  sequence       bigint,                              -- of the report that tells of its end
  PRIMARY KEY (subject, reservation_id),
  CONSTRAINT state_known CHECK (state IN ('RESERVED', 'STARTED', 'USAGE_UNKNOWN',
    'SETTLED', 'SETTLED_WITH_DEBT', 'RELEASED', 'EXPIRED')),
  CONSTRAINT digest_length CHECK (octet_length(request_digest) = 32),
  CONSTRAINT actual_when_settled CHECK (
    (actual_units IS NOT NULL) = (state IN ('SETTLED', 'SETTLED_WITH_DEBT')) AND actual_units >= 0),
  CONSTRAINT operation_when_started CHECK (
    CASE WHEN state IN ('STARTED', 'SETTLED', 'SETTLED_WITH_DEBT') THEN operation_id IS NOT NULL
         WHEN state <> 'USAGE_UNKNOWN' THEN operation_id IS NULL ELSE true END),
  CONSTRAINT ended_when_final CHECK (
    (ended_at IS NOT NULL) = (state IN ('SETTLED', 'SETTLED_WITH_DEBT', 'RELEASED', 'EXPIRED'))),
  CONSTRAINT reported_when_final CHECK (sequence IS NULL OR ended_at IS NOT NULL)
) WITH (fillfactor = 80);
-- What a boot ends, what time ends in one shard and in all, and what no report tells of yet.
CREATE INDEX shard_reservation_open ON shard_reservation (subject, shard_id, expires_at)
  WHERE state IN ('RESERVED', 'STARTED');
CREATE INDEX shard_reservation_due ON shard_reservation (expires_at) WHERE state IN ('RESERVED', 'STARTED');
CREATE INDEX shard_reservation_unreported ON shard_reservation (subject, shard_id, reservation_id)
  WHERE ended_at IS NOT NULL AND sequence IS NULL;
CREATE INDEX shard_reservation_reported ON shard_reservation (subject, shard_id, sequence)
  WHERE sequence IS NOT NULL;

-- What an operation id is bound to on this gateway: one reservation per subject (D5).
CREATE TABLE shard_operation (
  subject        text        COLLATE "C" NOT NULL,
  operation_id   text        COLLATE "C" NOT NULL,
  reservation_id text        COLLATE "C" NOT NULL,
  PRIMARY KEY (subject, operation_id)
);

-- Reports as they were cut: what is signed is committed here before (G8).
CREATE TABLE local_report (
  subject         text        COLLATE "C" NOT NULL,
  shard_id        text        COLLATE "C" NOT NULL,
  sequence        bigint      NOT NULL CHECK (sequence >= 1),
  cut_at          timestamptz NOT NULL,
  cut_by          xid8        NOT NULL,               -- the transaction
  sealed          boolean     NOT NULL,
  local_available bigint      NOT NULL,
  local_reserved  bigint      NOT NULL,
  local_spent     bigint      NOT NULL,
  local_retired   bigint      NOT NULL,
  local_excess    bigint      NOT NULL,
  PRIMARY KEY (subject, shard_id, sequence)
);

SELECT pg_catalog.pg_extension_config_dump('local_gateway', '');
SELECT pg_catalog.pg_extension_config_dump('local_shard', '');
SELECT pg_catalog.pg_extension_config_dump('shard_reservation', '');
SELECT pg_catalog.pg_extension_config_dump('shard_operation', '');
SELECT pg_catalog.pg_extension_config_dump('local_report', '');
