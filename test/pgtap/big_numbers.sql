-- Units above 2^53 (A2, A5, J3): 9,007,199,254,740,993 is the first whole number that no
-- double holds, and the one below it is what a double makes of it.  It is exact in every
-- column, in the text of a row and of an error, and where JSON is read by clients that
-- know doubles only it is a string.
--
-- Fails when: a figure passes through a double anywhere, or a bigint becomes a JSON number.

BEGIN;
\ir helpers.psql
SELECT plan(69);

\set n 9007199254740993
SELECT is(:n::float8::bigint, 9007199254740992, 'a double makes another number of it');

-- ---- What a policy says -----------------------------------------------------------
SELECT at('10:00:00');
SELECT publish('t', 'chat', '{"burst": 27021597764222979, "hardExecutionLimit": 9007199254740993, "largestReservation": 9007199254740993,
  "largestOutstanding": 18014398509481987, "maximumOverdraft": 9007199254740993, "fairnessBudget": 9007199254740993}') AS generation \gset
SELECT results_eq('SELECT cap, hard_execution_limit, largest_reservation, largest_outstanding, maximum_overdraft, fairness_budget FROM limitledger.policies',
  $$VALUES (27021597764222979, 9007199254740993, 9007199254740993, 18014398509481987, 9007199254740993, 9007199254740993)$$, 'a policy is read as it is written');
SELECT is((SELECT document ->> 'largestReservation' FROM limitledger.policies), :'n', 'and kept so');
SELECT is((SELECT string_agg(in_force || ' -> ' || proposed, ', ' ORDER BY field) FROM limitledger.policy_diff(
    (SELECT document || '{"largestReservation": 9007199254740992}' FROM limitledger.policies))), '9007199254740993 -> 9007199254740992', 'its neighbour is another policy');

-- ---- Columns, rows, JSON ------------------------------------------------------------
SELECT is(reserve('t', 'chat', 'r1', :n + 1), 'REFUSED largest_reservation', 'a unit above the largest reservation');
SELECT results_eq($$SELECT outcome, reserved_units, available, cap, hard_limit FROM limitledger.reserve_capacity('t', 'chat', 'r1', 9007199254740993, sha256('r1'))$$,
  $$VALUES ('ACCEPTED', 9007199254740993, 18014398509481986, 27021597764222979, 9007199254740993)$$, 'columns');
SELECT is((SELECT pg_typeof(reserved_units) FROM limitledger.get_reservation('t', 'r1')), 'bigint'::regtype, 'that are bigint');
SELECT matches(limitledger.get_reservation('t', 'r1')::text, ',9007199254740993,.*,18014398509481986,27021597764222979,.*,9007199254740993,,,\)$', 'the text of a composite');
SELECT matches(row_to_json(limitledger.get_reservation('t', 'r1'))::text, '"reserved_units":9007199254740993,.*"available":18014398509481986,"cap":27021597764222979,', 'the text of a JSON number');
SELECT is(to_jsonb(limitledger.get_reservation('t', 'r1')) ->> 'reserved_units', :'n', 'a member of jsonb, as text');
SELECT is((SELECT reserved_units::text FROM limitledger.reservations), :'n', 'a view');
SELECT is((SELECT array_agg(reserved_units)::text FROM limitledger.reserve_capacity_batch(ARRAY['t'], ARRAY['chat'], ARRAY['r1'], ARRAY[:n], ARRAY[sha256('r1')])), '{9007199254740993}', 'an array in, a batch out');

