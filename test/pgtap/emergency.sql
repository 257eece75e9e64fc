-- Shards on the side of the ledger: who gets one, what it takes from the pair, what
-- stands in the way of it, and the old limiter's share, which takes the same way
-- (G1, G2, G6, B6, B8, E1).
--
-- Fails when: units leave twice or without their shard's row, a shard is issued while the
-- pair owes, is frozen or drains, beyond its share, or to a gateway without a boot; units
-- come back without a receipt, or twice.

BEGIN;
\ir helpers.psql
SELECT no_plan();

CREATE FUNCTION helpers.enabled(share int, fields jsonb DEFAULT '{}') RETURNS jsonb LANGUAGE sql AS $$
  SELECT jsonb_build_object('emergencyMode', 'enabled', 'emergencyShare', share, 'shardTtl', '10 minutes') || fields
$$;
CREATE FUNCTION helpers.issue(subject text, id text, units bigint, gateway text DEFAULT 'gw-a', route text DEFAULT 'chat') RETURNS text
LANGUAGE sql AS $$
  SELECT answer(i.outcome, i.dimension, i.admission, i.replayed)
  FROM limitledger.issue_emergency_shard(subject, route, id, gateway, units) i
$$;
CREATE FUNCTION helpers.give(subject text, id text, units bigint) RETURNS text LANGUAGE sql AS $$
  SELECT answer(i.outcome, i.dimension, i.admission, i.replayed)
  FROM limitledger.grant_legacy_share(subject, 'chat', id, units, 'the switch') i
$$;
-- what a report of the old limiter did: excess, confirmed, reminted
CREATE FUNCTION helpers.told(subject text, id text, operations text[], reserved bigint[], actual bigint[]) RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws(' ', answer(r.outcome, r.dimension, CASE WHEN r.settled THEN 'settled' ELSE 'open' END, r.replayed),
                   format('%s/%s/%s', r.excess_units, r.confirmed_units, r.reminted_units))
  FROM limitledger.report_legacy_share(subject, id, operations, reserved, actual) r
$$;
-- the equation G1 of a shard: allocated = available + reserved + spent + retired, and excess
CREATE FUNCTION helpers.local(subject text, id text) RETURNS text LANGUAGE sql AS $$
  SELECT format('%s = %s + %s + %s + %s, %s', allocated_units, local_available, local_reserved, local_spent, local_retired, local_excess)
  FROM limitledger.emergency_shards e WHERE e.subject = $1 AND e.shard_id = $2
$$;

-- A witness beside the data folder, and gateways.
SELECT is(original(), 'ACCEPTED', 'this ledger is the original');
SELECT current_setting('limitledger.witness_file') AS witness \gset
INSERT INTO limitledger.gateway (gateway, registered_at, actor) VALUES ('gw-a', now(), 'test'), ('gw-b', now(), 'test'), ('gw-new', now(), 'test');
SELECT is((SELECT outcome || already_announced FROM limitledger.announce_boot('gw-a', '00000000-0000-4000-8000-00000000000a')), 'ACCEPTEDfalse', 'a boot is announced');
SELECT is((SELECT outcome || already_announced FROM limitledger.announce_boot('gw-a', '00000000-0000-4000-8000-00000000000a')), 'ACCEPTEDtrue', 'twice: once');
SELECT is((SELECT outcome FROM limitledger.announce_boot('gw-b', '00000000-0000-4000-8000-00000000000b')), 'ACCEPTED', 'and another gateway''s');
SELECT is((SELECT dimension FROM limitledger.announce_boot('gw-x', '00000000-0000-4000-8000-00000000000b')), 'gateway', 'an unknown gateway announces nothing');

-- ---- The policy says so, or nothing leaves ---------------------------------------
SELECT at('10:00:00');
SELECT publish('plain', 'chat') AS plain \gset
SELECT is(issue('plain', 's', 1), 'REFUSED emergency_mode', 'without the policy''s word there are no shards');
SELECT is(issue('nobody', 's', 1), 'REFUSED no_policy', 'nor without a policy');
SELECT is_empty($$SELECT * FROM limitledger.head_budget WHERE subject = 'plain'$$, 'and a refusal opens no pair');

