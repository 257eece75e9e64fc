-- Budgets: one row per pair, epoch and generation (C).
--
-- The head of a pair is its lock (F1).  When an epoch or a generation ends, the
-- closing values go into a row of closed_budget and the head row goes on under
-- the new key, so that whoever was queued on it finds the present state.
-- No column that a call changes is indexed: updates of the head are heap-only,
-- and half of each page is kept free for them.

CREATE TABLE head_budget (
  subject               text        COLLATE "C" NOT NULL,
  route                 text        COLLATE "C" NOT NULL,
  generation            bigint      NOT NULL,
  epoch                 timestamptz NOT NULL,               -- start of the accounting period
  opened_at             timestamptz NOT NULL,
  line                  bigint      NOT NULL,               -- grows when a window opens with its quota
  whole                 boolean     NOT NULL,
  follows_generation    bigint,                             -- the budget that it took over from (B5)
  follows_epoch         timestamptz,
  carried               bigint      NOT NULL,               -- what was taken over
  deficit               bigint      NOT NULL DEFAULT 0,
  opening               bigint      NOT NULL,
  minted                bigint      NOT NULL DEFAULT 0,
  overdraft_issued      bigint      NOT NULL DEFAULT 0,
  available             bigint      NOT NULL,
  reserved              bigint      NOT NULL DEFAULT 0,
  spent                 bigint      NOT NULL DEFAULT 0,
  retired_for_emergency bigint      NOT NULL DEFAULT 0,
  overdraft_repaid      bigint      NOT NULL DEFAULT 0,
  burned                bigint      NOT NULL DEFAULT 0,     -- un-minted at the cap
  purged_spent          bigint      NOT NULL DEFAULT 0,     -- the part of spent whose rows are purged (D15)

  -- What belongs to the pair rather than to one of its budgets.
  older_debt            bigint      NOT NULL DEFAULT 0,     -- of its closed budgets
  older_reserved        bigint      NOT NULL DEFAULT 0,
  remainder             bigint      NOT NULL DEFAULT 0,     -- fraction of a unit (C4)
  seen_at               timestamptz NOT NULL,               -- latest instant seen (A3)
  accrued_at            timestamptz NOT NULL,
  frozen_at             timestamptz,
  frozen_reason         text,

  PRIMARY KEY (subject, route),

  CONSTRAINT opening_sign               CHECK (opening >= 0),
  CONSTRAINT minted_sign                CHECK (minted >= 0),
  CONSTRAINT overdraft_issued_sign      CHECK (overdraft_issued >= 0),
  CONSTRAINT available_sign             CHECK (available >= 0),
  CONSTRAINT reserved_sign              CHECK (reserved >= 0),
  CONSTRAINT spent_sign                 CHECK (spent >= 0 AND spent >= purged_spent),
  CONSTRAINT retired_for_emergency_sign CHECK (retired_for_emergency >= 0),
  CONSTRAINT overdraft_repaid_sign      CHECK (overdraft_repaid >= 0),
  CONSTRAINT conservation CHECK (
    opening + minted + overdraft_issued
    = available + reserved + spent + retired_for_emergency + overdraft_repaid),
  CONSTRAINT repaid_at_most_issued CHECK (overdraft_repaid <= overdraft_issued),
  CONSTRAINT debt_leaves_nothing CHECK (
    available = 0 OR (overdraft_issued = overdraft_repaid AND older_debt = 0)),
  CONSTRAINT counters_sign CHECK (
    burned >= 0 AND purged_spent >= 0 AND carried >= opening AND deficit >= 0
    AND older_debt >= 0 AND older_reserved >= 0 AND remainder >= 0),
  CONSTRAINT frozen_with_reason CHECK ((frozen_at IS NULL) = (frozen_reason IS NULL))
) WITH (fillfactor = 50);

-- For maintain(): pairs that owe.  Its columns change only while there is debt.
CREATE INDEX head_budget_debt ON head_budget (subject, route)
  WHERE overdraft_issued > overdraft_repaid OR older_debt > 0;

-- For whoever watches: pairs that are frozen.
CREATE INDEX head_budget_frozen ON head_budget (frozen_at) WHERE frozen_at IS NOT NULL;

