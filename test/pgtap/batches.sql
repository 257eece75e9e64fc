-- Batch forms equal single forms, element for element (J2): the same calls, one by one
-- on one set of pairs and as one batch on another, give the same receipts and leave
-- the same books.
--
-- Fails when: a batch decides an element on what stood before the batch, mixes up the
-- order of its rows, or treats a repeated id, operation or figure in another way.

BEGIN;
\ir helpers.psql
SELECT plan(82);

-- Every route has one wildcard policy, so that generations agree.
SELECT at('10:00:00');
SELECT publish('*', 'chat', continuous(10, '1 second', 1000) || '{"largestOutstanding": 2500, "holdTtl": "5 minutes"}');
SELECT publish('*', 'embed', quota(300) || '{"maximumOverdraft": 200}');
SELECT publish('*', 'image', '{"region": "eu", "burst": 50}');

-- The script: subjects a and b, three routes, ids that repeat, too much, too late.
-- `way` is put before each subject: 's ' for single calls, 'b ' for batches.
CREATE TEMP TABLE step (step int, call text, n int, subject text, route text, id text, units bigint, operation text, extra text) ON COMMIT DROP;
INSERT INTO step (step, call, n, subject, route, id, units, operation, extra) VALUES
  -- admission: order decides who gets the last units
  (1, 'reserve', 1, 'a', 'chat', 'r1', 600, NULL, NULL), (1, 'reserve', 2, 'b', 'embed', 'r1', 200, NULL, NULL),
  (1, 'reserve', 3, 'a', 'chat', 'r2', 600, NULL, NULL), (1, 'reserve', 4, 'a', 'chat', 'r1', 600, NULL, NULL),
  (1, 'reserve', 5, 'a', 'chat', 'r1', 601, NULL, NULL), (1, 'reserve', 6, 'a', 'embed', 'r1', 600, NULL, NULL),
  (1, 'reserve', 7, 'a', 'chat', 'r3', 400, 'o3', NULL), (1, 'reserve', 8, 'a', 'chat', 'r4', 1, NULL, NULL),
  (1, 'reserve', 9, 'b', 'embed', 'r2', 100, 'o2', NULL), (1, 'reserve', 10, 'b', 'embed', 'r3', 1, NULL, NULL),
  (1, 'reserve', 11, 'a', 'image', 'i1', 10, NULL, 'eu'), (1, 'reserve', 12, 'a', 'image', 'i2', 10, NULL, 'us'),
  (1, 'reserve', 13, 'a', 'nowhere', 'n1', 10, NULL, NULL), (1, 'reserve', 14, 'b', 'chat', 'c1', 1000, NULL, NULL),
  (1, 'reserve', 15, 'a', 'image', 'i3', 10, 'o3', 'eu'), (1, 'reserve', 16, 'a', 'image', 'i4', 10, 'o4', 'eu'),
  (1, 'reserve', 17, 'a', 'image', 'i5', 10, 'o4', 'eu'), (1, 'reserve', 18, 'a', 'image', 'i6', 51, NULL, 'eu'),
  (1, 'reserve', 19, 'b', 'chat', 'c1', 1000, NULL, NULL), (1, 'reserve', 20, 'b', 'chat', 'c2', 1, NULL, NULL),
  -- start: binding, repeats, an operation asked for twice
  (2, 'start', 1, 'a', NULL, 'r1', NULL, 'o1', NULL), (2, 'start', 2, 'a', NULL, 'r1', NULL, 'o1', NULL),
  (2, 'start', 3, 'a', NULL, 'r1', NULL, 'oX', NULL), (2, 'start', 4, 'a', NULL, 'i1', NULL, 'o1', NULL),
  (2, 'start', 5, 'b', NULL, 'r1', NULL, 'o1', NULL), (2, 'start', 6, 'b', NULL, 'never', NULL, 'o9', NULL),
  (2, 'start', 7, 'a', NULL, 'i1', NULL, 'o5', NULL), (2, 'start', 8, 'a', NULL, 'r3', NULL, 'o3', NULL),
  -- settle: refund, excess, repeats, conflicts, what was not started
  (3, 'settle', 1, 'a', NULL, 'r1', 100, 'o1', NULL), (3, 'settle', 2, 'a', NULL, 'r1', 100, 'o1', NULL),
  (3, 'settle', 3, 'a', NULL, 'r1', 101, 'o1', NULL), (3, 'settle', 4, 'b', NULL, 'r1', 290, 'o1', NULL),
  (3, 'settle', 5, 'b', NULL, 'r2', 120, 'o2', NULL), (3, 'settle', 6, 'a', NULL, 'r3', 400, 'oX', NULL),
  (3, 'settle', 7, 'b', NULL, 'c1', 1, 'oC', NULL), (3, 'settle', 8, 'b', NULL, 'never', 1, 'o9', NULL),
  (3, 'settle', 9, 'a', NULL, 'i1', 70, 'o5', NULL), (3, 'settle', 10, 'a', NULL, 'r3', 0, 'o3', NULL),
  -- release: units back, repeats, what runs or has ended
  (4, 'release', 1, 'b', NULL, 'c1', NULL, NULL, NULL), (4, 'release', 2, 'b', NULL, 'c1', NULL, NULL, NULL),
  (4, 'release', 3, 'a', NULL, 'i4', NULL, NULL, NULL), (4, 'release', 4, 'a', NULL, 'r1', NULL, NULL, NULL),
  (4, 'release', 5, 'b', NULL, 'never', NULL, NULL, NULL),
  -- later, in the next epoch: rolls, debts paid, due holds ended
  (5, 'reserve', 1, 'a', 'chat', 's1', 1000, NULL, NULL), (5, 'reserve', 2, 'b', 'embed', 's1', 300, NULL, NULL),
  (5, 'reserve', 3, 'b', 'chat', 's2', 10, NULL, NULL), (5, 'reserve', 4, 'b', 'embed', 's3', 190, NULL, NULL),
  (5, 'reserve', 5, 'b', 'embed', 's4', 5, NULL, NULL), (5, 'reserve', 6, 'b', 'embed', 's1', 1, NULL, NULL), (5, 'reserve', 7, 'a', 'image', 's7', 1, NULL, 'eu'),
  (6, 'settle', 1, 'a', NULL, 'i4', 15, 'o4', NULL), (6, 'settle', 2, 'a', NULL, 'i4', 15, 'o4', NULL);

