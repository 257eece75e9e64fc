-- No rejected, conflicting or repeated call changes any row (D3, and the list of what a
-- call may answer): after each of them every row version of every table is where it
-- was, even while refill, a new epoch and a switch of generation are due.
--
-- Fails when: a refusal or a replay writes anything, if only what it had found.

BEGIN;
\ir helpers.psql
SELECT plan(292);

SELECT at('10:00:00');
SELECT publish('t', 'chat', continuous(1, '1 second', 1000) || '{"region": "eu", "largestReservation": 900, "largestOutstanding": 950, "holdTtl": "2 hours"}');
SELECT publish('t', 'embed', '{"hardExecutionLimit": 10}');
SELECT is((SELECT outcome FROM limitledger.reserve_capacity('t', 'chat', 'held', 200, sha256('held'), 'eu')), 'ACCEPTED', 'a hold');
SELECT is((SELECT outcome FROM limitledger.reserve_capacity('t', 'chat', 'run', 200, sha256('run'), 'eu', start_operation => 'o run')), 'ACCEPTED', 'an execution');
SELECT is((SELECT outcome FROM limitledger.reserve_capacity('t', 'chat', 'unknown', 50, sha256('unknown'), 'eu', start_operation => 'o unknown')), 'ACCEPTED', 'one of unknown usage');
SELECT is(report_unknown('t', 'unknown', 'o unknown'), 'ACCEPTED USAGE_UNKNOWN', 'unknown');
SELECT is((SELECT outcome FROM limitledger.reserve_capacity('t', 'chat', 'done', 50, sha256('done'), 'eu', start_operation => 'o done')), 'ACCEPTED', 'one that is settled');
SELECT is(settle('t', 'done', 'o done', 40), 'ACCEPTED SETTLED', 'settled');
SELECT is((SELECT outcome FROM limitledger.reserve_capacity('t', 'chat', 'back', 50, sha256('back'), 'eu')), 'ACCEPTED', 'one that is released');
SELECT is(release('t', 'back'), 'ACCEPTED RELEASED', 'released');
SELECT is(resolve('t', 'fence'), 'ACCEPTED RELEASED', 'a fence');
SELECT is(reserve('t', 'embed', 'over', 20, 'o over'), 'ACCEPTED STARTED', 'one above the hard limit');
SELECT is(settle('t', 'over', 'o over', 20), 'ACCEPTED SETTLED', 'freezes its pair');

SELECT is((SELECT outcome FROM limitledger.report_progress('t', 'run', 'o run', 30)), 'ACCEPTED', 'progress of the one that runs');
SELECT is((SELECT outcome FROM limitledger.extend_reservation('t', 'held', 'e held', until => '2030-01-01 12:00+00')), 'ACCEPTED', 'a hold that was extended');
SELECT is((SELECT outcome FROM limitledger.record_usage('t', 'chat', 'o ran', 10)), 'ACCEPTED', 'usage without a reservation');
SELECT is((SELECT granted_units FROM limitledger.grant_capacity('t', 'embed', 'g', 5, 'goodwill')), 5::bigint, 'a grant');