SELECT is_misuse(format('publish_policy(%L)', document('e', 'chat', '{"emergencyMode": "enabled", "shardTtl": "1 minute"}')), 'LL201', 'emergencyShare', 'a share is needed');
SELECT is_misuse(format('publish_policy(%L)', document('e', 'chat', '{"emergencyMode": "enabled", "emergencyShare": 10}')), 'LL201', 'shardTtl', 'and a life');
SELECT is_misuse(format('publish_policy(%L)', document('e', 'chat', '{"emergencyShare": 10}')), 'LL203', 'emergencyShare', 'but not while it is disabled');
SELECT is_misuse(format('publish_policy(%L)', document('e', 'chat', enabled(0))), 'LL203', 'emergencyShare', 'a share of nothing');
SELECT is_misuse(format('publish_policy(%L)', document('e', 'chat', enabled(101))), 'LL203', 'emergencyShare', 'more than all');
SELECT is_misuse(format('publish_policy(%L)', document('e', 'chat', enabled(10, '{"shardTtl": "0 seconds"}'))), 'LL203', 'shardTtl', 'no life');

-- ---- Issue (G2) ---------------------------------------------------------------------
SELECT publish('t', 'chat', enabled(50)) AS generation \gset
SELECT is(issue('t', 's1', 300), 'ACCEPTED open', 'units leave');
SELECT is(equation('t', 'chat'), '1000 + 0 + 0 = 700 + 0 + 0 + 300 + 0', 'for a shard, once');
SELECT is((SELECT (generation, fence, expires_at - issued_at, gateway, boot_epoch, state)::text FROM limitledger.emergency_shards),
  format('(%s,1,00:10:00,gw-a,00000000-0000-4000-8000-00000000000a,issued)', :generation), 'which has all that it needs');
SELECT is(issue('t', 's1', 300), 'ACCEPTED open replayed', 'a lost reply: the same again is the same');
SELECT is(issue('t', 's1', 299), 'CONFLICT shard', 'other units are not');
SELECT is(issue('t', 's1', 300, 'gw-b'), 'CONFLICT shard', 'nor another gateway');
SELECT publish('t', 'embed', enabled(50)) AS embed \gset
SELECT is(issue('t', 's1', 300, 'gw-a', 'embed'), 'CONFLICT shard', 'nor another route');
SELECT is(equation('t', 'chat'), '1000 + 0 + 0 = 700 + 0 + 0 + 300 + 0', 'and nothing has moved');
SELECT is(issue('t', 's2', 201), 'REFUSED emergency_share', 'what is out counts');
SELECT is(issue('t', 's2', 200, 'gw-b'), 'ACCEPTED open', 'up to the share');
SELECT is(issue('t', 's3', 1), 'REFUSED emergency_share', 'and no more');
SELECT is((SELECT string_agg(gateway || ' ' || fence, ', ' ORDER BY gateway) FROM limitledger.emergency_shards), 'gw-a 1, gw-b 1', 'each gateway has fences of its own');
SELECT is(issue('t', 's3', 1, 'gw-x'), 'REFUSED emergency_share', 'the pair is asked first');
SELECT is(reserve('t', 'chat', 'central', 500), 'ACCEPTED RESERVED', 'the ledger has what is left');
SELECT is(reserve('t', 'chat', 'more', 1), 'REFUSED available', 'and no more: no copy of the balance admits');

SELECT publish('u', 'chat', enabled(100)) AS u \gset
SELECT is(issue('u', 's1', 1001), 'REFUSED cap', 'above the cap');
SELECT is(issue('u', 's1', 10, 'gw-x'), 'REFUSED gateway', 'a gateway that nobody knows');
SELECT is(issue('u', 's1', 10, 'gw-new'), 'REFUSED gateway', 'or that has announced no boot');
SELECT is_empty($$SELECT * FROM limitledger.budgets WHERE subject = 'u'$$, 'leave no trace');
SELECT is(reserve('u', 'chat', 'r', 995), 'ACCEPTED RESERVED', 'a hold');
SELECT is(issue('u', 's1', 6), 'REFUSED available', 'what is held can''t leave');
SELECT is(issue('u', 's1', 5), 'ACCEPTED open', 'what is available can');

-- ---- A server that may be a copy (G7) ---------------------------------------------------
SELECT set_config('limitledger.witness_file', '', true) AS unset \gset
SELECT is(issue('u', 's2', 1), 'REFUSED available', 'the pair is asked first');
SELECT is(issue('u', 's1', 5), 'ACCEPTED open replayed', 'what stands is known');
SELECT publish('v', 'chat', enabled(100)) AS v \gset
SELECT is(issue('v', 's', 1), 'REFUSED recovery', 'without a witness nobody can tell, and no shard is issued');
SELECT is_empty($$SELECT * FROM limitledger.budgets WHERE subject = 'v'$$, 'nor anything else');
SELECT set_config('limitledger.witness_file', :'witness', true) AS set \gset

