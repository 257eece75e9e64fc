-- What operators do about a pair, and usage that nobody reserved: freeze beside
-- unfreeze (D8), grant_capacity (E3), record_usage (D12).
--
-- Fails when: a frozen pair admits, stops settling or thaws by itself; a grant is made
-- twice, misses a debt or exceeds the cap; usage is booked twice, cut off or lost.

BEGIN;
\ir helpers.psql
SELECT plan(118);

-- unchanged runs a call about a pair, asserts what it answers, and that no row was written.
CREATE FUNCTION helpers.unchanged(call text, expected text, description text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  before CONSTANT text := image();
  said text;
BEGIN
  EXECUTE format('SELECT concat_ws('' '', outcome, dimension, admission) FROM limitledger.%s', call) INTO said;
  RETURN is(said || CASE WHEN image() <> before THEN ', and rows changed' ELSE '' END, expected, description);
END $$;
CREATE FUNCTION helpers.granted(subject text, route text, id text, units bigint) RETURNS text
LANGUAGE sql AS $$
  SELECT concat_ws(' ', outcome, dimension, granted_units, CASE WHEN replayed THEN 'replayed' END, admission)
  FROM limitledger.grant_capacity(subject, route, id, units, 'asked for')
$$;
CREATE FUNCTION helpers.record(subject text, route text, operation text, units bigint) RETURNS text
LANGUAGE sql AS $$
  SELECT answer(r.outcome, r.dimension, r.state, r.replayed) FROM limitledger.record_usage(subject, route, operation, units) r
$$;
CREATE FUNCTION helpers.frozen_reason(subject text, route text) RETURNS text
LANGUAGE sql AS $$
  SELECT b.frozen_reason FROM limitledger.get_budget(subject, route) b
$$;

-- ---- freeze (D8) --------------------------------------------------------------
SELECT at('10:00:00');
SELECT publish('*', 'chat', '{"holdTtl": "2 hours"}');
SELECT is(reserve('t1', 'chat', 'run', 200, 'o run'), 'ACCEPTED STARTED', 'an execution');
SELECT is(reserve('t1', 'chat', 'held', 100), 'ACCEPTED RESERVED', 'a hold');
SELECT is(reserve('t1', 'chat', 'back', 100), 'ACCEPTED RESERVED', 'and one');
SELECT results_eq($$SELECT outcome, dimension, debt, available, admission, ledger_at FROM limitledger.freeze('t1', 'chat', 'abuse')$$,
  $$VALUES ('ACCEPTED', NULL, 0::bigint, 600::bigint, 'frozen', '2030-01-01 10:00:00+00'::timestamptz)$$, 'an operator freezes the pair');
SELECT is(frozen_reason('t1', 'chat'), 'abuse', 'for a reason');
SELECT results_eq($$SELECT outcome, dimension, retry_after_ms, retry_kind FROM limitledger.reserve_capacity('t1', 'chat', 'new', 1, sha256('new'))$$,
  $$VALUES ('REFUSED', 'frozen', NULL::bigint, 'operator')$$, 'nothing is admitted');
SELECT is(reserve('t2', 'chat', 'new', 1), 'ACCEPTED RESERVED', 'for this pair alone');
SELECT unchanged($$freeze('t1', 'chat', 'another reason')$$, 'ACCEPTED frozen', 'frozen twice');
SELECT is(frozen_reason('t1', 'chat'), 'abuse', 'the first reason stands');
SELECT is(reserve('t1', 'chat', 'held', 100), 'ACCEPTED RESERVED replayed', 'a receipt is still a receipt');
SELECT is(start('t1', 'held', 'o held'), 'ACCEPTED STARTED', 'what is held can run');
SELECT is(settle('t1', 'run', 'o run', 250), 'ACCEPTED SETTLED', 'settlement goes on');
SELECT is(release('t1', 'back'), 'ACCEPTED RELEASED', 'so does release');
SELECT is(equation('t1', 'chat'), '1000 + 0 + 0 = 650 + 100 + 250 + 0 + 0', 'and units come back');
SELECT at('11:00:00');
SELECT is(reserve('t1', 'chat', 'new', 1), 'REFUSED frozen', 'no epoch thaws it');
SELECT publish('*', 'chat', '{"holdTtl": "1 hour"}');
SELECT is(reserve('t1', 'chat', 'new', 1), 'REFUSED frozen', 'nor a generation');
SELECT is(settle('t1', 'held', 'o held', 0), 'ACCEPTED SETTLED', 'nor a settlement under it');
SELECT is(admission('t1', 'chat'), 'frozen', 'it is frozen');
SELECT is((SELECT concat_ws(' ', outcome, admission) FROM limitledger.unfreeze('t1', 'chat', 'talked to them')), 'ACCEPTED open', 'until an operator opens it');
SELECT unchanged($$unfreeze('t1', 'chat', 'again')$$, 'ACCEPTED open', 'once');
SELECT is(reserve('t1', 'chat', 'new', 750), 'ACCEPTED RESERVED', 'with all that it had');
SELECT is((SELECT string_agg(format('%s %s by %s on %s %s: %s', to_char(acted_at AT TIME ZONE 'UTC', 'HH24:MI'), action, CASE actor WHEN current_user THEN 'me' END, subject, route, reason),
                             ', ' ORDER BY acted_at) FROM limitledger.operator_actions),
  '10:00 freeze by me on t1 chat: abuse, 11:00 unfreeze by me on t1 chat: talked to them', 'who did what, and why');

-- A pair that nobody has met, one without a policy, one that froze by itself.
SELECT is((SELECT concat_ws(' ', outcome, available, admission) FROM limitledger.freeze('t3', 'chat', 'before they come')), 'ACCEPTED 1000 frozen', 'a pair can be frozen before its first call');
SELECT is(reserve('t3', 'chat', 'first', 1), 'REFUSED frozen', 'which is refused');
SELECT is((SELECT concat_ws(' ', outcome, admission) FROM limitledger.unfreeze('t3', 'chat', 'let them in')), 'ACCEPTED open', 'until it is opened');
SELECT is(reserve('t3', 'chat', 'first', 1000), 'ACCEPTED RESERVED', 'with the whole cap');
SELECT unchanged($$freeze('t1', 'nowhere', 'why')$$, 'REFUSED no_policy', 'without a policy nothing is admitted anyhow');
SELECT is((SELECT count(*) FROM limitledger.freeze('t1', 'nowhere', 'why') WHERE num_nulls(debt, available, admission, ledger_at) = 4), 1::bigint, 'and there is no pair to show');
SELECT publish('t4', 'chat', '{"maximumOverdraft": 0}');
SELECT is(reserve('t4', 'chat', 'r', 1000, 'o'), 'ACCEPTED STARTED', 'an execution');
SELECT is(settle('t4', 'r', 'o', 1100), 'ACCEPTED SETTLED_WITH_DEBT', 'runs away');
SELECT unchanged($$freeze('t4', 'chat', 'mine')$$, 'ACCEPTED frozen', 'the breach has frozen it already');
SELECT is(frozen_reason('t4', 'chat'), 'the debt exceeded the maximum overdraft', 'and its reason stands');
SELECT unchanged($$unfreeze('t4', 'chat', 'please')$$, 'REFUSED debt frozen', 'it owes a hundred');
SELECT sound('frozen and thawed');

-- ---- grant_capacity (E3) ---------------------------------------------------------
-- t4 has no refill: nothing else gets it out.
SELECT is(granted('t4', 'chat', 'g1', 60), 'ACCEPTED 60 frozen', 'a grant pays debt');
SELECT is(debt('t4', 'chat'), 40::bigint, 'as far as it goes');
SELECT is(equation('t4', 'chat'), '1000 + 60 + 100 = 0 + 0 + 1100 + 0 + 60', 'minted and repaid grow together');
SELECT unchanged($$grant_capacity('t4', 'chat', 'g1', 60, 'asked for')$$, 'ACCEPTED frozen', 'repeated, it is made once');
SELECT unchanged($$grant_capacity('t4', 'chat', 'g1', 60, 'for another reason')$$, 'ACCEPTED frozen', 'whatever the reason');
SELECT is(granted('t4', 'chat', 'g1', 60), 'ACCEPTED 60 replayed frozen', 'and says what it was');
SELECT unchanged($$grant_capacity('t4', 'chat', 'g1', 61, 'asked for')$$, 'CONFLICT grant frozen', 'other units are a conflict');
SELECT is((SELECT granted_units FROM limitledger.grant_capacity('t4', 'chat', 'g1', 61, 'asked for')), 60::bigint, 'that shows the first');
SELECT is(granted('t4', 'chat', 'g2', 100), 'ACCEPTED 100 frozen', 'the next one pays the rest');
SELECT is(equation('t4', 'chat'), '1000 + 160 + 100 = 60 + 0 + 1100 + 0 + 100', 'and fills available');
SELECT is(reserve('t4', 'chat', 'r2', 1), 'REFUSED frozen', 'a grant thaws nothing');
SELECT is((SELECT concat_ws(' ', outcome, admission) FROM limitledger.unfreeze('t4', 'chat', 'paid')), 'ACCEPTED open', 'but now it can be opened');
SELECT is(reserve('t4', 'chat', 'r2', 60), 'ACCEPTED RESERVED', 'and admits');
SELECT is(granted('t4', 'chat', 'g3', 5000), 'ACCEPTED 1000 open', 'never above the cap');
SELECT is(granted('t4', 'chat', 'g4', 1), 'ACCEPTED 0 open', 'nor when it is full');
SELECT is(reserve('t4', 'chat', 'r3', 500), 'ACCEPTED RESERVED', 'room again');
SELECT is(granted('t4', 'chat', 'g4', 1), 'ACCEPTED 0 replayed open', 'what found no room was not granted, then or later');
SELECT is(granted('t4', 'chat', 'g5', 9223372036854775807), 'ACCEPTED 500 open', 'however many');
SELECT is(release('t4', 'r3'), 'ACCEPTED RELEASED', 'what comes back to a full pair');
SELECT is(available('t4', 'chat'), 1000::bigint, 'is un-minted');
SELECT is((SELECT string_agg(format('%s %s by %s on %s %s: %s of %s, %s', to_char(granted_at AT TIME ZONE 'UTC', 'HH24:MI'), grant_id, CASE actor WHEN current_user THEN 'me' END, subject, route, granted_units, units, reason),
                             '; ' ORDER BY grant_id) FROM limitledger.capacity_grants WHERE grant_id IN ('g1', 'g3')),
  '11:00 g1 by me on t4 chat: 60 of 60, asked for; 11:00 g3 by me on t4 chat: 1000 of 5000, asked for', 'who granted what, and why');
SELECT is(granted('t2', 'chat', 'g1', 7), 'ACCEPTED 1 open', 'a grant id is one of its pair: this one has room for the unit that it holds');
SELECT unchanged($$grant_capacity('t1', 'nowhere', 'g', 1, 'why')$$, 'REFUSED no_policy', 'without a policy there is nothing to fill');
SELECT is(granted('t5', 'chat', 'g1', 7), 'ACCEPTED 0 open', 'a pair opens at its cap');
SELECT is(equation('t5', 'chat'), '1000 + 0 + 0 = 1000 + 0 + 0 + 0 + 0', 'and not above it');
SELECT sound('after the grants');

-- Refill that is due counts first; the oldest debt is paid first, in its own budget (E2).
SELECT at('11:30:00');
SELECT publish('t6', 'chat', quota(100));
SELECT is(reserve('t6', 'chat', 'r', 100, 'o'), 'ACCEPTED STARTED', 'a window');
SELECT is(settle('t6', 'r', 'o', 300), 'ACCEPTED SETTLED_WITH_DEBT', 'owes two hundred');
SELECT at('12:00:00');
SELECT is(granted('t6', 'chat', 'g1', 30), 'ACCEPTED 30 suspended', 'the next one pays a hundred, and the grant thirty');
SELECT is(closed('t6', 'chat', 1), '100 + 130 + 200 = 0 + 0 + 300 + 0 + 130', 'to the budget that owes');
SELECT is(equation('t6', 'chat'), '0 + 0 + 0 = 0 + 0 + 0 + 0 + 0', 'the head owes nothing, and has nothing');
SELECT is(granted('t6', 'chat', 'g2', 100), 'ACCEPTED 100 open', 'the last of it');
SELECT is(equation('t6', 'chat'), '0 + 30 + 0 = 30 + 0 + 0 + 0 + 0', 'then the head is filled');
SELECT is(granted('t6', 'chat', 'g3', 500), 'ACCEPTED 70 open', 'up to its cap');

-- After debt, before available: the deficit of a quota that was lowered (B5).
SELECT publish('t7', 'chat', quota(1000));
SELECT is(reserve('t7', 'chat', 'r', 900, 'o'), 'ACCEPTED STARTED', 'nine hundred are in use');
SELECT publish('t7', 'chat', quota(500));
SELECT results_eq($$SELECT outcome, granted_units, debt, available FROM limitledger.grant_capacity('t7', 'chat', 'g1', 450, 'asked for')$$,
  $$VALUES ('ACCEPTED', 450::bigint, 0::bigint, 50::bigint)$$, 'four hundred are above the new quota: they come first');
SELECT is((SELECT deficit FROM limitledger.get_budget('t7', 'chat')), 0::bigint, 'and are made up for');
SELECT is(equation('t7', 'chat'), '0 + 50 + 0 = 50 + 0 + 0 + 0 + 0', 'only the rest is minted');
SELECT sound('grants over budgets');

-- ---- record_usage (D12) ------------------------------------------------------------
SELECT publish('t8', 'chat');
SELECT publish('t8', 'embed');
SELECT results_eq($$SELECT outcome, dimension, state, replayed, epoch, reserved_units, actual_units, operation, expires_at, ledger_at, available, cap
                    FROM limitledger.record_usage('t8', 'chat', 'u1', 300)$$,
  $$VALUES ('ACCEPTED', NULL, NULL, false, '2030-01-01 12:00:00+00'::timestamptz, NULL::bigint, 300::bigint, 'u1', NULL::timestamptz,
            '2030-01-01 12:00:00+00'::timestamptz, 700::bigint, 1000::bigint)$$, 'usage that nobody reserved');
SELECT is(equation('t8', 'chat'), '1000 + 0 + 0 = 700 + 0 + 300 + 0 + 0', 'takes what is available');
SELECT changes_nothing($$record_usage('t8', 'chat', 'u1', 300)$$, 'ACCEPTED replayed', 'once');
SELECT changes_nothing($$record_usage('t8', 'chat', 'u1', 301)$$, 'CONFLICT figures', 'other units are a conflict');
SELECT is((SELECT actual_units FROM limitledger.record_usage('t8', 'chat', 'u1', 301)), 300::bigint, 'that shows the first');
SELECT changes_nothing($$record_usage('t8', 'embed', 'u1', 300)$$, 'CONFLICT figures', 'another route is one too');
SELECT is((SELECT count(*) FROM limitledger.budgets WHERE subject = 't8' AND route = 'embed'), 0::bigint, 'and opens no pair there');
SELECT is(record('t1', 'chat', 'u1', 0), 'ACCEPTED', 'another subject''s operation is another one; zero is a figure');
SELECT changes_nothing($$record_usage('t1', 'chat', 'u1', 0)$$, 'ACCEPTED replayed', 'that binds it');
SELECT changes_nothing($$record_usage('t1', 'chat', 'u1', 1)$$, 'CONFLICT figures', 'to zero');

-- One operation is one thing.
SELECT is(reserve('t8', 'chat', 'r1', 100, 'o1'), 'ACCEPTED STARTED', 'an execution');
SELECT changes_nothing($$record_usage('t8', 'chat', 'o1', 100)$$, 'CONFLICT operation_elsewhere', 'has a reservation to settle');
SELECT is((SELECT num_nulls(operation, actual_units) FROM limitledger.record_usage('t8', 'chat', 'o1', 100)), 2, 'of which nothing is shown');
SELECT is(reserve('t8', 'chat', 'r2', 100), 'ACCEPTED RESERVED', 'a hold');
SELECT changes_nothing($$start_reservation('t8', 'r2', 'u1')$$, 'CONFLICT operation_elsewhere', 'is not started by an operation that was recorded');
SELECT changes_nothing($$reserve_capacity('t8', 'chat', 'r3', 1, sha256('r3'), start_operation => 'u1')$$, 'CONFLICT operation_elsewhere', 'nor at once');
SELECT is(settle('t8', 'r1', 'o1', 100), 'ACCEPTED SETTLED', 'settled');
SELECT changes_nothing($$record_usage('t8', 'chat', 'o1', 100)$$, 'CONFLICT operation_elsewhere', 'it is not booked again');
SELECT changes_nothing($$settle_usage('t8', 'lost', 'o lost', 50)$$, 'UNKNOWN reservation', 'a reservation that is not here');
SELECT is(record('t8', 'chat', 'o lost', 50), 'ACCEPTED', 'leaves its operation''s usage to be recorded');
SELECT is(equation('t8', 'chat'), '1000 + 0 + 0 = 450 + 100 + 450 + 0 + 0', 'all of it is booked once');

-- What is not available is debt; all of it is recorded, whatever the policy allows.
SELECT is(record('t8', 'chat', 'u2', 750), 'ACCEPTED', 'more than there is');
SELECT is(equation('t8', 'chat'), '1000 + 0 + 300 = 0 + 100 + 1200 + 0 + 0', 'leaves a debt');
SELECT is(reserve('t8', 'chat', 'r4', 1), 'REFUSED debt', 'that stops admission');
SELECT is(record('t8', 'chat', 'u3', 200), 'ACCEPTED', 'what ran is recorded all the same');
SELECT is(admission('t8', 'chat'), 'suspended', 'five hundred may be owed');
SELECT is(record('t8', 'chat', 'u4', 1), 'ACCEPTED', 'one more');
SELECT is(frozen_reason('t8', 'chat'), 'the debt exceeded the maximum overdraft', 'freezes the pair');
SELECT is(record('t8', 'chat', 'u5', 9), 'ACCEPTED', 'and is still not lost');
SELECT is(debt('t8', 'chat'), 510::bigint, 'nor forgotten');
SELECT publish('t9', 'chat', '{"hardExecutionLimit": 100}');
SELECT is(record('t9', 'chat', 'u1', 100), 'ACCEPTED', 'as much as one execution may use');
SELECT is(admission('t9', 'chat'), 'open', 'changes nothing');
SELECT is(record('t9', 'chat', 'u2', 101), 'ACCEPTED', 'more than that');
SELECT is(frozen_reason('t9', 'chat'), 'an execution used more than its hard limit', 'freezes the pair');

-- What is due comes first; the first usage of a pair opens it; no sum overflows.
SELECT publish('t10', 'chat', continuous(10, '1 second', 100));
SELECT is(record('t10', 'chat', 'u1', 100), 'ACCEPTED', 'a pair that begins with it');
SELECT is(equation('t10', 'chat'), '100 + 0 + 0 = 0 + 0 + 100 + 0 + 0', 'opens at its cap');
SELECT at('12:00:05');
SELECT is(record('t10', 'chat', 'u2', 30), 'ACCEPTED', 'five seconds later');
SELECT is(equation('t10', 'chat'), '100 + 50 + 0 = 20 + 0 + 130 + 0 + 0', 'refill has been counted in');
SELECT is(record('t10', 'chat', 'u3', 9223372036854775557), 'ACCEPTED', 'as many as can be counted');
SELECT is_misuse($$record_usage('t10', 'chat', 'u4', 9223372036854775807)$$, 'LL107', 'spent', 'but no sum overflows');
SELECT results_eq($$SELECT outcome, dimension, retry_kind FROM limitledger.record_usage('t8', 'nowhere', 'u9', 1)$$,
  $$VALUES ('REFUSED', 'no_policy', 'operator')$$, 'without a policy there is no budget to book it on');
SELECT changes_nothing($$record_usage('t8', 'nowhere', 'u9', 1)$$, 'REFUSED no_policy', 'and nothing is written');
SELECT is(record('t8', 'embed', 'u9', 1), 'ACCEPTED', 'so that its id is free');
SELECT is((SELECT string_agg(format('%s %s on %s: %s', to_char(recorded_at AT TIME ZONE 'UTC', 'HH24:MI:SS'), operation_id, route, usage_units), ', ' ORDER BY operation_id)
           FROM limitledger.unreserved_usage WHERE subject = 't8' AND operation_id IN ('u1', 'u9')),
  '12:00:00 u1 on chat: 300, 12:00:05 u9 on embed: 1', 'what was never reserved can be listed');
SELECT sound('at the end');

SELECT * FROM finish();
ROLLBACK;