CREATE TEMP TABLE attempt (call text, expected text) ON COMMIT DROP;
INSERT INTO attempt VALUES
  -- refused
  ('reserve_capacity(''t'', ''chat'', ''new'', 800, sha256(''n''), ''eu'')', 'REFUSED largest_outstanding'),
  ('reserve_capacity(''t'', ''chat'', ''new'', 901, sha256(''n''), ''eu'')', 'REFUSED largest_reservation'),
  ('reserve_capacity(''t'', ''chat'', ''new'', 10, sha256(''n''), ''us'')', 'REFUSED region'),
  ('reserve_capacity(''t'', ''chat'', ''new'', 10, sha256(''n''), ''eu'', NULL, ''2030-01-01 10:00+00'')', 'REFUSED deadline'),
  ('reserve_capacity(''t'', ''embed'', ''new'', 10, sha256(''n''))', 'REFUSED frozen'),
  ('reserve_capacity(''t'', ''nowhere'', ''new'', 10, sha256(''n''))', 'REFUSED no_policy'),
  ('reserve_capacity(''t'', ''embed'', ''new'', 10, sha256(''n''), start_operation => ''o new'')', 'REFUSED frozen'),
  ('release_reservation(''t'', ''run'')', 'REFUSED already_started'),
  ('release_reservation(''t'', ''unknown'')', 'REFUSED already_started'),
  ('release_reservation(''t'', ''done'')', 'REFUSED settled'),
  ('start_reservation(''t'', ''back'', ''o'')', 'REFUSED released'),
  ('report_usage_unknown(''t'', ''held'', ''o'')', 'REFUSED not_started'),
  ('report_usage_unknown(''t'', ''done'', ''o done'')', 'REFUSED settled'),
  ('report_progress(''t'', ''held'', ''o'', 1)', 'REFUSED not_started'),
  ('report_progress(''t'', ''done'', ''o done'', 50)', 'REFUSED settled'),
  ('settle_usage(''t'', ''run'', ''o run'', 29, source => ''operator'')', 'REFUSED progress'),
  ('extend_reservation(''t'', ''held'', ''e new'', until => ''2030-01-01 16:00+00'')', 'REFUSED ttl'),
  ('extend_reservation(''t'', ''unknown'', ''e new'', 1)', 'REFUSED already_started'),
  ('extend_reservation(''t'', ''done'', ''e new'', 1)', 'REFUSED settled'),
  ('extend_reservation(''t'', ''back'', ''e new'', 1)', 'REFUSED released'),
  ('record_usage(''t'', ''nowhere'', ''o new'', 1)', 'REFUSED no_policy'),
  -- conflicts
  ('report_progress(''t'', ''run'', ''other'', 50)', 'CONFLICT operation'),
  ('extend_reservation(''t'', ''held'', ''e held'', 1)', 'CONFLICT extension'),
  ('record_usage(''t'', ''chat'', ''o ran'', 11)', 'CONFLICT figures'),
  ('record_usage(''t'', ''embed'', ''o ran'', 10)', 'CONFLICT figures'),
  ('record_usage(''t'', ''chat'', ''o done'', 40)', 'CONFLICT operation_elsewhere'),
  ('start_reservation(''t'', ''held'', ''o ran'')', 'CONFLICT operation_elsewhere'),
  ('reserve_capacity(''t'', ''chat'', ''held'', 200, sha256(''other''), ''eu'')', 'CONFLICT request'),
  ('reserve_capacity(''t'', ''chat'', ''held'', 201, sha256(''held''), ''eu'')', 'CONFLICT request'),
  ('reserve_capacity(''t'', ''embed'', ''held'', 200, sha256(''held''))', 'CONFLICT request'),
  ('reserve_capacity(''t'', ''chat'', ''fence'', 200, sha256(''other''), ''eu'')', 'CONFLICT request'),
  ('reserve_capacity(''t'', ''chat'', ''new'', 10, sha256(''n''), ''eu'', start_operation => ''o run'')', 'CONFLICT operation_elsewhere'),
  ('start_reservation(''t'', ''run'', ''other'')', 'CONFLICT operation'),
  ('start_reservation(''t'', ''held'', ''o run'')', 'CONFLICT operation_elsewhere'),
  ('start_reservation(''t'', ''held'', ''o done'')', 'CONFLICT operation_elsewhere'),
  ('settle_usage(''t'', ''run'', ''other'', 1)', 'CONFLICT operation'),
  ('settle_usage(''t'', ''done'', ''o done'', 41)', 'CONFLICT figures'),
  ('settle_usage(''t'', ''done'', ''other'', 40)', 'CONFLICT operation'),
  ('report_usage_unknown(''t'', ''run'', ''other'')', 'CONFLICT operation'),
  ('resolve_reservation(''t'', ''held'', sha256(''other''))', 'CONFLICT request'),
  ('resolve_reservation(''t'', ''fence'', sha256(''other''))', 'CONFLICT request'),
  -- nobody
  ('start_reservation(''t'', ''never'', ''o'')', 'UNKNOWN reservation'),
  ('settle_usage(''t'', ''never'', ''o'', 1)', 'UNKNOWN reservation'),
  ('release_reservation(''t'', ''never'')', 'UNKNOWN reservation'),
  ('report_usage_unknown(''t'', ''never'', ''o'')', 'UNKNOWN reservation'),
  ('report_progress(''t'', ''never'', ''o'', 1)', 'UNKNOWN reservation'),
  ('extend_reservation(''t'', ''never'', ''e'', 1)', 'UNKNOWN reservation'),
  ('get_reservation(''t'', ''never'')', 'UNKNOWN reservation'),
  -- repeated
  ('reserve_capacity(''t'', ''chat'', ''held'', 200, sha256(''held''), ''eu'')', 'ACCEPTED RESERVED replayed'),
  ('reserve_capacity(''t'', ''chat'', ''run'', 200, sha256(''run''), ''eu'', start_operation => ''o run'')', 'ACCEPTED STARTED replayed'),
  ('reserve_capacity(''t'', ''chat'', ''fence'', 1, sha256(''fence''), ''eu'')', 'ACCEPTED RELEASED replayed'),
  ('start_reservation(''t'', ''run'', ''o run'')', 'ACCEPTED STARTED replayed'),
  ('start_reservation(''t'', ''done'', ''o done'')', 'ACCEPTED SETTLED replayed'),
  ('settle_usage(''t'', ''done'', ''o done'', 40)', 'ACCEPTED SETTLED replayed'),
  ('release_reservation(''t'', ''back'')', 'ACCEPTED RELEASED replayed'),
  ('report_usage_unknown(''t'', ''unknown'', ''o unknown'')', 'ACCEPTED USAGE_UNKNOWN replayed'),
  ('report_progress(''t'', ''run'', ''o run'', 30)', 'ACCEPTED STARTED replayed'),
  ('report_progress(''t'', ''run'', ''o run'', 29)', 'ACCEPTED STARTED replayed'),
  ('extend_reservation(''t'', ''held'', ''e held'', until => ''2030-01-01 12:00+00'')', 'ACCEPTED RESERVED replayed'),
  ('record_usage(''t'', ''chat'', ''o ran'', 10)', 'ACCEPTED replayed'),
  ('resolve_reservation(''t'', ''held'', sha256(''held''))', 'ACCEPTED RESERVED replayed'),
  ('resolve_reservation(''t'', ''fence'', sha256(''fence''))', 'ACCEPTED RELEASED replayed'),
  ('get_reservation(''t'', ''held'')', 'ACCEPTED RESERVED replayed'),
  -- the same in batches
  ('start_reservation_batch(ARRAY[''t'', ''t'', ''t''], ARRAY[''run'', ''held'', ''never''], ARRAY[''o run'', ''o run'', ''o''])',
   'ACCEPTED STARTED replayed, CONFLICT operation_elsewhere, UNKNOWN reservation'),
  ('settle_usage_batch(ARRAY[''t'', ''t'', ''t'', ''t''], ARRAY[''done'', ''done'', ''held'', ''never''], ARRAY[''o done'', ''o done'', ''o'', ''o''], ARRAY[40, 41, 1, 1]::bigint[])',
   'ACCEPTED SETTLED replayed, CONFLICT figures, REFUSED not_started, UNKNOWN reservation'),
  ('release_reservation_batch(ARRAY[''t'', ''t''], ARRAY[''run'', ''back''])', 'REFUSED already_started, ACCEPTED RELEASED replayed'),
  ('reserve_capacity_batch(ARRAY[''t'', ''t'', ''t''], ARRAY[''chat'', ''chat'', ''embed''], ARRAY[''held'', ''held'', ''new''], ARRAY[200, 201, 10]::bigint[],
     ARRAY[sha256(''held''), sha256(''held''), sha256(''n'')], ARRAY[''eu'', ''eu'', NULL])', 'ACCEPTED RESERVED replayed, CONFLICT request, REFUSED frozen');