CREATE TABLE closed_budget (
  subject               text        COLLATE "C" NOT NULL,
  route                 text        COLLATE "C" NOT NULL,
  generation            bigint      NOT NULL,
  epoch                 timestamptz NOT NULL,
  opened_at             timestamptz NOT NULL,
  line                  bigint      NOT NULL,
  whole                 boolean     NOT NULL,
  follows_generation    bigint,
  follows_epoch         timestamptz,
  carried               bigint      NOT NULL,
  deficit               bigint      NOT NULL,               -- what was missing when it closed
  opening               bigint      NOT NULL,
  minted                bigint      NOT NULL,
  overdraft_issued      bigint      NOT NULL,
  available             bigint      NOT NULL,               -- its closing balance, which only grows
  reserved              bigint      NOT NULL,
  spent                 bigint      NOT NULL,
  retired_for_emergency bigint      NOT NULL,
  overdraft_repaid      bigint      NOT NULL,
  burned                bigint      NOT NULL,
  purged_spent          bigint      NOT NULL,

  closed_at             timestamptz NOT NULL,
  closing_available     bigint      NOT NULL,               -- at that instant, for the audit of B5
  changed_at            timestamptz NOT NULL DEFAULT clock_timestamp(),  -- no reservation of it has ended later
  follows_purged        boolean     NOT NULL DEFAULT false, -- the budget that it follows is purged (D15)

  -- Opening order of a pair: generations grow, epochs grow within one.
  PRIMARY KEY (subject, route, generation, epoch),

  CONSTRAINT opening_sign               CHECK (opening >= 0),
  CONSTRAINT minted_sign                CHECK (minted >= 0),
  CONSTRAINT overdraft_issued_sign      CHECK (overdraft_issued >= 0),
  CONSTRAINT available_sign             CHECK (available >= 0),
  CONSTRAINT reserved_sign              CHECK (reserved >= 0),
  CONSTRAINT spent_sign                 CHECK (spent >= 0 AND spent >= purged_spent),
  CONSTRAINT retired_for_emergency_sign CHECK (retired_for_emergency >= 0),
  CONSTRAINT overdraft_repaid_sign      CHECK (overdraft_repaid >= 0),
  CONSTRAINT conservation CHECK (
    opening + minted + overdraft_issued
    = available + reserved + spent + retired_for_emergency + overdraft_repaid),
  CONSTRAINT repaid_at_most_issued CHECK (overdraft_repaid <= overdraft_issued),
  CONSTRAINT counters_sign CHECK (
    burned >= 0 AND purged_spent >= 0 AND carried >= opening AND deficit >= 0
    AND closing_available BETWEEN 0 AND available),
  CONSTRAINT purged_was_followed CHECK (NOT follows_purged OR follows_generation IS NOT NULL)
) WITH (fillfactor = 80);

CREATE INDEX closed_budget_debt ON closed_budget (subject, route, generation, epoch)
  WHERE overdraft_issued > overdraft_repaid;

-- For the purge: a budget that was followed by one that has closed, too, in the
-- order in which it closed itself.  No column here changes but the last one, once.
CREATE INDEX closed_budget_followed ON closed_budget (follows_generation, opened_at)
  WHERE follows_generation IS NOT NULL AND NOT follows_purged;

-- What a generation in shadow would have made of a pair, beside its real budgets (B7):
-- a head like any other, which holds nothing, and how often it would have admitted and
-- rejected requests that were admitted, refused, or left to the caller's own limiter.
CREATE TABLE shadow_budget (
  LIKE head_budget INCLUDING CONSTRAINTS INCLUDING STORAGE,
  would_admit_admitted    bigint NOT NULL,
  would_admit_refused     bigint NOT NULL,
  would_admit_unenforced  bigint NOT NULL,
  would_reject_admitted   bigint NOT NULL,
  would_reject_refused    bigint NOT NULL,
  would_reject_unenforced bigint NOT NULL,
  PRIMARY KEY (subject, route, generation)
) WITH (fillfactor = 50);

SELECT pg_catalog.pg_extension_config_dump('shadow_budget', '');
SELECT pg_catalog.pg_extension_config_dump('head_budget', '');
SELECT pg_catalog.pg_extension_config_dump('closed_budget', '');
