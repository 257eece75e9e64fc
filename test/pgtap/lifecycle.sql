-- The life of a reservation, call by call (D1-D11): what each answers in each state,
-- and what its receipt holds (J1).
--
-- Fails when: any entry of the transition table is another one, a replay is decided
-- afresh, or a receipt leaves something out.

BEGIN;
\ir helpers.psql
SELECT plan(156);
SELECT at('10:07:00.5');

-- The receipt of a reserve, in full.
SELECT is(publish('t1', 'first', continuous(10, '1 second', 1000)), 1::bigint, 'the policy');
SELECT results_eq($$SELECT * FROM limitledger.reserve_capacity('t1', 'first', 'r1', 600, sha256('r1'))$$,
  $$VALUES ('ACCEPTED', NULL, 'RESERVED', false, 1::bigint, '2030-01-01 10:00:00+00'::timestamptz, 600::bigint, NULL::bigint, NULL,
    '2030-01-01 10:07:30.5+00'::timestamptz, '2030-01-01 10:07:00.5+00'::timestamptz, 400::bigint, 1000::bigint,
    '2030-01-01 10:08:00.5+00'::timestamptz, NULL::bigint, NULL, 1000000::bigint, NULL::bigint, NULL::bigint, NULL::timestamptz)$$,
  'reserve: every column of the receipt');
SELECT at('10:07:10.5');
SELECT results_eq($$SELECT outcome, state, replayed, reserved_units, expires_at, ledger_at, available
                    FROM limitledger.reserve_capacity('t1', 'first', 'r1', 600, sha256('r1'))$$,
  $$VALUES ('ACCEPTED', 'RESERVED', true, 600::bigint, '2030-01-01 10:07:30.5+00'::timestamptz, '2030-01-01 10:07:10.5+00'::timestamptz, 500::bigint)$$,
  'asked again: the same receipt, at the present instant');
SELECT results_eq($$SELECT outcome, dimension, state, replayed, generation, available, cap, retry_after_ms, retry_kind
                    FROM limitledger.reserve_capacity('t1', 'first', 'r2', 600, sha256('r2'))$$,
  $$VALUES ('REFUSED', 'available', 'REQUESTED', false, 1::bigint, 500::bigint, 1000::bigint, 10000::bigint, 'refill')$$,
  'refused: the generation that matched, the limit and the wait');
SELECT results_eq($$SELECT outcome, state, replayed, operation, expires_at, hard_limit FROM limitledger.start_reservation('t1', 'r1', 'o1')$$,
  $$VALUES ('ACCEPTED', 'STARTED', false, 'o1', '2030-01-01 10:17:10.5+00'::timestamptz, 1000000::bigint)$$,
  'start: the hard limit and the execution deadline');
SELECT at('10:07:20.5');
SELECT results_eq($$SELECT outcome, state, replayed, operation, expires_at, hard_limit FROM limitledger.start_reservation('t1', 'r1', 'o1')$$,
  $$VALUES ('ACCEPTED', 'STARTED', true, 'o1', '2030-01-01 10:17:10.5+00'::timestamptz, 1000000::bigint)$$,
  'started again: the same answer');
SELECT results_eq($$SELECT outcome, state, replayed, reserved_units, actual_units, operation, available, excess_units
                    FROM limitledger.settle_usage('t1', 'r1', 'o1', 200, sha256('receipt'), 'reconciler')$$,
  $$VALUES ('ACCEPTED', 'SETTLED', false, 600::bigint, 200::bigint, 'o1', 1000::bigint, 0::bigint)$$, 'settle');
SELECT is((SELECT receipt_source FROM limitledger.reservation WHERE subject = 't1'), 'reconciler', 'who said the figure is kept');
SELECT is((SELECT receipt_digest FROM limitledger.reservation WHERE subject = 't1'), sha256('receipt'), 'and the digest of its receipt');
SELECT results_eq($$SELECT outcome, dimension, state, actual_units, operation FROM limitledger.settle_usage('t1', 'r1', 'o1', 201)$$,
  $$VALUES ('CONFLICT', 'figures', 'SETTLED', 200::bigint, 'o1')$$, 'other figures: a conflict that shows the stored ones');
SELECT results_eq($$SELECT outcome, dimension, state, actual_units, operation FROM limitledger.settle_usage('t1', 'r1', 'o2', 200)$$,
  $$VALUES ('CONFLICT', 'operation', 'SETTLED', 200::bigint, 'o1')$$, 'another operation, likewise');