CREATE TEMP TABLE said (way text, step int, n int, receipt text) ON COMMIT DROP;

CREATE FUNCTION helpers.one_by_one(of_step int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  s step;
  said_text text;
BEGIN
  FOR s IN SELECT * FROM step WHERE step.step = of_step ORDER BY n LOOP
    BEGIN
      CASE s.call
        WHEN 'reserve' THEN SELECT r::text INTO said_text FROM limitledger.reserve_capacity('s ' || s.subject, s.route, s.id, s.units, sha256('d'), s.extra, start_operation => s.operation) r;
        WHEN 'start' THEN SELECT r::text INTO said_text FROM limitledger.start_reservation('s ' || s.subject, s.id, s.operation) r;
        WHEN 'settle' THEN SELECT r::text INTO said_text FROM limitledger.settle_usage('s ' || s.subject, s.id, s.operation, s.units) r;
        WHEN 'release' THEN SELECT r::text INTO said_text FROM limitledger.release_reservation('s ' || s.subject, s.id) r;
      END CASE;
    EXCEPTION WHEN SQLSTATE 'LL301' THEN
      said_text := 'not started';   -- an error in the single form, a row in the batch
    END;
    INSERT INTO said VALUES ('single', s.step, s.n, said_text);
  END LOOP;
END $$;

CREATE FUNCTION helpers.as_batch(of_step int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  which text; subjects text[]; routes text[]; ids text[]; units bigint[]; operations text[]; extras text[]; digests bytea[];
BEGIN
  SELECT min(call), array_agg('b ' || subject ORDER BY n), array_agg(route ORDER BY n), array_agg(id ORDER BY n), array_agg(s.units ORDER BY n),
         array_agg(operation ORDER BY n), array_agg(extra ORDER BY n), array_agg(sha256('d') ORDER BY n)
  INTO which, subjects, routes, ids, units, operations, extras, digests FROM step s WHERE s.step = of_step;
  CASE which
    WHEN 'reserve' THEN INSERT INTO said SELECT 'batch', of_step, r.element, regexp_replace(r::text, '^\(\d+,', '(')
      FROM limitledger.reserve_capacity_batch(subjects, routes, ids, units, digests, extras, start_operations => operations) r;
    WHEN 'start' THEN INSERT INTO said SELECT 'batch', of_step, r.element, regexp_replace(r::text, '^\(\d+,', '(')
      FROM limitledger.start_reservation_batch(subjects, ids, operations) r;
    WHEN 'settle' THEN INSERT INTO said SELECT 'batch', of_step, r.element,
        CASE WHEN r.dimension = 'not_started' THEN 'not started' ELSE regexp_replace(r::text, '^\(\d+,', '(') END
      FROM limitledger.settle_usage_batch(subjects, ids, operations, units) r;
    WHEN 'release' THEN INSERT INTO said SELECT 'batch', of_step, r.element, regexp_replace(r::text, '^\(\d+,', '(')
      FROM limitledger.release_reservation_batch(subjects, ids) r;
  END CASE;
END $$;

SELECT one_by_one(1), as_batch(1);
SELECT at('10:00:01.25');
SELECT one_by_one(2), as_batch(2);
SELECT at('10:00:02.5');
SELECT one_by_one(3), as_batch(3);
SELECT at('10:00:03.75');
SELECT one_by_one(4), as_batch(4);
SELECT at('11:30:00');
SELECT one_by_one(5), as_batch(5);
SELECT one_by_one(6), as_batch(6);

SELECT is(b.receipt, s.receipt, format('step %s, element %s: %s %s', s.step, s.n, t.call, t.id))
FROM said s JOIN said b ON (b.way, b.step, b.n) = ('batch', s.step, s.n) JOIN step t ON (t.step, t.n) = (s.step, s.n)
WHERE s.way = 'single' ORDER BY s.step, s.n;
SELECT is((SELECT count(*) FROM said WHERE way = 'batch'), (SELECT count(*) FROM step), 'a row for each element');
SELECT results_eq($$SELECT substr(subject, 3), route, opening, minted, overdraft_issued, available, reserved, spent, overdraft_repaid, burned, remainder, frozen_at
                    FROM limitledger.head_budget WHERE subject LIKE 'b %' ORDER BY 1, 2$$,
  $$SELECT substr(subject, 3), route, opening, minted, overdraft_issued, available, reserved, spent, overdraft_repaid, burned, remainder, frozen_at
    FROM limitledger.head_budget WHERE subject LIKE 's %' ORDER BY 1, 2$$, 'the same heads');
SELECT results_eq($$SELECT substr(subject, 3), route, opening, minted, overdraft_issued, available, reserved, spent, overdraft_repaid
                    FROM limitledger.closed_budget WHERE subject LIKE 'b %' ORDER BY 1, 2$$,
  $$SELECT substr(subject, 3), route, opening, minted, overdraft_issued, available, reserved, spent, overdraft_repaid
    FROM limitledger.closed_budget WHERE subject LIKE 's %' ORDER BY 1, 2$$, 'the same closed budgets');
SELECT results_eq($$SELECT substr(subject, 3), reservation_id, route, state, reserved_units, actual_units, operation_id, expires_at, excess_units
                    FROM limitledger.reservation WHERE subject LIKE 'b %' ORDER BY 1, 2$$,
  $$SELECT substr(subject, 3), reservation_id, route, state, reserved_units, actual_units, operation_id, expires_at, excess_units
    FROM limitledger.reservation WHERE subject LIKE 's %' ORDER BY 1, 2$$, 'the same reservations');
SELECT results_eq($$SELECT substr(subject, 3), operation_id, reservation_id FROM limitledger.operation WHERE subject LIKE 'b %' ORDER BY 1, 2$$,
  $$SELECT substr(subject, 3), operation_id, reservation_id FROM limitledger.operation WHERE subject LIKE 's %' ORDER BY 1, 2$$, 'the same operations');
-- The script is worth something: it has met each kind of answer.
SELECT is((SELECT string_agg(DISTINCT substring(receipt FROM '^\((ACCEPTED|REFUSED,\w+|CONFLICT,\w+|UNKNOWN,\w+)'), ' ' ORDER BY substring(receipt FROM '^\((ACCEPTED|REFUSED,\w+|CONFLICT,\w+|UNKNOWN,\w+)'))
           FROM said WHERE way = 'single'),
  'ACCEPTED CONFLICT,figures CONFLICT,operation CONFLICT,operation_elsewhere CONFLICT,request REFUSED,already_started REFUSED,available REFUSED,debt REFUSED,largest_reservation REFUSED,no_policy REFUSED,region REFUSED,settled UNKNOWN,reservation',
  'each kind of answer was met');
SELECT sound('after singles and batches');

-- A thousand at once, over ten pairs.
SELECT publish('*', 'many', '{"burst": 450}');
SELECT results_eq($$SELECT outcome, dimension, count(*) FROM limitledger.reserve_capacity_batch(
    (SELECT array_agg('m' || n % 10 ORDER BY n) FROM generate_series(1, 1000) n), array_fill('many'::text, ARRAY[1000]),
    (SELECT array_agg('r' || n ORDER BY n) FROM generate_series(1, 1000) n), array_fill(5::bigint, ARRAY[1000]), array_fill(sha256('d'), ARRAY[1000])) GROUP BY 1, 2 ORDER BY 1$$,
  $$VALUES ('ACCEPTED', NULL, 900::bigint), ('REFUSED', 'available', 100::bigint)$$, 'ninety of a hundred fit, ten times');
SELECT is((SELECT min(reserved_units) FROM (SELECT sum(reserved_units) FROM limitledger.reservation WHERE route = 'many' GROUP BY subject) s (reserved_units)), 450::numeric, 'in each pair');
SELECT is((SELECT max(substr(reservation_id, 2)::int) FROM limitledger.reservation WHERE route = 'many'), 900, 'the first ones');
SELECT sound('after a thousand');

-- An empty batch is no error; optional arrays may be missing as a whole or in part.
SELECT is_empty($$SELECT * FROM limitledger.reserve_capacity_batch('{}', '{}', '{}', '{}', '{}')$$, 'an empty reserve');
SELECT is_empty($$SELECT * FROM limitledger.start_reservation_batch('{}', '{}', '{}')$$, 'an empty start');
SELECT is_empty($$SELECT * FROM limitledger.settle_usage_batch('{}', '{}', '{}', '{}')$$, 'an empty settle');
SELECT is_empty($$SELECT * FROM limitledger.release_reservation_batch('{}', '{}')$$, 'an empty release');
SELECT results_eq($$SELECT element, outcome, state FROM limitledger.reserve_capacity_batch(ARRAY['p', 'p'], ARRAY['many', 'many'], ARRAY['1', '2'], ARRAY[1, 2]::bigint[],
    ARRAY[sha256('d'), sha256('d')], NULL, NULL, ARRAY[NULL, '2029-01-01 00:00+00'::timestamptz], ARRAY[NULL, 3], ARRAY['o1', NULL])$$,
  $$VALUES (1, 'ACCEPTED', 'STARTED'), (2, 'REFUSED', 'REQUESTED')$$, 'optional arrays, element by element');
SELECT results_eq($$SELECT outcome, count(*) FROM limitledger.settle_usage_batch(ARRAY['p'], ARRAY['1'], ARRAY['o1'], ARRAY[1]::bigint[], ARRAY[NULL::bytea], ARRAY[NULL::text]) GROUP BY 1$$,
  $$VALUES ('ACCEPTED', 1::bigint)$$, 'also of a settle');

-- A bad element is the batch's error, and nothing of it stands.
SELECT is_misuse($$reserve_capacity_batch(ARRAY['q', NULL], ARRAY['many', 'many'], ARRAY['1', '2'], ARRAY[1, 1]::bigint[], ARRAY[sha256('d'), sha256('d')])$$, 'LL101', 'subjects', 'an element that is NULL');
SELECT is_misuse($$reserve_capacity_batch(ARRAY['q', 'q'], ARRAY['many', 'many'], ARRAY['1', '2'], ARRAY[1, 0]::bigint[], ARRAY[sha256('d'), sha256('d')])$$, 'LL103', 'units', 'an element that is zero');
SELECT is_misuse($$reserve_capacity_batch(ARRAY['q', 'q'], ARRAY['many'], ARRAY['1', '2'], ARRAY[1, 1]::bigint[], ARRAY[sha256('d'), sha256('d')])$$, 'LL105', 'routes', 'arrays that differ in length');
SELECT is_misuse($$reserve_capacity_batch(ARRAY[['q', 'q']], ARRAY[['many', 'many']], ARRAY[['1', '2']], ARRAY[[1, 1]]::bigint[], ARRAY[[sha256('d'), sha256('d')]])$$, 'LL105', 'subjects', 'arrays of two dimensions');
SELECT is_misuse($$reserve_capacity_batch(NULL, ARRAY['many'], ARRAY['1'], ARRAY[1]::bigint[], ARRAY[sha256('d')])$$, 'LL101', 'subjects', 'a mandatory array that is NULL');
SELECT is_misuse($$reserve_capacity_batch(ARRAY['q'], ARRAY['many'], ARRAY['1'], ARRAY[1]::bigint[], ARRAY[sha256('d')], start_operations => ARRAY[]::text[])$$, 'LL105', 'start_operations', 'an optional array that is too short');
SELECT is_misuse($$settle_usage_batch(ARRAY['p', 'p'], ARRAY['1', '1'], ARRAY['o1', 'o1'], ARRAY[1, -1]::bigint[])$$, 'LL103', 'actuals', 'a negative figure');
SELECT is_misuse($$settle_usage_batch(ARRAY['p'], ARRAY['1'], ARRAY['o1'], ARRAY[1]::bigint[], NULL, ARRAY['nobody'])$$, 'LL106', 'sources', 'a source that is none');
SELECT is_misuse($$start_reservation_batch(ARRAY['p'], ARRAY['1'], ARRAY[''])$$, 'LL102', 'operation_ids', 'an empty operation');
SELECT is_misuse($$release_reservation_batch(ARRAY['p', 'p'], ARRAY['1'])$$, 'LL105', 'reservation_ids', 'a release that lacks an id');
SELECT is((SELECT count(*) FROM limitledger.reservation WHERE subject = 'q'), 0::bigint, 'nothing of them stands');
-- Elements before the bad one are not kept, wherever it is.
SELECT is_misuse($$reserve_capacity_batch(ARRAY['q', 'q'], ARRAY['many', 'many'], ARRAY['1', repeat('x', 257)], ARRAY[1, 1]::bigint[], ARRAY[sha256('d'), sha256('d')])$$, 'LL102', 'reservation_ids', 'an id that is too long');
SELECT sound('at the end');

SELECT * FROM finish();
ROLLBACK;