SELECT changes_nothing(call, expected, call) FROM attempt;

-- Refill is due: what a refusal finds it does not write.
SELECT at('10:00:20');
SELECT changes_nothing(call, expected, 'refill due: ' || call) FROM attempt WHERE expected NOT LIKE '%deadline%';
-- So are a new epoch and, after it, a new generation.
SELECT at('11:00:00');
SELECT changes_nothing(call, expected, 'epoch due: ' || call) FROM attempt;
SELECT publish('t', 'chat', continuous(2, '1 second', 1000) || '{"region": "eu", "largestReservation": 900, "largestOutstanding": 950, "holdTtl": "2 hours"}');
SELECT at('11:00:01');
SELECT changes_nothing(call, expected, 'generation due: ' || call) FROM attempt;

-- In debt, with a repayment due.
SELECT publish('d', 'debt', continuous(1, '1 second', 100));
SELECT is(reserve('d', 'debt', 'r', 100, 'o'), 'ACCEPTED STARTED', 'a pair');
SELECT is(settle('d', 'r', 'o', 150), 'ACCEPTED SETTLED_WITH_DEBT', 'that owes fifty');
SELECT changes_nothing($$reserve_capacity('d', 'debt', 'r2', 1, sha256('r2'))$$, 'REFUSED debt', 'in debt');
SELECT changes_nothing($$settle_usage('d', 'r', 'o', 151)$$, 'CONFLICT figures', 'other figures, in debt');
SELECT at('11:00:30');
SELECT changes_nothing($$settle_usage('d', 'r', 'o', 150)$$, 'ACCEPTED SETTLED_WITH_DEBT replayed', 'a replay, with a repayment due');
SELECT changes_nothing($$reserve_capacity('d', 'debt', 'r2', 101, sha256('r2'))$$, 'REFUSED largest_reservation', 'a refusal that no time can change');
SELECT changes_nothing($$reserve_capacity('d', 'debt', 'r2', 1, sha256('r2'))$$, 'REFUSED debt', 'still in debt');

-- Readers change nothing, whatever is due.
SELECT at('12:30:00');
SELECT is((SELECT image()), (SELECT CASE WHEN count(*) >= 0 THEN image() END FROM limitledger.get_budget('t', 'chat')), 'get_budget');
SELECT is((SELECT image()), (SELECT CASE WHEN count(*) >= 0 THEN image() END FROM limitledger.verify_conservation()), 'verify_conservation');
SELECT sound('at the end');

SELECT * FROM finish();
ROLLBACK;