SELECT changes_nothing($$settle_usage('t1', 'r1', 'o1', 200, sha256('receipt'))$$, 'ACCEPTED SETTLED replayed', 'the same figures and receipt: the same answer');
SELECT changes_nothing($$settle_usage('t1', 'r1', 'o1', 200, sha256('another receipt'))$$, 'CONFLICT figures', 'another receipt is a conflict');
SELECT results_eq($$SELECT outcome, dimension, state, reserved_units, actual_units, operation, generation FROM limitledger.get_reservation('t1', 'r1')$$,
  $$VALUES ('ACCEPTED', NULL, 'SETTLED', 600::bigint, 200::bigint, 'o1', 1::bigint)$$, 'get shows it');
SELECT results_eq($$SELECT outcome, dimension, state FROM limitledger.get_reservation('t1', 'never')$$,
  $$VALUES ('UNKNOWN', 'reservation', 'RESERVATION_UNKNOWN')$$, 'what was never seen is unknown, not refused');

-- Identity: a receipt stands for its request, whatever has happened since (D2).
SELECT at('10:00:00');
SELECT publish('t2', 'chat');
SELECT publish('t2', 'embed');
SELECT is(reserve('t2', 'chat', 'k', 300), 'ACCEPTED RESERVED', 'an id');
SELECT changes_nothing($$reserve_capacity('t2', 'chat', 'k', 300, sha256('other'))$$, 'CONFLICT request', 'other digest');
SELECT changes_nothing($$reserve_capacity('t2', 'chat', 'k', 301, sha256('k'))$$, 'CONFLICT request', 'other units');
SELECT changes_nothing($$reserve_capacity('t2', 'embed', 'k', 300, sha256('k'))$$, 'CONFLICT request', 'other route');
SELECT changes_nothing($$reserve_capacity('t2', 'nowhere', 'k', 300, sha256('k'))$$, 'CONFLICT request', 'a route without a policy');
SELECT publish('t2b', 'chat');
SELECT is(reserve('t2b', 'chat', 'k', 300), 'ACCEPTED RESERVED', 'another subject''s ids are its own');
SELECT is(reserve('t2', 'chat', 'rest', 700), 'ACCEPTED RESERVED', 'now the pair is full');
SELECT changes_nothing($$reserve_capacity('t2', 'chat', 'k', 300, sha256('k'))$$, 'ACCEPTED RESERVED replayed', 'the receipt, when the pair is full');
SELECT changes_nothing($$reserve_capacity('t2', 'chat', 'k', 300, sha256('k'), deadline => '2029-01-01 00:00:00+00')$$, 'ACCEPTED RESERVED replayed', 'when the caller''s deadline has passed');
SELECT changes_nothing($$reserve_capacity('t2', 'chat', 'k', 300, 'sha256:8254c329a92850f6d539dd376f4816ee2764517da5e0235514af433164480d7a')$$,
  'ACCEPTED RESERVED replayed', 'with its digest in the other form');
SELECT publish('t2', 'chat', '{"burst": 10}');
SELECT changes_nothing($$reserve_capacity('t2', 'chat', 'k', 300, sha256('k'))$$, 'ACCEPTED RESERVED replayed', 'under a generation that would refuse it');
SELECT is(start('t2', 'k', 'o'), 'ACCEPTED STARTED', 'started');
SELECT changes_nothing($$reserve_capacity('t2', 'chat', 'k', 300, sha256('k'))$$, 'ACCEPTED STARTED replayed', 'as it is now');
SELECT is(settle('t2', 'k', 'o', 400), 'ACCEPTED SETTLED_WITH_DEBT', 'with debt');
SELECT changes_nothing($$reserve_capacity('t2', 'chat', 'k', 300, sha256('k'))$$, 'ACCEPTED SETTLED_WITH_DEBT replayed', 'in debt');