-- ---- What stands in the way ------------------------------------------------------------
SELECT publish('f', 'chat', enabled(100)) AS f \gset
SELECT is((SELECT outcome FROM limitledger.freeze('f', 'chat', 'why')), 'ACCEPTED', 'a frozen pair');
SELECT is(issue('f', 's', 1), 'REFUSED frozen', 'gives nothing');
SELECT is((SELECT outcome FROM limitledger.unfreeze('f', 'chat', 'why')), 'ACCEPTED', 'opened');
SELECT is((SELECT outcome FROM limitledger.freeze_route('chat', 'why')), 'ACCEPTED', 'a frozen route');
SELECT is(issue('f', 's', 1), 'REFUSED frozen', 'neither');
SELECT is((SELECT outcome FROM limitledger.unfreeze_route('chat', 'why')), 'ACCEPTED', 'opened');
SELECT is((SELECT outcome FROM limitledger.record_usage('f', 'chat', 'o', 1010)), 'ACCEPTED', 'debt');
SELECT is(issue('f', 's', 1), 'REFUSED debt', 'stops shards, too (E1)');
SELECT publish('d', 'chat', enabled(100)) AS d \gset
SELECT is(issue('d', 's', 100), 'ACCEPTED open', 'a shard');
SELECT is((SELECT stage FROM limitledger.drain_policy(:d, 'why')), 'draining', 'its generation drains');
SELECT is(issue('d', 's2', 1), 'REFUSED draining', 'and gives no more');
SELECT is(issue('d', 's', 100), 'ACCEPTED draining replayed', 'while the one that stands is known');
SELECT publish('c', 'chat') AS c1 \gset
SELECT generation AS c2 FROM limitledger.publish_policy(document('c', 'chat', enabled(100)), false) \gset
SELECT is((SELECT stage FROM limitledger.canary_policy(:c2, 99, 'try', 'pair')), 'canary', 'a canary');
SELECT is(issue('c', 's', 1), 'REFUSED emergency_mode', 'a generation that is not active gives none (B8)');

-- ---- A boot that is over ------------------------------------------------------------------
SELECT is((SELECT outcome FROM limitledger.announce_boot('gw-a', '00000000-0000-4000-8000-0000000000a2')), 'ACCEPTED', 'the gateway boots again');
SELECT is((SELECT dimension FROM limitledger.announce_boot('gw-a', '00000000-0000-4000-8000-00000000000a')), 'boot_epoch', 'an announcement that comes late changes nothing');
SELECT is((SELECT boot_epoch::text FROM limitledger.gateways WHERE gateway = 'gw-a'), '00000000-0000-4000-8000-0000000000a2', 'the new boot stands');

-- ---- Write-off, and what hinders a retirement (G6, B6) -----------------------------------
SELECT results_eq(format('SELECT outcome, dimension FROM limitledger.sign_emergency_shard(%L, %L)', 'd', 's'), $$VALUES ('REFUSED', 'not_committed')$$, 'what is not committed is not signed (G8)');
SELECT results_eq(format('SELECT outcome, dimension FROM limitledger.sign_emergency_shard(%L, %L)', 'd', 'none'), $$VALUES ('UNKNOWN', 'emergency_shard')$$, 'nor what is not there');
SELECT is((SELECT outcome FROM limitledger.write_off_shard('d', 'none', 'why')), 'UNKNOWN', 'an unknown shard');
SELECT results_eq($$SELECT outcome, replayed, lost_units FROM limitledger.write_off_shard('d', 's', 'the gateway burned')$$, $$VALUES ('ACCEPTED', false, 100::bigint)$$, 'a shard is given up');
SELECT results_eq($$SELECT outcome, replayed, lost_units FROM limitledger.write_off_shard('d', 's', 'again')$$, $$VALUES ('ACCEPTED', true, 100::bigint)$$, 'once');
SELECT is(equation('d', 'chat'), '1000 + 0 + 0 = 900 + 0 + 0 + 100 + 0', 'its units stay retired');
SELECT is((SELECT string_agg(reason, ', ') FROM limitledger.operator_actions WHERE subject = 'd' AND action = 'write_off_shard'), 'the gateway burned', 'and who did it is known');
SELECT results_eq($$SELECT left_shards FROM limitledger.rollout_status WHERE subject IN ('t', 'd') AND route = 'chat' ORDER BY subject$$, $$VALUES (0::numeric), (500)$$, 'rollout_status says what is out');

