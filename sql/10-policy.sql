-- Policies: frozen admissionBudget.v1 documents, known by their generation (B).

CREATE TABLE policy (
  generation           bigint      PRIMARY KEY CHECK (generation > 0),
  subject              text        COLLATE "C" NOT NULL,  -- '*': every subject without one of its own
  route                text        COLLATE "C" NOT NULL,
  stage                text        COLLATE "C" NOT NULL
    CHECK (stage IN ('published', 'shadow', 'canary', 'active', 'draining', 'retired')),
  published_at         timestamptz NOT NULL,
  active_at            timestamptz,                       -- the switch instant (B5)
  retired_at           timestamptz,                       -- its pairs may fall to a wildcard from then on (B4)

  -- What the document says, as the ledger reads it.  Never changed.
  document             jsonb       NOT NULL,
  region               text        COLLATE "C" NOT NULL,  -- '*': any
  unit                 text        COLLATE "C" NOT NULL,
  refill_kind          text        COLLATE "C" NOT NULL
    CHECK (refill_kind IN ('continuous', 'window', 'none')),
  cap                  bigint      NOT NULL CHECK (cap > 0),
  refill_units         bigint      NOT NULL CHECK (refill_units >= 0),
  refill_interval      interval    NOT NULL CHECK (refill_interval >= interval '0'),
  epoch_length         interval,                          -- fixed, aligned in UTC, or
  epoch_calendar       text        COLLATE "C" CHECK (epoch_calendar IN ('day', 'month')),
  epoch_time_zone      text        COLLATE "C",           -- of the calendar
  estimator_digests    bytea[]     NOT NULL,              -- empty: any
  largest_reservation  bigint      NOT NULL CHECK (largest_reservation BETWEEN 1 AND cap),
  largest_outstanding  bigint      CHECK (largest_outstanding > 0),  -- NULL: no limit
  hold_ttl             interval    NOT NULL CHECK (hold_ttl > interval '0'),
  execution_ttl        interval    NOT NULL CHECK (execution_ttl > interval '0'),
  hard_execution_limit bigint      NOT NULL CHECK (hard_execution_limit > 0),
  maximum_overdraft    bigint      NOT NULL CHECK (maximum_overdraft >= 0),
  priority             integer     NOT NULL,
  weight               integer     NOT NULL CHECK (weight > 0),
  fairness_budget      bigint      NOT NULL CHECK (fairness_budget >= 0),
  emergency_mode       text        COLLATE "C" NOT NULL CHECK (emergency_mode IN ('disabled', 'enabled')),
  retention            interval    NOT NULL CHECK (retention >= interval '0'),

  drained_by           xid8,                              -- the transaction that drained it (B6)

  -- A canary's steps: the percent that it takes in, and since when (B4).  Later
  -- steps take in more; what by is said once.
  canary_by            text        COLLATE "C" CHECK (canary_by IN ('route', 'pair')),
  canary_percents      integer[]   NOT NULL DEFAULT '{}',
  canary_since         timestamptz[] NOT NULL DEFAULT '{}',

  -- With emergency_mode enabled: what part of the cap a pair may have in shards at a
  -- time, in percent, and how long a shard may be spent (G2).
  emergency_share      integer     CHECK (emergency_share BETWEEN 1 AND 100),
  shard_ttl            interval    CHECK (shard_ttl > interval '0'),

  CONSTRAINT policy_active_at CHECK (
    CASE WHEN stage IN ('published', 'shadow', 'canary') THEN active_at IS NULL
         ELSE stage <> 'active' OR active_at IS NOT NULL END),
  CONSTRAINT policy_canary CHECK (
    cardinality(canary_percents) = cardinality(canary_since)
    AND (cardinality(canary_percents) > 0) = (canary_by IS NOT NULL)
    AND (stage <> 'canary' OR canary_by IS NOT NULL)
    AND (stage NOT IN ('published', 'shadow') OR canary_by IS NULL)),
  CONSTRAINT policy_retired_at CHECK ((stage = 'retired') = (retired_at IS NOT NULL) AND retired_at >= active_at),
  CONSTRAINT policy_epoch CHECK ((epoch_length IS NULL) <> (epoch_calendar IS NULL)
                             AND (epoch_time_zone IS NULL) = (epoch_calendar IS NULL)),
  CONSTRAINT policy_refill CHECK ((refill_kind = 'continuous') = (refill_units > 0)
                             AND (refill_kind = 'continuous') = (refill_interval > interval '0'))
);
CREATE INDEX policy_pair ON policy (route, subject, generation);
SELECT pg_catalog.pg_extension_config_dump('policy', '');
