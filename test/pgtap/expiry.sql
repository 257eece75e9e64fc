-- Expiry that depends on a sweeper (D5, D14, J4): with none running, a hold that has
-- run out is never started, its units go to the next reserve that needs them, and
-- what get_budget shows agrees with what reserve does.
--
-- Fails when: reserve refuses before it ends due holds, start looks at the state
-- alone, or a hold's units come back twice.

BEGIN;
\ir helpers.psql
SELECT plan(57);

SELECT at('10:00:00');
SELECT publish('t1', 'chat', '{"holdTtl": "2 seconds"}');
SELECT is(reserve('t1', 'chat', 'r1', 1000), 'ACCEPTED RESERVED', 'everything is held');
SELECT is((SELECT expires_at FROM limitledger.get_reservation('t1', 'r1')), '2030-01-01 10:00:02+00'::timestamptz, 'for two seconds');

SELECT at('10:00:01.999999');
SELECT is(reserve('t1', 'chat', 'r2', 500), 'REFUSED available', 'before the deadline nobody else gets it');
SELECT is((SELECT due_units FROM limitledger.get_budget('t1', 'chat')), 0::bigint, 'and nothing is due');
SELECT results_eq($$SELECT * FROM limitledger.expire_reservations(100)$$, $$VALUES (0::bigint, 0::bigint, 0::bigint)$$, 'for a sweep either');

SELECT at('10:00:02');
SELECT changes_nothing($$start_reservation('t1', 'r1', 'o1')$$, 'REFUSED expired', 'at the deadline it can not be started, though no sweep came by');
SELECT is(state('t1', 'r1'), 'RESERVED', 'a refused start moves nothing');
SELECT results_eq($$SELECT available, due_units FROM limitledger.get_budget('t1', 'chat')$$, $$VALUES (0::bigint, 1000::bigint)$$,
  'get_budget shows what the next reserve will find');
SELECT at('10:00:04');
SELECT is(reserve('t1', 'chat', 'r2', 500), 'ACCEPTED RESERVED', 'reserve ends the hold and admits');
SELECT is(state('t1', 'r1'), 'EXPIRED', 'the hold is over');
SELECT is(equation('t1', 'chat'), '1000 + 0 + 0 = 500 + 500 + 0 + 0 + 0', 'its units came back');
SELECT changes_nothing($$start_reservation('t1', 'r1', 'o1')$$, 'REFUSED expired', 'it can not be started');
SELECT changes_nothing($$release_reservation('t1', 'r1')$$, 'REFUSED expired', 'nor released');
SELECT is_misuse($$settle_usage('t1', 'r1', 'o1', 1)$$, 'LL301', 'reservation', 'nor settled');
SELECT results_eq($$SELECT * FROM limitledger.expire_reservations(100)$$, $$VALUES (0::bigint, 0::bigint, 0::bigint)$$, 'a sweep finds nothing more');
SELECT is(equation('t1', 'chat'), '1000 + 0 + 0 = 500 + 500 + 0 + 0 + 0', 'they came back once');
SELECT is(reserve('t1', 'chat', 'r1', 1000), 'ACCEPTED EXPIRED replayed', 'asked again, the receipt says what became of it');
SELECT sound('expired by a reserve');

-- A reserve that does not need them leaves due holds alone.
SELECT publish('t2', 'chat', '{"holdTtl": "2 seconds"}');
SELECT is(reserve('t2', 'chat', 'r1', 100), 'ACCEPTED RESERVED', 'held');
SELECT at('10:00:10');
SELECT is(reserve('t2', 'chat', 'r2', 900), 'ACCEPTED RESERVED', 'the rest is enough for this one');
SELECT is(state('t2', 'r1'), 'RESERVED', 'so the due hold was left');
SELECT is(reserve('t2', 'chat', 'r3', 100), 'ACCEPTED RESERVED', 'and ended by the one that needed it');
SELECT is(state('t2', 'r1'), 'EXPIRED', 'it is over');

