-- Reservations: one limitReservation.v1 per row, named by the caller (A1, D).

CREATE TABLE reservation (
  subject           text        COLLATE "C" NOT NULL,
  reservation_id    text        COLLATE "C" NOT NULL,     -- the idempotency key
  route             text        COLLATE "C",              -- its budget; all three NULL in a fence (D11)
  generation        bigint,
  epoch             timestamptz,
  state             text        COLLATE "C" NOT NULL,
  asked_units       bigint,                               -- what the request asked for (D2)
  reserved_units    bigint      NOT NULL,
  actual_units      bigint,
  request_digest    bytea       NOT NULL,
  operation_id      text        COLLATE "C",
  priority          integer     NOT NULL,
  expires_at        timestamptz NOT NULL,                 -- of the hold, then of the execution
  reserved_at       timestamptz NOT NULL,
  started_at        timestamptz,
  unknown_at        timestamptz,
  ended_at          timestamptz,
  excess_units      bigint      NOT NULL DEFAULT 0,       -- above the reservation (D7), and
  excess_generation bigint,                               -- the budget that bore it
  excess_epoch      timestamptz,
  receipt_digest    bytea,
  receipt_source    text        COLLATE "C",
  progress_units    bigint      NOT NULL DEFAULT 0,       -- used so far, as reported (D10)
  shadow_generation bigint,                               -- whose shadow budget took asked_units, too (B7),
  shadow_line       bigint,                               -- and in which window's quota
  claimed_by        text        COLLATE "C",              -- the reconciler that asks about it,
  claimed_until     timestamptz,                          -- and until when nobody else does (D10)

  PRIMARY KEY (subject, reservation_id),

  CONSTRAINT state_known CHECK (state IN ('RESERVED', 'STARTED', 'USAGE_UNKNOWN', 'EXPIRING',
    'SETTLED', 'SETTLED_WITH_DEBT', 'RELEASED', 'EXPIRED')),
  CONSTRAINT digest_length CHECK (octet_length(request_digest) = 32),
  CONSTRAINT reserved_units_sign CHECK (reserved_units >= 0),
  CONSTRAINT progress_units_sign CHECK (progress_units >= 0),
  CONSTRAINT actual_when_settled CHECK (
    (actual_units IS NOT NULL) = (state IN ('SETTLED', 'SETTLED_WITH_DEBT')) AND actual_units >= 0),
  CONSTRAINT operation_when_started CHECK (
    (operation_id IS NOT NULL) = (state IN ('STARTED', 'USAGE_UNKNOWN', 'SETTLED', 'SETTLED_WITH_DEBT'))),
  CONSTRAINT excess_has_budget CHECK (
    excess_units >= 0 AND (excess_units > 0) = (excess_generation IS NOT NULL)
    AND (excess_units > 0) = (excess_epoch IS NOT NULL)),
  CONSTRAINT claim_of_unknown CHECK (
    (claimed_by IS NULL) = (claimed_until IS NULL) AND (claimed_by IS NULL OR unknown_at IS NOT NULL)),
  CONSTRAINT budget_or_fence CHECK (
    CASE WHEN route IS NULL
      THEN generation IS NULL AND epoch IS NULL AND asked_units IS NULL
           AND state = 'RELEASED' AND reserved_units = 0
      ELSE generation IS NOT NULL AND epoch IS NOT NULL AND asked_units >= 1
    END)
) WITH (fillfactor = 80);

-- What is due next, over all pairs: an index for each open state, so that one
-- can't hide another, and with one short column, because each reserve writes one.
CREATE INDEX reservation_reserved ON reservation (expires_at) WHERE state = 'RESERVED';
CREATE INDEX reservation_expiring ON reservation (expires_at) WHERE state = 'EXPIRING';
CREATE INDEX reservation_started  ON reservation (expires_at) WHERE state = 'STARTED';
CREATE INDEX reservation_unknown  ON reservation (unknown_at) WHERE state = 'USAGE_UNKNOWN';