SELECT is((SELECT (open_shards, shard_units, shard_overdue)::text FROM limitledger.ledger_totals), (SELECT (count(*), sum(allocated_units), interval '0')::text FROM limitledger.emergency_shards WHERE settled_at IS NULL), 'monitors see what is out');
SELECT at('10:40:00');
SELECT is((SELECT shard_overdue FROM limitledger.ledger_totals), interval '30 minutes', 'and how long its report is due');

-- ---- The old limiter (B8) -----------------------------------------------------------------
SELECT publish('old', 'chat') AS old \gset
SELECT is(give('old', 'share', 400), 'ACCEPTED open', 'the old limiter gets a share, whatever the mode');
SELECT is(give('old', 'share', 400), 'ACCEPTED open replayed', 'once');
SELECT is(give('old', 'share', 401), 'CONFLICT shard', 'of so many units');
SELECT is(equation('old', 'chat'), '1000 + 0 + 0 = 600 + 0 + 0 + 400 + 0', 'they are retired here');
SELECT is(told('old', 'share', '{a,b}', '{100,50}', '{40,50}'), 'ACCEPTED open 0/60/60', 'what a receipt leaves comes back');
SELECT is(local('old', 'share'), '400 = 250 + 0 + 90 + 60, 0', 'and no block');
SELECT is(told('old', 'share', '{b,a}', '{50,100}', '{50,40}'), 'ACCEPTED open replayed 0/0/0', 'once');
SELECT is(told('old', 'share', '{a,c}', '{100,10}', '{41,1}'), 'CONFLICT figures //', 'an operation has one receipt');
SELECT is(give('old', 'second', 100), 'ACCEPTED open', 'a second share');
SELECT is(told('old', 'second', '{d,a}', '{10,100}', '{1,40}'), 'CONFLICT operation_elsewhere //', 'gives nothing back for what the first one has booked');
SELECT is(local('old', 'second'), '100 = 100 + 0 + 0 + 0, 0', 'and nothing of that call was booked either');
SELECT is(local('old', 'share'), '400 = 250 + 0 + 90 + 60, 0', 'and nothing of that call was booked');
SELECT is(told('old', 'share', '{a,c}', '{100,10}', '{40,1}'), 'ACCEPTED open 0/9/9', 'what was booked is passed by');
SELECT current_setting('limitledger.witness_file') AS witness, set_config('limitledger.witness_file', '/nonexistent/witness', true) <> '' AS set \gset
SELECT is(told('old', 'share', '{q}', '{10}', '{1}'), 'REFUSED recovery //', 'nothing comes back into a ledger that may be a copy (G7)');
SELECT is(told('old', 'share', '{a,c}', '{100,10}', '{40,1}'), 'ACCEPTED open replayed 0/0/0', 'what was booked is told');
SELECT set_config('limitledger.witness_file', :'witness', true) <> '' AS set \gset
SELECT is(told('old', 'share', '{d}', '{500}', '{600}'), 'ACCEPTED settled 360/0/0', 'more than the share had: the pair bears it');
SELECT is(local('old', 'share'), '400 = 0 + 0 + 331 + 69, 360', 'nothing that ran is lost');
SELECT is(equation('old', 'chat'), '1000 + 69 + 0 = 209 + 0 + 360 + 500 + 0', 'and the books balance');
SELECT is(told('old', 'none', '{a}', '{1}', '{1}'), 'UNKNOWN emergency_shard //', 'a share that was not given');
SELECT is(told('t', 's1', '{a}', '{1}', '{1}'), 'UNKNOWN emergency_shard //', 'a gateway''s shard is none');
SELECT is_misuse($$report_legacy_share('old', 'share', '{a,a}', '{1,1}', '{1,1}')$$, 'LL105', 'operation_ids', 'an operation twice');
SELECT is_misuse($$report_legacy_share('old', 'share', '{a}', '{1,1}', '{1}')$$, 'LL105', 'reserved_units', 'arrays of different lengths');
SELECT is_misuse($$report_legacy_share('old', 'share', '{x}', '{-1}', '{1}')$$, 'LL103', 'reserved_units', 'a negative figure');