-- A hold can be released after its deadline as long as nobody has claimed it.
SELECT at('10:00:20');
SELECT is(release('t2', 'r2'), 'ACCEPTED RELEASED', 'a due hold may still be released');
SELECT is(equation('t2', 'chat'), '1000 + 0 + 0 = 900 + 100 + 0 + 0 + 0', 'its units came back');

-- The sweep: claim, then give back; a crash between the two is finished later.
SELECT publish('t3', 'chat', '{"holdTtl": "2 seconds"}');
SELECT is(reserve('t3', 'chat', 'r' || n, 100), 'ACCEPTED RESERVED', 'held ' || n) FROM generate_series(1, 5) n;
SELECT is(reserve('t3', 'chat', 's1', 100, 'o1'), 'ACCEPTED STARTED', 'and one that runs');
SELECT at('10:00:30');
SELECT is((SELECT sum(claimed) FROM limitledger.claim_expiring(1000)), 7::numeric, 'all that is due is claimed: five here, one of t1 and one of t2');
SELECT is((SELECT string_agg(state('t3', 'r' || n), ' ') FROM generate_series(1, 5) n), 'EXPIRING EXPIRING EXPIRING EXPIRING EXPIRING', 'claimed');
SELECT is(equation('t3', 'chat'), '1000 + 0 + 0 = 400 + 600 + 0 + 0 + 0', 'no balance has moved');
SELECT sound('between claim and finish');
SELECT changes_nothing($$start_reservation('t3', 'r1', 'o2')$$, 'REFUSED expired', 'a claimed hold can not be started');
SELECT changes_nothing($$release_reservation('t3', 'r1')$$, 'REFUSED expired', 'nor released');
SELECT is(reserve('t3', 'chat', 'r1', 100), 'ACCEPTED EXPIRING replayed', 'its receipt shows it');
SELECT results_eq($$SELECT * FROM limitledger.claim_expiring(1000)$$, $$VALUES (0::bigint)$$, 'nothing is claimed twice');
SELECT is((SELECT sum(expired) FROM limitledger.finish_expiring(2)), 2::numeric, 'a bounded batch finishes two');
SELECT is(reserve('t3', 'chat', 'big', 900), 'ACCEPTED RESERVED', 'a reserve finishes what a crashed sweep left');
SELECT is(equation('t3', 'chat'), '1000 + 0 + 0 = 0 + 1000 + 0 + 0 + 0', 'the one that runs keeps its units');
SELECT is(state('t3', 's1'), 'STARTED', 'and its state');
SELECT cmp_ok((SELECT expired FROM limitledger.finish_expiring(1000)), '<=', 2::bigint, 'at most those of t1 and t2 were left');
SELECT is((SELECT count(*) FROM limitledger.reservation WHERE state IN ('EXPIRING')), 0::bigint, 'no claim is left');
SELECT is(release('t3', 'big'), 'ACCEPTED RELEASED', 'the holds of t3 are gone');
SELECT sound('after the sweep');

-- expire_reservations does both and counts units once.
SELECT publish('t4', 'chat', '{"holdTtl": "2 seconds"}');
SELECT is(reserve('t4', 'chat', 'r' || n, 20), 'ACCEPTED RESERVED', 'held ' || n) FROM generate_series(1, 4) n;
SELECT at('10:00:40');
SELECT results_eq($$SELECT * FROM limitledger.expire_reservations(3)$$, $$VALUES (3::bigint, 3::bigint, 60::bigint)$$, 'a bounded batch');
SELECT results_eq($$SELECT * FROM limitledger.expire_reservations(3)$$, $$VALUES (1::bigint, 1::bigint, 20::bigint)$$, 'the rest');
SELECT is(equation('t4', 'chat'), '1000 + 0 + 0 = 1000 + 0 + 0 + 0 + 0', 'all is back');
SELECT is_misuse('expire_reservations(0)', 'LL106', 'batch_limit', 'a batch of none');
SELECT is_misuse('expire_reservations(NULL)', 'LL101', 'batch_limit', 'a batch of unknown size');
SELECT sound('at the end');

SELECT * FROM finish();
ROLLBACK;