-- A double cannot tell these from it; the ledger does.
SELECT is(reserve('t', 'chat', 'r1', :n), 'ACCEPTED RESERVED replayed', 'the same figure is a repeat');
SELECT is(reserve('t', 'chat', 'r1', :n - 1), 'CONFLICT request', 'its neighbour is another request');
SELECT is(reserve('t', 'chat', 'r2', :n), 'ACCEPTED RESERVED', 'twice');
SELECT is(reserve('t', 'chat', 'r3', 2), 'REFUSED largest_outstanding', 'a unit above the largest outstanding');
SELECT is(reserve('t', 'chat', 'r3', 1), 'ACCEPTED RESERVED', 'and to the unit');
SELECT is(equation('t', 'chat'), '27021597764222979 + 0 + 0 = 9007199254740992 + 18014398509481987 + 0 + 0 + 0', 'the equation');
SELECT is((SELECT outstanding FROM limitledger.get_budget('t', 'chat')), 18014398509481987, 'outstanding');
SELECT is(start('t', 'r1', 'o1'), 'ACCEPTED STARTED', 'started');
SELECT is((SELECT progress_units FROM limitledger.report_progress('t', 'r1', 'o1', :n) p, limitledger.reservations WHERE reservation_id = 'r1'), 0::bigint, 'progress is told');
SELECT is((SELECT progress_units FROM limitledger.reservations WHERE reservation_id = 'r1'), :n, 'and kept');
SELECT is((SELECT outcome || ' ' || dimension FROM limitledger.settle_usage('t', 'r1', 'o1', :n - 1, source => 'operator')), 'REFUSED progress', 'the neighbour is below it');
SELECT is((SELECT actual_units FROM limitledger.settle_usage('t', 'r1', 'o1', :n)), :n, 'settled');
SELECT is(settle('t', 'r1', 'o1', :n), 'ACCEPTED SETTLED replayed', 'the same figure is a repeat');
SELECT is(settle('t', 'r1', 'o1', :n - 1), 'CONFLICT figures', 'its neighbour is not');
SELECT is((SELECT actual_units FROM limitledger.settle_usage('t', 'r1', 'o1', :n - 1)), :n, 'and is shown what is stored');
SELECT is(limitledger.get_reservation_document('t', 'r1') -> member, '"9007199254740993"'::jsonb, member || ' of a document is a string')
FROM unnest(ARRAY['reservedUnits', 'progressUnits', 'actualUnits']) member;
SELECT is(admission('t', 'chat'), 'open', 'the hard limit, to the unit');
SELECT is(start('t', 'r3', 'o3'), 'ACCEPTED STARTED', 'one reserved');
SELECT is((SELECT excess_units FROM limitledger.settle_usage('t', 'r3', 'o3', :n)), 9007199254740992, 'excess');
SELECT is(equation('t', 'chat'), '27021597764222979 + 0 + 0 = 0 + 9007199254740993 + 18014398509481986 + 0 + 0', 'all of it covered, to the unit');
SELECT is((SELECT actual_units FROM limitledger.record_usage('t', 'chat', 'ran', :n)), :n, 'usage without a reservation');
SELECT is(debt('t', 'chat'), :n, 'debt');
SELECT is(admission('t', 'chat'), 'suspended', 'the maximum overdraft, to the unit');
SELECT is((SELECT actual_units FROM limitledger.record_usage('t', 'chat', 'ran', :n - 1)), :n, 'its neighbour is shown what is stored');
SELECT is((SELECT usage_units::text FROM limitledger.unreserved_usage), :'n', 'a view');
SELECT is(release('t', 'r2'), 'ACCEPTED RELEASED', 'units that come back');
SELECT is(equation('t', 'chat'), '27021597764222979 + 0 + 9007199254740993 = 0 + 0 + 27021597764222979 + 0 + 9007199254740993', 'pay to the unit');
SELECT is((SELECT granted_units || ' ' || available FROM limitledger.grant_capacity('t', 'chat', 'g', :n, 'more')), '9007199254740993 9007199254740993', 'a grant');
SELECT is((SELECT units || ' ' || granted_units FROM limitledger.capacity_grants), '9007199254740993 9007199254740993', 'on record');
SELECT is(reserve('t', 'chat', 'r4', 1), 'ACCEPTED RESERVED', 'a hold of one');
SELECT is((SELECT reserved_units FROM limitledger.extend_reservation('t', 'r4', 'e', :n - 1)), :n, 'extended by the rest');
SELECT is(available('t', 'chat'), 0::bigint, 'which leaves nothing');
SELECT at('10:01:00');
SELECT is((SELECT expired_units FROM limitledger.expire_reservations()), :n, 'expired');
SELECT sound('the audit adds without a double, too');