-- ---- Guards (C3) -----------------------------------------------------------------------------
CREATE TEMP TABLE forbidden (statement text, what text) ON COMMIT DROP;
INSERT INTO forbidden VALUES
  ('UPDATE limitledger.emergency_shard SET allocated_units = allocated_units + 1, local_available = local_available + 1', 'an allocation grows'),
  ('UPDATE limitledger.emergency_shard SET fence = fence + 1', 'a fence changes'),
  ('UPDATE limitledger.emergency_shard SET boot_epoch = gen_random_uuid()', 'a boot changes'),
  ('UPDATE limitledger.emergency_shard SET local_spent = local_spent - 1, local_available = local_available + 1 WHERE local_spent > 0', 'spent falls'),
  ('UPDATE limitledger.emergency_shard SET confirmed_units = 0, reminted_units = 0', 'confirmed falls'),
  ('UPDATE limitledger.emergency_shard SET settled_at = NULL, written_off_at = NULL, written_off_reason = NULL', 'a write-off is taken back'),
  ('DELETE FROM limitledger.emergency_shard', 'a shard is deleted'), ('TRUNCATE limitledger.emergency_shard', 'all are'),
  ('UPDATE limitledger.gateway SET last_fence = 0', 'fences start anew'), ('DELETE FROM limitledger.gateway', 'a gateway is deleted'), ('TRUNCATE limitledger.gateway', 'all are'),
  ('UPDATE limitledger.shard_report SET reminted_units = 0', 'a report changes'), ('DELETE FROM limitledger.shard_report', 'a report is deleted'), ('TRUNCATE limitledger.shard_report', 'all are'),
  ('UPDATE limitledger.shard_receipt SET actual_units = 0', 'a receipt changes'), ('DELETE FROM limitledger.shard_receipt', 'a receipt is deleted'), ('TRUNCATE limitledger.shard_receipt', 'all are');
SELECT throws_ok(statement, 'LL902', NULL, 'refused: ' || what) FROM forbidden;

-- ---- The audit ---------------------------------------------------------------------------------
SELECT publish('w', 'chat', enabled(100)) AS w \gset
SELECT is(issue('w', 's', 5, 'gw-b'), 'ACCEPTED open', 'one more');
SELECT sound('all of it adds up');
CREATE FUNCTION helpers.found(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE rules text;
BEGIN
  SET LOCAL session_replication_role = replica;
  EXECUTE statement;
  SELECT string_agg(DISTINCT v.rule, ' ' ORDER BY v.rule) INTO rules FROM limitledger.verify_conservation() v;
  IF rules IS DISTINCT FROM (SELECT string_agg(DISTINCT v.rule, ' ' ORDER BY v.rule) FROM limitledger.verify_subjects() v) THEN rules := 'two audits differ'; END IF;
  RAISE EXCEPTION USING ERRCODE = 'ZZ000', MESSAGE = coalesce(rules, 'nothing');
EXCEPTION WHEN SQLSTATE 'ZZ000' THEN RETURN SQLERRM;
END $$;
SELECT is(found($$DELETE FROM limitledger.emergency_shard WHERE subject = 't' AND shard_id = 's1'$$), 'G2', 'a shard that is missing');
SELECT is(found($$UPDATE limitledger.head_budget SET retired_for_emergency = retired_for_emergency - 1, available = available + 1 WHERE subject = 'old'$$), 'G2', 'units that came back beside the reports');
SELECT is(found($$UPDATE limitledger.emergency_shard SET reminted_units = reminted_units - 1 WHERE subject = 'old' AND shard_id = 'share'$$), 'G6', 'a remint that no report tells of');
SELECT is(found($$DELETE FROM limitledger.shard_receipt WHERE reservation_id = 'd'$$), 'G6', 'a receipt that is missing');
SELECT is(found($$DELETE FROM limitledger.shard_report WHERE sequence = 1 AND subject = 'old'$$), 'G6', 'a report that is missing');
SELECT is(found($$UPDATE limitledger.emergency_shard SET sequence = sequence + 1 WHERE subject = 'old'$$), 'G6', 'a number that no report has');
SELECT is(found($$UPDATE limitledger.shard_report SET excess_units = excess_units - 1 WHERE excess_units > 0$$), 'C2 G6', 'excess that no budget bore');
SELECT is(found($$ALTER TABLE limitledger.emergency_shard DROP CONSTRAINT local_conservation; UPDATE limitledger.emergency_shard SET local_available = 1 WHERE subject = 'old'$$), 'G1', 'a shard that does not add up');
SELECT is(found(format($$UPDATE limitledger.policy SET stage = 'retired', retired_at = active_at WHERE generation = %s$$, :w)), 'B6', 'a retired generation with a shard that is out');

SELECT * FROM finish();
ROLLBACK;