-- For reconcilers (D10).  Items that nobody has claimed are one end of it, oldest first;
-- at the other end are the claimed ones, by the end of their lease: those that lapsed
-- come before those that run, so a claim never walks over what others work on.
CREATE INDEX reservation_claimable ON reservation (claimed_until, unknown_at) WHERE state = 'USAGE_UNKNOWN';

-- Whatever was unknown once, by route: what still is (no ended_at) from the oldest, and
-- what has converged by when it did.
CREATE INDEX reservation_converged ON reservation (route, ended_at, unknown_at) WHERE unknown_at IS NOT NULL;

-- And within one pair, for the reserve that finds it full (D14).
CREATE INDEX reservation_pair_due ON reservation (subject, route, expires_at)
  WHERE state IN ('RESERVED', 'EXPIRING');

-- And what has ended, for the purge: each generation has a retention of its own, so
-- each is read from its oldest row to the first that is not due (D15).
CREATE INDEX reservation_ended ON reservation (generation, ended_at) WHERE ended_at IS NOT NULL;

-- What an operation id is bound to: one thing per subject, whoever asks first.
-- Either a reservation (D5), or usage that was never reserved (D12).
CREATE TABLE operation (
  subject        text        COLLATE "C" NOT NULL,
  operation_id   text        COLLATE "C" NOT NULL,
  reservation_id text        COLLATE "C",
  bound_at       timestamptz NOT NULL,
  usage_units    bigint,                               -- what ran, and the budget that bore it:
  route          text        COLLATE "C",
  generation     bigint,
  epoch          timestamptz,
  PRIMARY KEY (subject, operation_id),
  CONSTRAINT reservation_or_usage CHECK (
    CASE WHEN reservation_id IS NOT NULL
      THEN usage_units IS NULL AND route IS NULL AND generation IS NULL AND epoch IS NULL
      ELSE usage_units >= 0 AND route IS NOT NULL AND generation IS NOT NULL AND epoch IS NOT NULL
    END)
);
-- For the purge: usage that was never reserved, the oldest of a generation first (D15).
CREATE INDEX operation_usage ON operation (generation, bound_at) WHERE usage_units IS NOT NULL;

-- Extensions that took effect, by the id that the caller chose (D13).
CREATE TABLE extension (
  subject        text        COLLATE "C" NOT NULL,
  reservation_id text        COLLATE "C" NOT NULL,
  extension_id   text        COLLATE "C" NOT NULL,
  units          bigint      NOT NULL CHECK (units >= 0),
  expires_at     timestamptz,                          -- as asked for; NULL: as it was
  extended_at    timestamptz NOT NULL,
  PRIMARY KEY (subject, reservation_id, extension_id)
);

-- Units that operators granted, by the id that they chose (E3).
CREATE TABLE capacity_grant (
  subject       text        COLLATE "C" NOT NULL,
  route         text        COLLATE "C" NOT NULL,
  grant_id      text        COLLATE "C" NOT NULL,
  units         bigint      NOT NULL CHECK (units >= 1),
  granted_units bigint      NOT NULL CHECK (granted_units BETWEEN 0 AND units),
  granted_at    timestamptz NOT NULL,
  actor         text        NOT NULL,
  reason        text        NOT NULL,
  PRIMARY KEY (subject, route, grant_id)
);

-- What operators did, and why (D8).
CREATE TABLE operator_action (
  action_id uuid        PRIMARY KEY DEFAULT pg_catalog.gen_random_uuid(),
  acted_at  timestamptz NOT NULL,
  actor     text        NOT NULL,
  action    text        COLLATE "C" NOT NULL,
  subject   text        COLLATE "C" NOT NULL,
  route     text        COLLATE "C" NOT NULL,
  reason    text        NOT NULL
);

SELECT pg_catalog.pg_extension_config_dump('reservation', '');
SELECT pg_catalog.pg_extension_config_dump('operation', '');
SELECT pg_catalog.pg_extension_config_dump('extension', '');
SELECT pg_catalog.pg_extension_config_dump('capacity_grant', '');
SELECT pg_catalog.pg_extension_config_dump('operator_action', '');
