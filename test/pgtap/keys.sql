-- Keys and envelopes in SQL: whose signatures count, for how long, and what is signed
-- and opened by them (G3, G6).
--
-- Fails when: an id comes to stand for two keys, a key for two owners, trust that has
-- ended comes back or lasts beyond its end, an envelope opens to other figures than were
-- sealed, with another key or as another type, or a document that would not open is signed.

BEGIN;
\ir helpers.psql
SELECT plan(114);

-- The keys of RFC 8037, appendix A, and of RFC 8032, 7.1, tests 2 and 3: everybody knows them.
\set one '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo'
\set two 'PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw'
\set three '_FHNjmIYoaONpH7QAjDwWAgW7RO6MwOsXeuRFUiQgCU'

CREATE FUNCTION helpers.line(kid text, x text) RETURNS text LANGUAGE sql AS $$
  SELECT format('limitledger-ed25519-public-v1 %s %s', kid, x)
$$;
-- trust and distrust are a call in short: what it answers.
CREATE FUNCTION helpers.trust(kid text, x text, gateway text DEFAULT NULL, until timestamptz DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws(' ', t.outcome, t.kid, CASE WHEN t.already_trusted THEN 'already' END) FROM limitledger.trust_key(line(trust.kid, x), gateway, until) t
$$;
CREATE FUNCTION helpers.distrust(kid text, reason text) RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws(' ', d.outcome, CASE WHEN d.already_distrusted THEN 'already' END, to_char(d.trusted_until AT TIME ZONE 'UTC', 'HH24:MI:SS')) FROM limitledger.distrust_key(kid, reason) d
$$;
CREATE FUNCTION helpers.known(OUT kid text, OUT shown text) RETURNS SETOF record LANGUAGE sql AS $$
  SELECT k.kid, concat_ws(' ', coalesce(k.gateway, '-'), CASE WHEN k.trusted THEN 'trusted' ELSE 'not' END, to_char(k.trusted_from AT TIME ZONE 'UTC', 'HH24:MI'),
    to_char(k.trusted_until AT TIME ZONE 'UTC', 'HH24:MI')) FROM limitledger.trusted_keys k
$$;

-- ---- Whose signatures count ---------------------------------------------------
SELECT at('10:00:00');
SELECT is_empty('SELECT * FROM limitledger.trusted_keys', 'nobody is trusted at first');
SELECT is(trust('centre-1', :'one'), 'ACCEPTED centre-1', 'a key of the ledger');
SELECT is(trust('gw.a', :'two', 'gw-1', '2030-01-01 12:00+00'), 'ACCEPTED gw.a', 'a key of a gateway, for two hours');
SELECT results_eq('SELECT kid, shown FROM known()', $$VALUES ('centre-1', '- trusted 10:00'), ('gw.a', 'gw-1 trusted 10:00 12:00')$$, 'the list');
SELECT results_eq('SELECT public_key FROM limitledger.trusted_keys', ARRAY[line('centre-1', :'one') COLLATE "C", line('gw.a', :'two')], 'has the lines that were given');

CREATE TEMP TABLE before ON COMMIT DROP AS SELECT image() AS rows;
SELECT at('10:05:00');
SELECT is(trust('centre-1', :'one'), 'ACCEPTED centre-1 already', 'the same again');
SELECT is(trust('gw.a', :'two', 'gw-1', '2030-01-01 12:00+00'), 'ACCEPTED gw.a already', 'and the other one');
SELECT is(trust('centre-1', :'one', NULL, 'infinity'), 'ACCEPTED centre-1 already', 'for ever is until further notice');
SELECT is((SELECT outcome FROM limitledger.trust_key(line('centre-1', :'one') || E'\n')), 'ACCEPTED', 'a line with its end');
SELECT is(image(), (SELECT rows FROM before), 'changes no row');

-- One id, one key, one owner.
SELECT is_misuse(format('trust_key(%L)', line('centre-1', :'three')), 'LL402', 'public_key has the id of another key', 'another key under a known id');
SELECT is_misuse(format('trust_key(%L)', line('centre-2', :'one')), 'LL402', 'public_key has another id', 'a known key under another id');
SELECT is_misuse(format('trust_key(%L, ''gw-1'')', line('gw.b', :'one')), 'LL402', 'public_key has another id', 'the ledger''s key for a gateway');
SELECT is_misuse(format('trust_key(%L, ''gw-1'')', line('centre-1', :'one')), 'LL402', 'public_key belongs to another gateway', 'under its own id');
SELECT is_misuse(format('trust_key(%L, ''gw-2'')', line('gw.a', :'two')), 'LL402', 'public_key belongs to another gateway', 'a gateway''s key for another one');
SELECT is_misuse(format('trust_key(%L)', line('gw.a', :'two')), 'LL402', 'public_key belongs to another gateway', 'or for the ledger');
SELECT is_misuse(format('trust_key(%L)', bad), 'LL402', 'public_key', 'no line: ' || name) FROM (VALUES
  ('nothing', ''), ('a key alone', :'three'), ('a blank before', ' ' || line('k', :'three')), ('a blank behind', line('k', :'three') || ' '), ('two ends', line('k', :'three') || E'\n\n'),
  ('two lines', line('k', :'three') || E'\n' || line('l', :'three')), ('no id', line('', :'three')), ('an id with a blank', line('a b', :'three')), ('an id of 65', line(repeat('k', 65), :'three')),
  ('padding', line('k', :'three') || '='), ('a byte less', line('k', left(:'three', -1))), ('no point', line('k', 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA')),
  ('another version', replace(line('k', :'three'), 'v1', 'v2'))) v (name, bad);

-- A secret that somebody pasted is not shown again, and the hint says what to do.
CREATE FUNCTION helpers.said(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE a text; b text; c text;
BEGIN
  EXECUTE call;
  RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS a = MESSAGE_TEXT, b = PG_EXCEPTION_DETAIL, c = PG_EXCEPTION_HINT;
  RETURN concat_ws(' / ', SQLSTATE, a, b, c);
END $$;
SELECT matches(said($$SELECT limitledger.trust_key('limitledger-ed25519-secret-v1 k nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A')$$), '^LL402 .*make a new key', 'a secret key is no public one');
SELECT doesnt_match(said($$SELECT limitledger.trust_key('limitledger-ed25519-secret-v1 k nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A')$$), 'nWGxne', 'and is shown nowhere');

-- Lives grow, and end.
SELECT is(trust('gw.a', :'two', 'gw-1', '2030-01-01 13:00+00'), 'ACCEPTED gw.a already', 'an hour more');
SELECT is_misuse(format('trust_key(%L, ''gw-1'', ''2030-01-01 12:59+00'')', line('gw.a', :'two')), 'LL106', 'trusted_until must not be earlier', 'but not less');
SELECT is_misuse(format('trust_key(%L, NULL, ''2040-01-01'')', line('centre-1', :'one')), 'LL106', 'trusted_until must not be earlier', 'nor an end where there was none');
SELECT is_misuse(format('trust_key(%L, NULL, ''2030-01-01 10:05+00'')', line('k', :'three')), 'LL106', 'trusted_until must be later', 'no life that ends now');
SELECT is(trust('gw.b', :'three', 'gw-1', '2030-01-01 11:00+00'), 'ACCEPTED gw.b', 'a second key of one gateway');
SELECT is(distrust('centre-1', 'lost'), 'ACCEPTED 10:05:00', 'the ledger''s key is given up');
UPDATE before SET rows = image();
SELECT at('10:06:00');
SELECT is(distrust('centre-1', 'again'), 'ACCEPTED already 10:05:00', 'twice');
SELECT is(image(), (SELECT rows FROM before), 'changes no row');
SELECT is_misuse(format('trust_key(%L)', line('centre-1', :'one')), 'LL402', 'public_key has lost its trust', 'it does not come back');
SELECT is_misuse(format('trust_key(%L, NULL, ''2031-01-01'')', line('centre-1', :'one')), 'LL402', 'public_key has lost its trust', 'for no time');
SELECT is_misuse(format('trust_key(%L)', line('centre-9', :'one')), 'LL402', 'public_key has another id', 'under no other name');
SELECT at('11:00:00');
SELECT results_eq('SELECT kid, shown FROM known()', $$VALUES ('centre-1', '- not 10:00 10:05'), ('gw.a', 'gw-1 trusted 10:00 13:00'), ('gw.b', 'gw-1 not 10:05 11:00')$$, 'a life ends by itself, at its instant');
SELECT is_misuse(format('trust_key(%L, ''gw-1'')', line('gw.b', :'three')), 'LL402', 'public_key has lost its trust', 'and neither does this one come back');
SELECT is(distrust('gw.b', 'too late'), 'ACCEPTED already 11:00:00', 'there is nothing left to end');
SELECT is_misuse('distrust_key(''nobody'', ''x'')', 'LL106', 'kid', 'a key that nobody trusted');
SELECT is((SELECT string_agg(format('%s %s by %s on %s %s: %s', to_char(acted_at AT TIME ZONE 'UTC', 'HH24:MI'), action, CASE actor WHEN current_user THEN 'me' END, subject, route, reason), ', ' ORDER BY acted_at, action, reason)
           FROM limitledger.operator_actions),
  '10:00 trust_key by me on * *: centre-1: trusted until further notice, 10:00 trust_key by me on * *: gw.a: trusted for gw-1 until 2030-01-01T12:00:00.000000Z, '
  '10:05 distrust_key by me on * *: centre-1: lost, 10:05 trust_key by me on * *: gw.a: trusted for gw-1 until 2030-01-01T13:00:00.000000Z, '
  '10:05 trust_key by me on * *: gw.b: trusted for gw-1 until 2030-01-01T11:00:00.000000Z', 'who did what, and why');

-- The same, held against other hands.
SELECT throws_ok('UPDATE limitledger.trusted_key SET ' || what, 'LL902', NULL, 'not by hand: ' || what)
FROM unnest(ARRAY['kid = kid || ''x''', 'public_key = sha256(public_key)', 'gateway = ''gw-2''', 'gateway = NULL', 'trusted_from = ''2029-01-01''', 'trusted_until = NULL']) what;
SELECT throws_ok('DELETE FROM limitledger.trusted_key', 'LL902', NULL, 'not by hand: DELETE');
SELECT throws_ok('TRUNCATE limitledger.trusted_key', 'LL902', NULL, 'not by hand: TRUNCATE');
SELECT lives_ok($$UPDATE limitledger.trusted_key SET trusted_until = '2030-01-01 14:00+00' WHERE kid = 'gw.a'$$, 'a life that has not ended is a superuser''s to set');

-- ---- What signs here ------------------------------------------------------------
-- A file beside the data folder, as the server's user makes it.
SELECT current_setting('data_directory') || '/../keys-' || pg_backend_pid() || '.key' AS file \gset
CREATE FUNCTION helpers.spell(file text, content text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('COPY (SELECT %L) TO PROGRAM %L', content, format('umask 077; cat > %s', quote_literal(file)));
END $$;
SELECT is_misuse('signing_key_id()', 'LL401', 'limitledger.signing_key_file', 'no key is set');
SELECT set_config('limitledger.signing_key_file', :'file', true);
SELECT is_misuse('signing_key_id()', 'LL401', 'limitledger.signing_key_file', 'no file is there');
SELECT spell(:'file', 'limitledger-ed25519-secret-v1 centre-2 nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A');
SELECT results_eq('SELECT kid, public_key FROM limitledger.signing_key_id()', format('VALUES (%L, %L)', 'centre-2', line('centre-2', :'one')), 'the id and the public line of the key');

-- ---- Sealed here, opened here ---------------------------------------------------
-- The document of docs/envelope.md, under another id of its key.
CREATE FUNCTION helpers.seal(shard text DEFAULT 'shard-7', subject text DEFAULT 'tenant-a', generation bigint DEFAULT 12, expires timestamptz DEFAULT '2026-07-19 14:30:00.25+00',
  hold interval DEFAULT '30 seconds', boot uuid DEFAULT '6f1c2b9a-0d47-4c1e-9b52-3e8a7710c4d5', largest bigint DEFAULT 40) RETURNS text LANGUAGE sql AS $$
  SELECT s.envelope FROM limitledger.seal_emergency_shard(shard, seal.subject, 'chat/gpt', seal.generation, '2026-07-19 00:00+00', 100, 'gw-eu-1', boot, 3,
    '2026-07-19 14:00+00', expires, hold, '10 minutes', 5000, largest) s
$$;
CREATE FUNCTION helpers.problem(envelope text) RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws(' ', o.problem, o.member) FROM limitledger.open_emergency_shard(envelope) o
$$;
CREATE FUNCTION helpers.report_problem(envelope text) RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws(' ', o.problem, o.member) FROM limitledger.envelope_open_report(envelope) o
$$;
-- decoded gives one part of an envelope as it was before base64url.
CREATE FUNCTION helpers.decoded(envelope text, part int) RETURNS text LANGUAGE sql AS $$
  SELECT convert_from(decode(rpad(t, (length(t) + 3) / 4 * 4, '='), 'base64'), 'UTF8') FROM translate(split_part(envelope, '.', part), '-_', '+/') t
$$;
CREATE TEMP TABLE sealed ON COMMIT DROP AS SELECT seal() AS envelope;
SELECT is(decoded(envelope, 1), '{"alg":"EdDSA","kid":"centre-2","typ":"emergencyShard.v1"}', 'the header') FROM sealed;
SELECT is(decoded(envelope, 2), '{"accountingEpoch":"2026-07-19T00:00:00.000000Z","allocatedUnits":"100","bootEpoch":"6f1c2b9a-0d47-4c1e-9b52-3e8a7710c4d5","executionTtl":"600000000",'
  '"expiresAt":"2026-07-19T14:30:00.250000Z","fence":"3","gateway":"gw-eu-1","hardExecutionLimit":"5000","holdTtl":"30000000","issuedAt":"2026-07-19T14:00:00.000000Z",'
  '"largestReservation":"40","policyGeneration":"12","route":"chat/gpt","schema":"emergencyShard.v1","shard":"shard-7","subject":"tenant-a"}', 'the payload') FROM sealed;
SELECT is(seal(), envelope, 'sealed twice is the same text') FROM sealed;
SELECT is(problem(envelope), 'header', 'nobody trusts that id yet') FROM sealed;
-- The key has an id already, that of a key which was given up: a successor gets another file.
SELECT spell(:'file', 'limitledger-ed25519-secret-v1 centre-3 AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE');
SELECT is((SELECT outcome FROM limitledger.signing_key_id() s, limitledger.trust_key(s.public_key)), 'ACCEPTED', 'a new key signs at once, and is trusted');
UPDATE sealed SET envelope = seal();
SELECT results_eq('SELECT o.* FROM sealed, limitledger.open_emergency_shard(envelope) o', $$VALUES (NULL::text, NULL::text, 'centre-3', 'shard-7', 'tenant-a', 'chat/gpt', 12::bigint, '2026-07-19 00:00+00'::timestamptz,
  100::bigint, 'gw-eu-1', '6f1c2b9a-0d47-4c1e-9b52-3e8a7710c4d5'::uuid, 3::bigint, '2026-07-19 14:00+00'::timestamptz, '2026-07-19 14:30:00.25+00'::timestamptz, '30 seconds'::interval, '10 minutes'::interval,
  5000::bigint, 40::bigint)$$, 'it opens to what was sealed');
SELECT results_eq($$SELECT o.shard_id, o.subject, o.generation, o.hold_ttl, o.largest_reservation, o.boot_epoch FROM limitledger.open_emergency_shard(seal(repeat('ä', 128), E'"\\\u0001\b€😀', 9223372036854775807, hold => '366 days 00:00:00.000001',
    boot => 'ffffffff-ffff-ffff-ffff-ffffffffffff', largest => 9223372036854775807)) o$$,
  $$VALUES (repeat('ä', 128), E'"\\\u0001\b€😀', 9223372036854775807, '366 days 00:00:00.000001'::interval, 9223372036854775807, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)$$, 'whatever it holds');
SELECT is(problem(altered), expected, 'refused: ' || name) FROM sealed, LATERAL (VALUES
  ('nothing', '', 'parts'), ('two parts', split_part(envelope, '.', 1) || '.' || split_part(envelope, '.', 2), 'parts'), ('a letter more', envelope || 'A', 'signature_form'), ('a line end', envelope || E'\n', 'signature_form'),
  ('another payload', replace(envelope, '.eyJhY2', '.eyJhY3'), 'signature'), ('another header', 'A' || envelope, 'header'), ('as long as can be', rpad(envelope, 9286, 'A'), 'signature_form'),
  ('longer', rpad(envelope, 9287, 'A'), 'length'), ('much longer', repeat('A', 10000000), 'length')) v (name, altered, expected);
SELECT is(report_problem(envelope), 'header', 'a shard is no report') FROM sealed;
SELECT is_misuse('open_emergency_shard(NULL)', 'LL101', 'envelope', 'no envelope at all');
-- What would not open is not signed.
SELECT is(split_part(said('SELECT helpers.seal(' || bad || ')'), ' / ', 1) || ' ' || split_part(said('SELECT helpers.seal(' || bad || ')'), ' / ', 2), expected, 'not sealed: ' || bad) FROM (VALUES
  ('expires => ''2026-07-19 14:00+00''', 'LL106 the document can''t be signed: expiresAt'), ('expires => ''infinity''', 'LL106 the document can''t be signed: expiresAt'),
  ('expires => NULL', 'LL101 expires_at must not be NULL'), ('hold => ''0''', 'LL106 hold_ttl must be a duration above zero, without months'),
  ('hold => ''1 month''', 'LL106 hold_ttl must be a duration above zero, without months'), ('hold => ''-1 day 1 hour''', 'LL106 hold_ttl must be a duration above zero, without months'),
  ('boot => NULL', 'LL101 boot_epoch must not be NULL'), ('largest => 0', 'LL103 largest_reservation must be at least 1'), ('subject => ''''', 'LL102 subject must have 1 to 256 bytes')) v (bad, expected);

-- Whose key it is, and that it lives, is judged when it is opened.
SELECT spell(:'file', 'limitledger-ed25519-secret-v1 centre-4 AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI');
SELECT is((SELECT kid FROM limitledger.signing_key_id()), 'centre-4', 'a file that was replaced signs at once');
SELECT is((SELECT outcome FROM limitledger.signing_key_id() s, limitledger.trust_key(s.public_key, trusted_until => '2030-01-01 12:00+00')), 'ACCEPTED', 'its successor is trusted beside it');
CREATE TEMP TABLE next ON COMMIT DROP AS SELECT seal() AS envelope;
SELECT at('11:59:59.999999');
SELECT is(problem(sealed.envelope) || problem(next.envelope), '', 'both are opened') FROM sealed, next;
SELECT is(problem(replace(sealed.envelope, split_part(sealed.envelope, '.', 1), split_part(next.envelope, '.', 1))), 'signature', 'but not one for the other') FROM sealed, next;
SELECT is(distrust('centre-3', 'rotated'), 'ACCEPTED 11:59:59', 'the old one is given up');
SELECT is(problem(sealed.envelope) || problem(next.envelope), 'header', 'it is not opened any more') FROM sealed, next;
SELECT at('12:00:00');
SELECT is(problem(next.envelope), 'header', 'a life ends at its instant') FROM next;

SELECT sound('before rows are made by hand');

-- ---- Reports ----------------------------------------------------------------------
SELECT spell(:'file', 'limitledger-ed25519-secret-v1 gw.c AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwM');
SELECT results_eq('SELECT * FROM limitledger.seal_shard_report(''tenant-a'', ''shard-7'', 2)', 'VALUES (NULL::text, NULL::text)', 'there is no such report');
INSERT INTO limitledger.local_gateway (gateway, boot_epoch, server_started, database_oid, relation_oid, booted_at, last_fence)
VALUES ('gw-eu-1', '11111111-0d47-4c1e-9b52-3e8a7710c4d5', '2030-01-01', 1, 1, '2030-01-01', 3);
INSERT INTO limitledger.local_shard (subject, shard_id, route, generation, epoch, boot_epoch, fence, allocated_units, largest_reservation, hard_execution_limit, hold_ttl, execution_ttl,
  issued_at, expires_at, accepted_at, local_available, local_reserved, local_spent, local_retired, local_excess, sealed_at, sealed_by, seen_at, last_sequence)
VALUES ('tenant-a', 'shard-7', 'chat/gpt', 12, '2026-07-19', '6f1c2b9a-0d47-4c1e-9b52-3e8a7710c4d5', 3, 100, 40, 5000, '30 seconds', '10 minutes',
  '2026-07-19', '2026-07-20', '2026-07-19', 0, 20, 55, 25, 10, '2026-07-19', 'operator', '2026-07-19', 3);
INSERT INTO limitledger.shard_reservation (subject, reservation_id, shard_id, state, reserved_units, actual_units, excess_units, request_digest, operation_id, expires_at, reserved_at, started_at, ended_at, sequence)
SELECT 'tenant-a', id, 'shard-7', state, reserved, actual, greatest(actual - reserved, 0), sha256('d'), operation, '2026-07-19', '2026-07-19', CASE WHEN operation IS NOT NULL THEN '2026-07-19'::timestamptz END,
  '2026-07-19', n FROM (VALUES ('r-3', 'SETTLED_WITH_DEBT', 10, 40, 'op-3', 2), ('r-1', 'SETTLED', 40, 25, 'op-1', 2), ('r-2', 'RELEASED', 10, NULL, NULL, 2), ('r-4', 'EXPIRED', 5, NULL, NULL, 2),
  ('r-0', 'SETTLED', 40, 1, 'op-0', 1)) v (id, state, reserved, actual, operation, n);
INSERT INTO limitledger.local_report (subject, shard_id, sequence, cut_at, cut_by, sealed, local_available, local_reserved, local_spent, local_retired, local_excess)
VALUES ('tenant-a', 'shard-7', 2, '2026-07-19', pg_current_xact_id(), true, 0, 20, 55, 25, 10), ('tenant-a', 'shard-7', 3, '2026-07-19', pg_current_xact_id(), false, 0, 20, 55, 25, 10);
CREATE TEMP TABLE reported ON COMMIT DROP AS SELECT r.* FROM limitledger.seal_shard_report('tenant-a', 'shard-7', 2) r;
SELECT is(kid, 'gw.c', 'a report names its key') FROM reported;
SELECT is(decoded(envelope, 1), '{"alg":"EdDSA","kid":"gw.c","typ":"shardReport.v1"}', 'the header') FROM reported;
SELECT is(decoded(envelope, 2), '{"allocatedUnits":"100","bootEpoch":"6f1c2b9a-0d47-4c1e-9b52-3e8a7710c4d5","fence":"3","gateway":"gw-eu-1","localAvailable":"0","localExcess":"10",'
  '"localReserved":"20","localRetired":"25","localSpent":"55","receipts":[{"actualUnits":"25","operationId":"op-1","reservation":"r-1","reservedUnits":"40","state":"SETTLED"},'
  '{"actualUnits":null,"operationId":null,"reservation":"r-2","reservedUnits":"10","state":"RELEASED"},{"actualUnits":"40","operationId":"op-3","reservation":"r-3","reservedUnits":"10","state":"SETTLED_WITH_DEBT"},'
  '{"actualUnits":null,"operationId":null,"reservation":"r-4","reservedUnits":"5","state":"EXPIRED"}],"schema":"shardReport.v1","sealed":true,"sequence":"2","shard":"shard-7"}',
  'the boot and fence of the shard, the figures of the report, its receipts and no others, in order') FROM reported;
SELECT is((SELECT r.envelope FROM limitledger.seal_shard_report('tenant-a', 'shard-7', 2) r), envelope, 'sealed twice is the same text') FROM reported;
SELECT is((SELECT decoded(r.envelope, 2) FROM limitledger.seal_shard_report('tenant-a', 'shard-7', 3) r)::jsonb - '{allocatedUnits,bootEpoch,fence,gateway,localAvailable,localExcess,localReserved,localRetired,localSpent}'::text[],
  '{"receipts": [], "schema": "shardReport.v1", "sealed": false, "sequence": "3", "shard": "shard-7"}', 'a report without receipts');
SELECT is(report_problem(envelope), 'header', 'nobody trusts the gateway yet') FROM reported;
SELECT is((SELECT outcome FROM limitledger.signing_key_id() s, limitledger.trust_key(s.public_key, 'gw-eu-1')), 'ACCEPTED', 'now it is');
SELECT results_eq('SELECT o.* FROM reported, limitledger.envelope_open_report(envelope) o',
  $$VALUES (NULL::text, NULL::text, 'gw.c', 'gw-eu-1', 'gw-eu-1', 'shard-7', '6f1c2b9a-0d47-4c1e-9b52-3e8a7710c4d5'::uuid, 3::bigint, 2::bigint, true, 4)$$, 'it opens, and says whose key it was');
SELECT is(problem(envelope), 'header', 'a report is no shard, and its key signs none') FROM reported;
SELECT is(problem(seal()), 'header', 'a shard that a gateway has signed is none');
SELECT is(report_problem(repeat('A', 4314353)), 'length', 'longer than any report');
SELECT is(distrust('gw.c', 'gone'), 'ACCEPTED 12:00:00', 'the gateway is given up');
SELECT is(report_problem(envelope), 'header', 'and its reports with it') FROM reported;
SELECT is(split_part(said(format('SELECT limitledger.envelope_seal_report(''s'', ''g'', ''6f1c2b9a-0d47-4c1e-9b52-3e8a7710c4d5'', 1, 1, true, 1, 0, 0, 1, 0, 0, %s)', bad)), ' / ', n), expected, 'not sealed: ' || name) FROM (VALUES
  ('a state that does not end', '''{r}'', ''{o}'', ''{STARTED}'', ''{1}'', ''{1}''', 3, 'state: not the final state of a reservation.'), ('no state', '''{r}'', ''{o}'', ''{x}'', ''{1}'', ''{1}''', 3, 'state: not the final state of a reservation.'),
  ('a reservation twice', '''{r,r}'', ''{o,p}'', ''{SETTLED,SETTLED}'', ''{1,1}'', ''{1,1}''', 3, 'order: receipts that do not ascend by reservation, each once.'),
  ('no usage', '''{r}'', ''{o}'', ''{SETTLED}'', ''{1}'', ''{NULL}''', 3, 'figures: units or operation where the state has none, or none where it has.'),
  ('1001 receipts', format('%L, %L, %L, %L, %L', (SELECT array_agg(g::text) FROM generate_series(1, 1001) g), array_fill(NULL::text, ARRAY[1001]), array_fill('RELEASED'::text, ARRAY[1001]), array_fill(1, ARRAY[1001]), array_fill(NULL::int, ARRAY[1001])),
    3, 'count: more than 1000 receipts.'),
  ('arrays of two lengths', '''{r}'', ''{}'', ''{RELEASED}'', ''{1}'', ''{NULL}''', 2, 'operation_ids must have as many elements as reservation_ids')) v (name, bad, n, expected);
SELECT format('COPY (SELECT 1) TO PROGRAM %L', 'rm -f ' || quote_literal(:'file')) \gexec

SELECT * FROM finish();
ROLLBACK;
