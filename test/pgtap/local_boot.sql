-- Boots of a gateway, and what it accepts: what an earlier boot held can't be spent
-- again, and no shard is taken that is not for this gateway, this boot, and new (G4, G5).
--
-- Fails when: a boot leaves a shard open or an item started, a call goes on without it, a
-- shard of another boot or with an old fence is taken, or a refusal writes.

BEGIN;
\ir helpers.psql
SELECT plan(83);
SELECT at('10:00:00');
SELECT original();
SELECT limitledger.open_gateway('gw');

-- restart lets the row say that its boot is of another start of the server.
CREATE FUNCTION helpers.restart() RETURNS void LANGUAGE sql AS $$
  ALTER TABLE limitledger.local_gateway DISABLE TRIGGER USER;
  UPDATE limitledger.local_gateway SET server_started = server_started - interval '1 day';
  ALTER TABLE limitledger.local_gateway ENABLE TRIGGER USER;
$$;
CREATE FUNCTION helpers.boot() RETURNS uuid LANGUAGE sql AS $$ SELECT boot_epoch FROM limitledger.local_gateway $$;
-- seeded holds what a boot has to end: a hold, an execution, and what has ended, in a shard
-- of its own; and a sealed shard that still holds something.
CREATE FUNCTION helpers.seeded(subject text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM accepted(subject, 'open', 'chat'), accepted(subject, 'closed', 'embed');
  PERFORM shard_reserve(subject, 'chat', 'hold', 10), shard_reserve(subject, 'chat', 'run', 20, 'o run'),
    shard_reserve(subject, 'chat', 'done', 30, 'o done'), shard_settle(subject, 'done', 'o done', 25),
    shard_reserve(subject, 'embed', 'late', 10), limitledger.seal_shard(subject, 'closed');
  RETURN shard(subject, 'open') || '; ' || shard(subject, 'closed');
END $$;
CREATE FUNCTION helpers.states(of_subject text) RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(concat_ws(' ', reservation_id, state, operation_id), ', ' ORDER BY reservation_id)
  FROM limitledger.shard_reservation WHERE subject = of_subject
$$;

-- ---- Each call begins the boot, before it does anything else ------------------------------
SELECT is(seeded(subject), '100 = 45 + 30 + 25 + 0; 100 = 0 + 10 + 0 + 90, operator', subject || ': something of each kind')
FROM (VALUES ('reserve'), ('start'), ('settle'), ('release'), ('unknown'), ('seal'), ('cut'), ('sweep'), ('open')) v (subject);
SELECT boot() AS first_boot \gset
SELECT restart();
SELECT is(boot(), :'first_boot', 'a start of the server alone changes nothing');
SELECT is(shard_reserve('reserve', 'chat', 'new', 1), 'REFUSED sealed', 'the first call after it spends nothing of the boot before');
SELECT isnt(boot(), :'first_boot', 'it has begun another');
SELECT is(shard(subject, 'open'), '100 = 0 + 30 + 25 + 45, boot', subject || ': what was available is retired') FROM (VALUES ('reserve'), ('start'), ('cut'), ('open')) v (subject);
SELECT is(shard('start', 'closed'), '100 = 0 + 10 + 0 + 90, operator', 'a seal that was there stays');
SELECT is(states('start'), 'done SETTLED o done, hold USAGE_UNKNOWN, late USAGE_UNKNOWN, run USAGE_UNKNOWN o run',
  'what was open is unknown, in a sealed shard too, and what has ended is not touched');
SELECT is((SELECT count(*) FROM limitledger.shard_reservation WHERE state IN ('RESERVED', 'STARTED')), 0::bigint, 'nothing else is open');
SELECT boot() AS second_boot \gset
SELECT is(shard_reserve('reserve', 'chat', 'new', 1), 'REFUSED sealed', 'the next call');
SELECT is(boot(), :'second_boot', 'begins no other');
SELECT sound('after a boot');

-- begins seeds a subject, lets the server start, and runs one call: its answer, and whether
-- it has begun a boot.
CREATE FUNCTION helpers.begins(subject text, call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  before uuid;
  said text;
BEGIN
  PERFORM seeded(subject), restart();
  before := boot();
  EXECUTE call INTO said;
  RETURN said || CASE WHEN boot() = before THEN ', and no boot' ELSE '' END;
END $$;
SELECT is(begins(subject, call), said, format('%s: %s', subject, call)) FROM (VALUES
  ('b1', $$SELECT shard_start('b1', 'hold', 'o')$$, 'REFUSED boot_epoch'),
  ('b2', $$SELECT shard_start('b2', 'run', 'o run')$$, 'ACCEPTED USAGE_UNKNOWN replayed'),
  ('b3', $$SELECT shard_settle('b3', 'hold', 'o', 5)$$, 'ACCEPTED SETTLED'),
  ('b4', $$SELECT shard_release('b4', 'hold')$$, 'REFUSED already_started'),
  ('b5', $$SELECT shard_unknown('b5', 'run', 'o run')$$, 'ACCEPTED USAGE_UNKNOWN replayed'),
  ('b6', $$SELECT shard_unknown('b6', 'hold', 'o hold')$$, 'ACCEPTED USAGE_UNKNOWN replayed'),
  ('b7', $$SELECT replayed || ' ' || sealed_by FROM limitledger.seal_shard('b7', 'open')$$, 'true boot'),
  ('b8', $$SELECT sealed || ' ' || receipts FROM limitledger.cut_shard_report('b8', 'open')$$, 'true 1'),
  ('b9', $$SELECT unknown || ' ' || sealed FROM limitledger.sweep_shards(100)$$, '3 1'),
  ('c1', $$SELECT already_open::text FROM limitledger.open_gateway('gw')$$, 'true'),
  ('c2', $$SELECT sealed || ' ' || unknown FROM limitledger.renew_boot('a drill')$$, '1 3')) v (subject, call, said);
SELECT is((SELECT count(*) FROM limitledger.local_shard WHERE sealed_at IS NULL), 0::bigint, 'no shard of an old boot is open');
SELECT is((SELECT count(DISTINCT boot_epoch) FROM limitledger.local_shard), 12::bigint, 'each boot had an epoch of its own');
SELECT is((SELECT string_agg(action || ' ' || subject || ' ' || reason, ', ') FROM limitledger.operator_actions WHERE action = 'renew_boot'), 'renew_boot * a drill', 'one of them was an operator''s');
SELECT is((SELECT sealed || ' ' || unknown FROM limitledger.renew_boot('again')), '0 0', 'a renewal with nothing to end is a boot as well');
SELECT sound('after all of them');

-- ---- An item that a boot left without an operation is bound by its receipt (D1) ----------
SELECT is(states('b3'), 'done SETTLED o done, hold SETTLED o, late USAGE_UNKNOWN, run USAGE_UNKNOWN o run', 'settled by an operation that was free');
SELECT is(shard('b3', 'open'), '100 = 0 + 20 + 30 + 50, boot', 'spent, and the rest retired');
SELECT is(shard_settle('b3', 'hold', 'o', 5), 'ACCEPTED SETTLED replayed', 'once');
SELECT changes_nothing($$shard_settle('b3', 'hold', 'o other', 5)$$, 'CONFLICT operation', 'by that one');
SELECT changes_nothing($$shard_settle('b3', 'late', 'o', 5)$$, 'CONFLICT operation_elsewhere', 'which settles nothing else');
SELECT changes_nothing($$shard_settle('b4', 'hold', 'o run', 5)$$, 'CONFLICT operation_elsewhere', 'nor does one that was bound before');
SELECT is((SELECT string_agg(answer(outcome, dimension, state, replayed), ', ' ORDER BY element) FROM limitledger.shard_settle_batch(
  '{b4,b4,b4,b4}', '{hold,hold,late,late}', '{p1,p2,p1,p3}', '{0,0,0,4}')),
  'ACCEPTED SETTLED, CONFLICT operation, CONFLICT operation, ACCEPTED SETTLED', 'in a batch each operation is bound to one item, and each item to one');
SELECT is((SELECT string_agg(answer(outcome, dimension, state, replayed), ', ' ORDER BY element) FROM limitledger.shard_settle_batch(
  '{b5,b5}', '{hold,hold}', '{o run,p5}', '{0,0}')), 'CONFLICT operation, ACCEPTED SETTLED', 'one that is bound already is in no other''s way');
SELECT is(shard_settle('b4', 'run', 'o run', 20), 'ACCEPTED SETTLED', 'what had started is settled by its own');
SELECT is(shard('b4', 'open'), '100 = 0 + 0 + 45 + 55, boot', 'and then nothing is left to come');
SELECT is((SELECT sealed || ' ' || receipts || ' ' || more FROM limitledger.cut_shard_report('b4', 'open')), 'true 3 false', 'and all of it is told');
SELECT sound('after the receipts');

-- ---- A copy of the database is another boot --------------------------------------------------
SELECT is(seeded(subject), '100 = 45 + 30 + 25 + 0; 100 = 0 + 10 + 0 + 90, operator', subject || ': as it was copied') FROM (VALUES ('copied'), ('restored')) v (subject);
ALTER TABLE limitledger.local_gateway DISABLE TRIGGER USER;
UPDATE limitledger.local_gateway SET database_oid = 1;
ALTER TABLE limitledger.local_gateway ENABLE TRIGGER USER;
SELECT is(shard_reserve('copied', 'chat', 'new', 1), 'REFUSED sealed', 'a copy of the database does not spend');
SELECT accepted('restored', 'second', 'chat');
ALTER TABLE limitledger.local_gateway DISABLE TRIGGER USER;
UPDATE limitledger.local_gateway SET relation_oid = 1;
ALTER TABLE limitledger.local_gateway ENABLE TRIGGER USER;
SELECT is(shard_reserve('restored', 'chat', 'new', 1), 'REFUSED sealed', 'nor do rows that a dump brought back');

-- A shard of another boot that no seal has reached: rows that no call wrote.
SELECT accepted('stray', 's', 'chat');
ALTER TABLE limitledger.local_shard DISABLE TRIGGER USER;
UPDATE limitledger.local_shard SET boot_epoch = gen_random_uuid() WHERE subject = 'stray';
ALTER TABLE limitledger.local_shard ENABLE TRIGGER USER;
SELECT changes_nothing($$shard_reserve('stray', 'chat', 'r', 1, sha256('r'))$$, 'REFUSED boot_epoch', 'it gives nothing either');
SELECT is((SELECT string_agg(rule || ' ' || subject, ', ') FROM limitledger.verify_conservation()), 'G5 stray', 'and the audit finds it');
SELECT is((SELECT sealed FROM limitledger.renew_boot('stray')), 1::bigint, 'until a boot seals it');

-- ---- Accepting -----------------------------------------------------------------------------------
-- The envelope is opened by a function that others test: here it is one that takes the
-- fields as JSON, so that each of them can be wrong.
DO $$ BEGIN
  IF to_regproc('limitledger.open_emergency_shard') IS NOT NULL THEN
    ALTER EXTENSION limitledger DROP FUNCTION limitledger.open_emergency_shard;
    DROP FUNCTION limitledger.open_emergency_shard;
  END IF;
END $$;
CREATE FUNCTION limitledger.open_emergency_shard(envelope text, OUT problem text, OUT member text, OUT kid text, OUT shard_id text,
  OUT subject text, OUT route text, OUT generation bigint, OUT epoch timestamptz, OUT allocated_units bigint, OUT gateway text,
  OUT boot_epoch uuid, OUT fence bigint, OUT issued_at timestamptz, OUT expires_at timestamptz, OUT hold_ttl interval,
  OUT execution_ttl interval, OUT hard_execution_limit bigint, OUT largest_reservation bigint)
LANGUAGE sql AS $$
  SELECT * FROM jsonb_to_record(envelope::jsonb) AS r (problem text, member text, kid text, shard_id text, subject text, route text,
    generation bigint, epoch timestamptz, allocated_units bigint, gateway text, boot_epoch uuid, fence bigint, issued_at timestamptz,
    expires_at timestamptz, hold_ttl interval, execution_ttl interval, hard_execution_limit bigint, largest_reservation bigint)
$$;
CREATE FUNCTION helpers.envelope(fields jsonb DEFAULT '{}') RETURNS text LANGUAGE sql AS $$
  SELECT (jsonb_build_object('kid', 'k', 'shard_id', 'e1', 'subject', 'a', 'route', 'chat', 'generation', 3, 'epoch', '2030-01-01 00:00:00+00',
    'allocated_units', 50, 'gateway', 'gw', 'boot_epoch', boot(), 'fence', 1000, 'issued_at', '2030-01-01 09:59:00+00', 'expires_at', '2030-01-01 11:00:00+00',
    'hold_ttl', '30 seconds', 'execution_ttl', '10 minutes', 'hard_execution_limit', 500, 'largest_reservation', 40) || fields)::text
$$;
CREATE FUNCTION helpers.accept(fields jsonb DEFAULT '{}') RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws(' ', outcome, dimension, detail, CASE WHEN replayed THEN 'replayed' END) FROM limitledger.accept_emergency_shard(envelope(fields))
$$;
-- Each is refused for what comes first, and nothing is written.
CREATE FUNCTION helpers.refused(fields jsonb, expected text, description text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  before CONSTANT text := image();
  said CONSTANT text := accept(fields);
BEGIN
  RETURN is(said || CASE WHEN (SELECT count(*) FROM limitledger.local_shard WHERE subject = 'a' AND shard_id = 'e1') > 0 THEN ', and taken' ELSE '' END, expected, description);
END $$;
SELECT refused(fields::jsonb, 'REFUSED ' || said, description) FROM (VALUES
  ('{"problem": "signature"}', 'envelope signature', 'one that does not open'),
  ('{"problem": "text", "member": "route", "gateway": "other"}', 'envelope text: route', 'with the member, before all that it says'),
  ('{"gateway": "other", "boot_epoch": "6f1c2b9a-0d47-4c1e-9b52-3e8a7710c4d5"}', 'gateway', 'for another gateway'),
  ('{"boot_epoch": "6f1c2b9a-0d47-4c1e-9b52-3e8a7710c4d5", "fence": 1}', 'boot_epoch', 'for another boot'),
  ('{"fence": 1, "expires_at": "2030-01-01 09:59:59+00"}', 'fence', 'with a fence that was seen'),
  ('{"expires_at": "2030-01-01 10:00:00+00"}', 'shard_expired', 'that has run out')) v (fields, said, description);
SELECT results_eq($$SELECT outcome, dimension, detail, replayed, shard_id, subject, route, units, fence, expires_at FROM limitledger.accept_emergency_shard(envelope())$$,
  $$VALUES ('ACCEPTED', NULL, NULL, false, 'e1', 'a', 'chat', 50::bigint, 1000::bigint, '2030-01-01 11:00:00+00'::timestamptz)$$, 'a sound one is taken');
SELECT is(shard('a', 'e1'), '50 = 50 + 0 + 0 + 0', 'all of it is available');
SELECT is(accept(), 'ACCEPTED replayed', 'again, it is a replay');
SELECT is(accept('{"allocated_units": 51}'), 'CONFLICT shard', 'another one under its id');
SELECT is(accept('{"shard_id": "e2"}'), 'REFUSED fence', 'another one with its fence');
SELECT is(accept('{"shard_id": "e2", "fence": 1001, "issued_at": "2030-01-01 10:30:00+00"}'), 'ACCEPTED', 'one from a clock that is ahead');
SELECT is((SELECT accepted_at FROM limitledger.local_shards WHERE shard_id = 'e2'), '2030-01-01 10:30:00+00'::timestamptz, 'is not older than it says');
SELECT is(shard_reserve('a', 'chat', 'r', 41), 'REFUSED largest_reservation', 'its own limits rule');
SELECT is(shard_reserve('a', 'chat', 'r', 40), 'ACCEPTED RESERVED', 'and are kept');
SELECT restart();
SELECT is(accept(), 'ACCEPTED replayed', 'a replay after a restart');
SELECT is(shard('a', 'e1'), '50 = 0 + 40 + 0 + 10, boot', 'gives nothing back');
SELECT is(accept(jsonb_build_object('shard_id', 'e3', 'fence', 1002, 'boot_epoch', (SELECT boot_epoch FROM limitledger.local_shard WHERE shard_id = 'e1'))),
  'REFUSED boot_epoch', 'nor is one taken that was issued for the boot before');
SET LOCAL limitledger.witness_file = '';
SELECT is(accept('{"problem": "signature"}'), 'REFUSED recovery', 'a copy takes nothing (G7)');
SELECT is((SELECT concat_ws(' ', outcome, dimension) FROM limitledger.cut_shard_report('a', 'e1')), 'REFUSED recovery', 'and reports nothing');
SELECT is((SELECT concat_ws(' ', outcome, dimension) FROM limitledger.report_shard('a', 'e1')), 'REFUSED recovery', 'nor signs');
SELECT is(shard_settle('a', 'r', 'o', 40), 'ACCEPTED SETTLED', 'while settlement goes on');
SELECT set_config('limitledger.witness_file', regexp_replace(current_setting('data_directory'), '[^/]*$', 'of_another'), true) AS lost \gset
SELECT accepted('q', 's', 'chat');
SELECT is(shard_reserve('q', 'chat', 'r1', 1), 'ACCEPTED RESERVED', 'and so does admission,');
SET LOCAL limitledger.admit_in_recovery = off;
SELECT changes_nothing($$shard_reserve('q', 'chat', 'r2', 1, sha256('r2'))$$, 'REFUSED recovery', 'unless it is set to stop');
SELECT is(shard_reserve('q', 'chat', 'r1', 1), 'ACCEPTED RESERVED replayed', 'which ends no receipt');
SELECT sound('at the end');

SELECT * FROM finish();
ROLLBACK;
