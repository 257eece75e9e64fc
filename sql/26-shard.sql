-- Emergency shards, on the side of the ledger: units that gateways may spend while they
-- can't reach it (G).  They leave available once, with a row here, and come back only as
-- far as signed reports prove that they can never be used.
--
-- A gateway's row is locked first, for its fence; a shard's row under its pair's lock.

CREATE TABLE gateway (
  gateway       text        COLLATE "C" PRIMARY KEY,
  boot_epoch    uuid,                                 -- NULL: it has announced no boot
  booted_at     timestamptz,
  last_fence    bigint      NOT NULL DEFAULT 0 CHECK (last_fence >= 0),
  registered_at timestamptz NOT NULL,
  actor         text        NOT NULL,
  past_boots    uuid[]      NOT NULL DEFAULT '{}',    -- an announcement that comes late is known
  CONSTRAINT boot_with_instant CHECK ((boot_epoch IS NULL) = (booted_at IS NULL))
);

CREATE TABLE emergency_shard (
  subject            text        COLLATE "C" NOT NULL,
  shard_id           text        COLLATE "C" NOT NULL,  -- chosen by the caller: the idempotency key
  route              text        COLLATE "C" NOT NULL,
  generation         bigint      NOT NULL,              -- the budget that gave the units,
  epoch              timestamptz NOT NULL,
  line               bigint      NOT NULL,              -- and in which window's quota
  gateway            text        COLLATE "C",           -- NULL: a share of the old limiter (B8)
  boot_epoch         uuid,
  fence              bigint,
  allocated_units    bigint      NOT NULL CHECK (allocated_units >= 1),
  issued_at          timestamptz NOT NULL,
  expires_at         timestamptz,
  issued_by          xid8        NOT NULL,              -- the transaction, for G8
  actor              text        NOT NULL,

  -- As the last report had it: the equation G1.
  sequence           bigint      NOT NULL DEFAULT 0 CHECK (sequence >= 0),
  sealed             boolean     NOT NULL DEFAULT false,
  local_available    bigint      NOT NULL,
  local_reserved     bigint      NOT NULL DEFAULT 0,
  local_spent        bigint      NOT NULL DEFAULT 0,
  local_retired      bigint      NOT NULL DEFAULT 0,
  local_excess       bigint      NOT NULL DEFAULT 0,

  receipted_units    bigint      NOT NULL DEFAULT 0,    -- what all receipts say was used
  confirmed_units    bigint      NOT NULL DEFAULT 0,    -- proven unused
  reminted_units     bigint      NOT NULL DEFAULT 0,    -- and minted again
  written_off_at     timestamptz,
  written_off_reason text,
  settled_at         timestamptz,                       -- nothing is left to come (B6)

  PRIMARY KEY (subject, shard_id),
  CONSTRAINT emergency_shard_fence UNIQUE (gateway, fence),
  CONSTRAINT gateway_has_boot CHECK (
    (gateway IS NULL) = (boot_epoch IS NULL) AND (gateway IS NULL) = (fence IS NULL)
    AND (gateway IS NULL) = (expires_at IS NULL) AND fence >= 1 AND expires_at > issued_at),
  CONSTRAINT local_sign CHECK (
    least(local_available, local_reserved, local_spent, local_retired, local_excess) >= 0),
  CONSTRAINT local_conservation CHECK (
    allocated_units = local_available + local_reserved + local_spent + local_retired),
  CONSTRAINT sealed_has_none CHECK (NOT sealed OR local_available = 0),
  CONSTRAINT reminted_at_most_confirmed CHECK (
    reminted_units BETWEEN 0 AND confirmed_units AND confirmed_units <= local_retired),
  CONSTRAINT receipted_at_most_used CHECK (receipted_units BETWEEN 0 AND local_spent + local_excess),
  CONSTRAINT written_off_with_reason CHECK ((written_off_at IS NULL) = (written_off_reason IS NULL))
);
-- What is still out: of a pair, for the next issue, and of a generation, before it is retired.
CREATE INDEX emergency_shard_open ON emergency_shard (subject, route) WHERE settled_at IS NULL;
CREATE INDEX emergency_shard_generation ON emergency_shard (generation) WHERE settled_at IS NULL;

-- Reports that were reconciled, and what each of them did.
CREATE TABLE shard_report (
  subject         text        COLLATE "C" NOT NULL,
  shard_id        text        COLLATE "C" NOT NULL,
  sequence        bigint      NOT NULL CHECK (sequence >= 1),
  digest          bytea       CHECK (octet_length(digest) = 32),  -- of the document that was signed; NULL: none was (B8)
  reconciled_at   timestamptz NOT NULL,
  route           text        COLLATE "C" NOT NULL,
  generation      bigint      NOT NULL,                 -- the budget that bore the excess
  epoch           timestamptz NOT NULL,                 -- and took what was minted
  excess_units    bigint      NOT NULL CHECK (excess_units >= 0),
  confirmed_units bigint      NOT NULL CHECK (confirmed_units >= 0),
  reminted_units  bigint      NOT NULL CHECK (reminted_units BETWEEN 0 AND confirmed_units),
  PRIMARY KEY (subject, shard_id, sequence)
);

-- How each reservation of a shard ended.
CREATE TABLE shard_receipt (
  subject        text        COLLATE "C" NOT NULL,
  shard_id       text        COLLATE "C" NOT NULL,
  reservation_id text        COLLATE "C" NOT NULL,
  sequence       bigint      NOT NULL,
  state          text        COLLATE "C" NOT NULL
    CHECK (state IN ('SETTLED', 'SETTLED_WITH_DEBT', 'RELEASED', 'EXPIRED')),
  operation_id   text        COLLATE "C",
  reserved_units bigint      NOT NULL CHECK (reserved_units >= 0),
  actual_units   bigint      CHECK (actual_units >= 0),
  PRIMARY KEY (subject, shard_id, reservation_id),
  CONSTRAINT actual_when_settled CHECK (
    (actual_units IS NOT NULL) = (state IN ('SETTLED', 'SETTLED_WITH_DEBT'))
    AND (actual_units IS NULL) = (operation_id IS NULL))
);

SELECT pg_catalog.pg_extension_config_dump('gateway', '');
SELECT pg_catalog.pg_extension_config_dump('emergency_shard', '');
SELECT pg_catalog.pg_extension_config_dump('shard_report', '');
SELECT pg_catalog.pg_extension_config_dump('shard_receipt', '');