-- Each call in each state; the row stays as it was unless the table says it moves.
SELECT publish('m', 'chat', '{"burst": 100000}');
CREATE TEMP SEQUENCE tick;
CREATE FUNCTION helpers.bring(to_state text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  id CONSTANT text := gen_random_uuid();
  moment CONSTANT timestamptz := '2030-01-01 11:00:00+00'::timestamptz + nextval('tick') * interval '2 minutes';
BEGIN
  PERFORM at(moment);
  IF to_state NOT IN ('REQUESTED', 'RESERVATION_UNKNOWN') THEN PERFORM reserve('m', 'chat', id, 10); END IF;
  IF to_state IN ('STARTED', 'USAGE_UNKNOWN', 'SETTLED', 'SETTLED_WITH_DEBT') THEN PERFORM start('m', id, 'op ' || id); END IF;
  IF to_state = 'USAGE_UNKNOWN' THEN PERFORM report_unknown('m', id, 'op ' || id); END IF;
  IF to_state = 'SETTLED' THEN PERFORM settle('m', id, 'op ' || id, 10); END IF;
  IF to_state = 'RELEASED' THEN PERFORM release('m', id); END IF;
  IF to_state IN ('EXPIRING', 'EXPIRED') THEN
    PERFORM at(moment + interval '1 minute');
    PERFORM limitledger.claim_expiring(100000);
    IF to_state = 'EXPIRED' THEN PERFORM limitledger.finish_expiring(100000); END IF;
  END IF;
  ASSERT state('m', id) = replace(to_state, 'REQUESTED', 'RESERVATION_UNKNOWN'), to_state;
  RETURN id;
END $$;
CREATE FUNCTION helpers.try(event text, id text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  before CONSTANT text := image();
  said text;
BEGIN
  said := CASE event
    WHEN 'reserve' THEN reserve('m', 'chat', id, 10)
    WHEN 'start' THEN start('m', id, 'op ' || id)
    WHEN 'settle' THEN settle('m', id, 'op ' || id, 10)
    WHEN 'release' THEN release('m', id)
    WHEN 'report_unknown' THEN report_unknown('m', id, 'op ' || id)
    WHEN 'resolve' THEN resolve('m', id) END;
  RETURN concat_ws(', ', said, CASE WHEN image() <> before THEN 'moved' END);
EXCEPTION WHEN SQLSTATE 'LL301' THEN
  RETURN 'REFUSED not_started';   -- the single form says it as an error
END $$;
SELECT is(try(event, bring(t.state)),
  concat_ws(', ', answer(t.outcome, t.dimension, t.next_state, t.outcome = 'ACCEPTED' AND t.state = t.next_state),
    CASE WHEN t.state <> t.next_state THEN 'moved' END),
  format('%s in %s', event, t.state))
FROM limitledger.transitions() t
WHERE event IN ('reserve', 'start', 'settle', 'release', 'report_unknown', 'resolve') AND t.state <> 'SETTLED_WITH_DEBT';
SELECT is((SELECT count(*) FROM limitledger.transitions()), 72::bigint, 'nine states, eight events');
SELECT sound('after every event in every state');

-- Operations: one operation, one execution of a subject (D5).
SELECT at('10:00:00');
SELECT publish('t3', 'chat');
SELECT is(reserve('t3', 'chat', 'r' || n, 10), 'ACCEPTED RESERVED', 'hold ' || n) FROM generate_series(1, 4) n;
SELECT is(start('t3', 'r1', 'o1'), 'ACCEPTED STARTED', 'bound');
SELECT changes_nothing($$start_reservation('t3', 'r1', 'o2')$$, 'CONFLICT operation', 'to one operation');
SELECT changes_nothing($$start_reservation('t3', 'r2', 'o1')$$, 'CONFLICT operation_elsewhere', 'which is bound to it');
SELECT changes_nothing($$reserve_capacity('t3', 'chat', 'r9', 10, sha256('r9'), start_operation => 'o1')$$, 'CONFLICT operation_elsewhere', 'also for a start at once');
SELECT is(state('t3', 'r9'), 'RESERVATION_UNKNOWN', 'which then took nothing');
SELECT changes_nothing($$settle_usage('t3', 'r1', 'o2', 1)$$, 'CONFLICT operation', 'and for its receipt');
SELECT is(settle('t3', 'r1', 'o1', 10), 'ACCEPTED SETTLED', 'settled');
SELECT changes_nothing($$start_reservation('t3', 'r2', 'o1')$$, 'CONFLICT operation_elsewhere', 'an operation is never used again');
SELECT is(start('t3', 'r2', 'r1'), 'ACCEPTED STARTED', 'an operation may be called as a reservation is');
SELECT publish('t3b', 'chat');
SELECT is(reserve('t3b', 'chat', 'r1', 10, 'o1'), 'ACCEPTED STARTED', 'another subject''s operations are its own');

-- Start at once (D5).
SELECT results_eq($$SELECT outcome, state, replayed, operation, expires_at, available FROM limitledger.reserve_capacity('t3b', 'chat', 'r2', 90, sha256('r2'), start_operation => 'o2')$$,
  $$VALUES ('ACCEPTED', 'STARTED', false, 'o2', '2030-01-01 10:10:00+00'::timestamptz, 900::bigint)$$, 'reserved and started in one call');
SELECT changes_nothing($$reserve_capacity('t3b', 'chat', 'r2', 90, sha256('r2'), start_operation => 'o2')$$, 'ACCEPTED STARTED replayed', 'and again');
SELECT changes_nothing($$start_reservation('t3b', 'r2', 'o2')$$, 'ACCEPTED STARTED replayed', 'the same by start');
SELECT changes_nothing($$release_reservation('t3b', 'r2')$$, 'REFUSED already_started', 'it runs');
SELECT changes_nothing($$reserve_capacity('t3b', 'chat', 'r3', 5000, sha256('r3'), start_operation => 'o3')$$, 'REFUSED largest_reservation', 'refused, it binds nothing');
SELECT is(reserve('t3b', 'chat', 'r4', 10, 'o3'), 'ACCEPTED STARTED', 'so its operation is free');

-- The hold's deadline is the policy's, to the microsecond (D5).
SELECT publish('t4', 'chat', '{"holdTtl": "PT1.5S"}');
SELECT is(reserve('t4', 'chat', 'r1', 10), 'ACCEPTED RESERVED', 'held');
SELECT is(reserve('t4', 'chat', 'r2', 10), 'ACCEPTED RESERVED', 'twice');
SELECT at('10:00:01.499999');
SELECT is(start('t4', 'r1', 'o1'), 'ACCEPTED STARTED', 'in time');
SELECT at('10:00:01.5');
SELECT changes_nothing($$start_reservation('t4', 'r2', 'o2')$$, 'REFUSED expired', 'too late');
SELECT is(start('t4', 'r1', 'o1'), 'ACCEPTED STARTED replayed', 'what has started is not late');

-- What a caller may demand: region, estimator, deadline (D3, D9).
SELECT at('10:00:00');
SELECT publish('t5', 'chat', jsonb_build_object('region', 'eu', 'estimatorDigests',
  jsonb_build_array('sha256:' || encode(sha256('v1'), 'hex'), 'sha256:' || encode(sha256('v2'), 'hex')), 'largestReservation', 100, 'largestOutstanding', 150));
CREATE FUNCTION helpers.ask(id text, units bigint, region text, estimator bytea, deadline timestamptz) RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws(' ', outcome, dimension, retry_kind, retry_after_ms)
  FROM limitledger.reserve_capacity('t5', 'chat', id, units, sha256('d'), region, estimator, deadline)
$$;
SELECT is(ask('a', 10, 'eu', sha256('v1'), NULL), 'ACCEPTED', 'an accepted estimator');
SELECT is(ask('b', 10, 'eu', sha256('v2'), NULL), 'ACCEPTED', 'and the next one, so that gateways can be rolled');
SELECT is(ask('c', 10, 'eu', sha256('v0'), NULL), 'REFUSED estimator never', 'a stale estimator');
SELECT is(ask('c', 10, 'eu', NULL, NULL), 'REFUSED estimator never', 'no estimator');
SELECT is(ask('c', 10, 'us', sha256('v1'), NULL), 'REFUSED region never', 'the wrong region');
SELECT is(ask('c', 10, NULL, sha256('v1'), NULL), 'REFUSED region never', 'no region');
SELECT is(ask('c', 10, 'eu', sha256('v1'), '2030-01-01 10:00:00+00'), 'REFUSED deadline never', 'a deadline that is now');
SELECT is(ask('c', 10, 'eu', sha256('v1'), '2030-01-01 10:00:00.000001+00'), 'ACCEPTED', 'one that is not');
SELECT is(ask('d', 101, 'eu', sha256('v1'), NULL), 'REFUSED largest_reservation never', 'more than one reservation may hold');
SELECT is(ask('e', 100, 'eu', sha256('v1'), NULL), 'ACCEPTED', 'as much as it may hold');
SELECT is(ask('f', 21, 'eu', sha256('v1'), NULL), 'REFUSED largest_outstanding release', 'more than the pair may hold');
SELECT is(ask('f', 20, 'eu', sha256('v1'), NULL), 'ACCEPTED', 'as much as it may hold');
SELECT results_eq($$SELECT outcome, dimension, generation FROM limitledger.reserve_capacity('t5', 'nowhere', 'r', 1, sha256('r'))$$,
  $$VALUES ('REFUSED', 'no_policy', NULL::bigint)$$, 'no policy');
SELECT publish('t6', 'chat');
SELECT is((SELECT outcome FROM limitledger.reserve_capacity('t6', 'chat', 'r', 1, sha256('r'), 'anywhere', sha256('anything'))), 'ACCEPTED', 'any region, any estimator');
SELECT is((SELECT priority FROM limitledger.reservation WHERE subject = 't6'), 0, 'the policy''s priority');
SELECT is((SELECT outcome FROM limitledger.reserve_capacity('t6', 'chat', 'r2', 1, sha256('r'), priority => 7)), 'ACCEPTED', 'with a priority');
SELECT is((SELECT priority FROM limitledger.reservation WHERE subject = 't6' AND reservation_id = 'r2'), 7, 'of its own');

-- The final word (D11).
SELECT publish('t7', 'chat');
SELECT is(reserve('t7', 'chat', 'known', 100), 'ACCEPTED RESERVED', 'an original');
SELECT changes_nothing($$resolve_reservation('t7', 'known', sha256('known'))$$, 'ACCEPTED RESERVED replayed', 'resolved: its receipt');
SELECT changes_nothing($$resolve_reservation('t7', 'known', sha256('other'))$$, 'CONFLICT request', 'with another digest: a conflict');
SELECT results_eq($$SELECT outcome, state, replayed, reserved_units FROM limitledger.resolve_reservation('t7', 'lost', sha256('lost'))$$,
  $$VALUES ('ACCEPTED', 'RELEASED', false, 0::bigint)$$, 'an unknown id is fenced');
SELECT changes_nothing($$resolve_reservation('t7', 'lost', sha256('lost'))$$, 'ACCEPTED RELEASED replayed', 'once');
SELECT changes_nothing($$reserve_capacity('t7', 'chat', 'lost', 100, sha256('lost'))$$, 'ACCEPTED RELEASED replayed', 'a late original gets the fence and debits nothing');
SELECT changes_nothing($$reserve_capacity('t7', 'chat', 'lost', 100, sha256('other'))$$, 'CONFLICT request', 'with another digest: a conflict');
SELECT changes_nothing($$start_reservation('t7', 'lost', 'o1')$$, 'REFUSED released', 'a fence can not be started');
SELECT changes_nothing($$release_reservation('t7', 'lost')$$, 'ACCEPTED RELEASED replayed', 'and is released');
SELECT is(equation('t7', 'chat'), '1000 + 0 + 0 = 900 + 100 + 0 + 0 + 0', 'it holds nothing');
SELECT is((SELECT outcome || ' ' || state FROM limitledger.resolve_reservation('nobody', 'lost', sha256('lost'))), 'ACCEPTED RELEASED', 'a fence needs no policy');
SELECT is(resolve('t7', 'lost too'), 'ACCEPTED RELEASED', 'fenced');
SELECT publish('t7', 'embed');
SELECT changes_nothing($$reserve_capacity('t7', 'embed', 'lost too', 1, sha256('lost too'))$$, 'ACCEPTED RELEASED replayed', 'on whatever route it comes');
SELECT sound('at the end');

-- Text is compared byte for byte and never cut (A1).
SELECT publish(s, 'bytes', '{"burst": 10}') FROM unnest(ARRAY['a', 'A', 'a ', ' a', U&'\00e4', U&'a\0308', repeat('x', 256), repeat('x', 255)]) s;
SELECT is(reserve(s, 'bytes', 'r', 10), 'ACCEPTED RESERVED', format('a budget of its own for %s', quote_literal(left(s, 10))))
FROM unnest(ARRAY['a', 'A', 'a ', ' a', U&'\00e4', U&'a\0308', repeat('x', 256), repeat('x', 255)]) s;
SELECT is(reserve('t7', 'chat', id, 1), 'ACCEPTED RESERVED', format('an id of its own: %s', quote_literal(id)))
FROM unnest(ARRAY['id', 'ID', 'id ', 'i''d', 'i"d', 'i/d', 'i,d', '*', E'i\td']) id;
SELECT publish('a/b', 'c', '{"burst": 10}'), publish('a', 'b/c', '{"burst": 10}');
SELECT is(reserve('a/b', 'c', 'r', 10), 'ACCEPTED RESERVED', 'a/b on c');
SELECT is(reserve('a', 'b/c', 'r2', 10), 'ACCEPTED RESERVED', 'is not a on b/c');
SELECT sound('whatever the characters');

SELECT * FROM finish();
ROLLBACK;