-- Refill: both sides of a rate, to the unit.
SELECT at('10:00:00');
SELECT publish('u', 'embed', continuous(:n, '1 second', 9007199254740993000));
SELECT is(reserve('u', 'embed', 'r1', 9007199254740993000), 'ACCEPTED RESERVED', 'a thousand times as many');
SELECT at('10:00:01');
SELECT is((SELECT minted || ' ' || available FROM limitledger.get_budget('u', 'embed')), '9007199254740993 9007199254740993', 'one second');
SELECT is((SELECT retry_after_ms FROM limitledger.reserve_capacity('u', 'embed', 'r2', :n + 1, sha256('r2'))), 1::bigint, 'a unit more is a wait');
SELECT is(reserve('u', 'embed', 'r2', :n), 'ACCEPTED RESERVED', 'these are there');
SELECT sound('after refill');

-- ---- What errors say ------------------------------------------------------------------
CREATE FUNCTION detail(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  problem text; info text;
BEGIN
  EXECUTE 'SELECT * FROM limitledger.' || call;
  RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS problem = MESSAGE_TEXT, info = PG_EXCEPTION_DETAIL;
  RETURN problem || ': ' || info;
END $$;
SELECT is(detail($$reserve_capacity('t', 'chat', 'r', -9007199254740993, sha256('r'))$$), 'units must be at least 1: It is -9007199254740993.', 'an argument');
SELECT is(detail($$settle_usage_batch(ARRAY['t'], ARRAY['r'], ARRAY['o'], ARRAY[-9007199254740993])$$), 'actuals, element 1 must be at least 0: It is -9007199254740993.', 'an element');
SELECT is(detail(format('publish_policy(%L)', document('t', 'chat', '{"burst": 9007199254740993, "largestReservation": 9007199254740994}'))),
  'policy field burst must not be below largestReservation: The document says 9007199254740993.', 'a field');
SELECT is(detail(format('publish_policy(%L)', document('t', 'chat', '{"policyGeneration": 9007199254740993}'))),
  'policy field policyGeneration is not the generation of this document: The document says 9007199254740993; its generation is 3.', 'a generation');
SELECT matches(detail($$drain_policy(9007199254740993, 'none')$$), '^generation 9007199254740993 does not exist', 'one that does not exist');
SELECT matches(detail($$request_digest('{"units": 9007199254740993}')$$), ': 9007199254740993 is no double; the nearest one is 9007199254740992\.$', 'a number that is no double has no digest, and both are shown');
SELECT is(limitledger.canonical_json('{"units": "9007199254740993"}'), '{"units":"9007199254740993"}', 'as a string it has');

-- ---- JSON and fields for clients with doubles ---------------------------------------
SELECT is(limitledger.problem_details('REFUSED', 'available', :n, 'refill', :n, 'chat') -> member, '"9007199254740993"'::jsonb, member || ' is a string')
FROM unnest(ARRAY['generation', 'retry_after_ms']) member;
SELECT is_empty($$SELECT key FROM jsonb_each(limitledger.problem_details('REFUSED', 'available', 9007199254740993, 'refill', 9007199254740993, 'chat'))
  WHERE jsonb_typeof(value) = 'number' AND key <> 'status'$$, 'and nothing but the status is a number');
-- A field holds whole numbers of 15 digits, which every double holds; above it says less
-- than there is, never another number.
SELECT is((SELECT string_agg(name || ': ' || value, ', ') FROM limitledger.http_headers('chat', units, :n, NULL, NULL)), said, 'header fields with ' || units || ' available')
FROM (VALUES (:n, 'RateLimit: "chat";r=999999999999999, RateLimit-Policy: "chat";q=999999999999999'),
             (999999999999999, 'RateLimit: "chat";r=999999999999999, RateLimit-Policy: "chat";q=999999999999999'),
             (999999999999998, 'RateLimit: "chat";r=999999999999998, RateLimit-Policy: "chat";q=999999999999999')) v (units, said);
SELECT is(limitledger.retry_after(:n), '9007199254741', 'Retry-After rounds up to the second');
SELECT is(limitledger.retry_after(9007199254740000), '9007199254740', 'and not beyond');
SELECT is_empty($$SELECT h.name FROM limitledger.http_headers('chat', 9007199254740993, 9007199254740993, '2030-01-01Z', '2030-01-01Z', 9007199254740993, 'tokens', 9007199254740993, 'openai') h
  WHERE jsonb_typeof(to_jsonb(h) -> 'value') <> 'string'$$, 'every field is a text');

SELECT * FROM finish();
ROLLBACK;
