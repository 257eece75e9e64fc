-- Shadow and canary: a generation is tried beside the one in force, on budgets of its
-- own, then taken into force for a part of the traffic that only grows (B4, B7).
--
-- Fails when: a shadow changes a decision, a balance or a wait of the enforced generation,
-- its own figures miss a request, a settlement or a window, or end where numbers do; the
-- kill switch leaves a route to the caller; a shadow is a dead end; a canary takes in others than
-- its hash says, lets one go again, or gives capacity away.

BEGIN;
\ir helpers.psql
SELECT plan(129);

CREATE FUNCTION helpers.publish_only(subject text, route text, fields jsonb DEFAULT '{}') RETURNS bigint LANGUAGE sql AS $$
  SELECT generation FROM limitledger.publish_policy(document(subject, route, fields), false)
$$;
CREATE FUNCTION helpers.shadow(generation bigint) RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws(' ', s.stage, CASE WHEN s.already_shadow THEN 'already' END) FROM limitledger.shadow_policy(generation, 'a test') s
$$;
CREATE FUNCTION helpers.canary(generation bigint, percent integer, by text DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws(' ', c.stage, c.percent, c.pick_by, CASE WHEN c.already_in THEN 'already' END) FROM limitledger.canary_policy(generation, percent, 'a test', by) c
$$;
-- would have admitted / rejected what was admitted, refused, left to the caller
CREATE FUNCTION helpers.compared(of_generation bigint) RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws(' ', would_admit_admitted, would_admit_refused, would_admit_unenforced, '|', would_reject_admitted, would_reject_refused, would_reject_unenforced)
  FROM limitledger.rollout_status WHERE generation = of_generation
$$;
CREATE FUNCTION helpers.shadow_equation(of_subject text, of_generation bigint) RETURNS text LANGUAGE sql AS $$
  SELECT format('%s + %s + %s = %s + %s + %s + %s + %s', opening, minted, overdraft_issued, available, reserved, spent, retired_for_emergency, overdraft_repaid)
  FROM limitledger.shadow_budget WHERE subject = of_subject AND generation = of_generation
$$;
CREATE FUNCTION helpers.generation(subject text, route text) RETURNS bigint LANGUAGE sql AS $$
  SELECT b.generation FROM limitledger.get_budget(subject, route) b
$$;
CREATE FUNCTION helpers.real() RETURNS text LANGUAGE sql AS $$
  SELECT string_agg((subject, route, opening, minted, overdraft_issued, available, reserved, spent, overdraft_repaid, seen_at, accrued_at)::text, ', ' ORDER BY subject, route)
  FROM limitledger.head_budget
$$;
CREATE FUNCTION helpers.many(subject text, route text, prefix text, n integer, units bigint DEFAULT 1) RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(said, ', ' ORDER BY said) FROM (
    SELECT format('%s %s', count(*), split_part(r, ' ', 1)) AS said
    FROM generate_series(1, n) i, LATERAL reserve(subject, route, prefix || i, units) r GROUP BY split_part(r, ' ', 1)) s
$$;

-- ---- A tight shadow beside a wide policy -----------------------------------------------
SELECT at('10:00:00');
SELECT publish('t', 'chat', '{"burst": 100}') AS real \gset
SELECT publish_only('t', 'chat', '{"burst": 10}') AS tight \gset
SELECT is(shadow(:tight), 'shadow', 'a shadow');
SELECT is(shadow(:tight), 'shadow already', 'once');
SELECT is(many('t', 'chat', 'r', 200), '100 ACCEPTED, 100 REFUSED', 'exactly the enforced limit is admitted');
SELECT is(compared(:tight), '10 0 0 | 90 100 0', 'the shadow would have admitted ten of them');
SELECT is(equation('t', 'chat'), '100 + 0 + 0 = 0 + 100 + 0 + 0 + 0', 'the real budget');
SELECT is(shadow_equation('t', :tight), '10 + 0 + 0 = 0 + 0 + 10 + 0 + 0', 'and the shadow''s own');
SELECT is(reserve('t', 'chat', 'r1', 1), 'ACCEPTED RESERVED replayed', 'a repeat');
SELECT is(reserve('t', 'chat', 'r1', 2), 'CONFLICT request', 'or a conflict');
SELECT is(compared(:tight), '10 0 0 | 90 100 0', 'is no other request');
SELECT is((SELECT concat_ws(' ', dimension, retry_kind, retry_after_ms) FROM limitledger.reserve_capacity('t', 'chat', 'x', 1, sha256('x'))), 'available release', 'the wait is that of the enforced rule');
SELECT sound('beside a shadow');

-- The same calls with and without it leave the same real rows, to the instant.
SELECT publish('twin', 'chat', continuous(7, '1 minute', 100)) AS plain \gset
SELECT publish('shadowed', 'chat', continuous(7, '1 minute', 100)) AS shaded \gset
SELECT publish_only('shadowed', 'chat', continuous(1, '1 hour', 3)) AS strict \gset
SELECT is(shadow(:strict), 'shadow', 'one of two twins has a shadow');
CREATE FUNCTION helpers.live(who text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  said text := '';
BEGIN
  PERFORM at('10:00:01'); said := said || reserve(who, 'chat', 'a', 40, 'oa') || reserve(who, 'chat', 'b', 40) || reserve(who, 'chat', 'c', 40);
  PERFORM at('10:01:02'); said := said || settle(who, 'a', 'oa', 60) || release(who, 'b') || reserve(who, 'chat', 'c', 40, 'oc');
  PERFORM at('10:02:03'); said := said || settle(who, 'c', 'oc', 90) || reserve(who, 'chat', 'd', 1);
  PERFORM at('10:03:33'); said := said || reserve(who, 'chat', 'e', 1);
  RETURN said || (SELECT (retry_after_ms, available, reset_at)::text FROM limitledger.reserve_capacity(who, 'chat', 'f', 50, sha256('f')));
END $$;
SELECT is(live('shadowed'), live('twin'), 'both twins hear the same');
SELECT is((SELECT (to_jsonb(a) - '{subject,generation}'::text[])::text FROM limitledger.head_budget a WHERE subject = 'shadowed'),
          (SELECT (to_jsonb(b) - '{subject,generation}'::text[])::text FROM limitledger.head_budget b WHERE subject = 'twin'), 'and have the same budget');
SELECT isnt(compared(:strict), NULL, 'while the shadow kept its own');

-- ---- Settled along with the real one ------------------------------------------------------
SELECT at('11:00:00');
SELECT publish('*', 'work', '{"burst": 1000, "holdTtl": "1 minute"}') AS work \gset
SELECT publish('own', 'work', '{"burst": 10}');
SELECT publish_only('*', 'work', '{"burst": 500}') AS less \gset
SELECT is(shadow(:less), 'shadow', 'a wildcard in shadow');
SELECT is(reserve('s', 'work', 'a', 300, 'oa'), 'ACCEPTED STARTED', 'an execution');
SELECT is(shadow_equation('s', :less), '500 + 0 + 0 = 200 + 0 + 300 + 0 + 0', 'is spent as asked for');
SELECT is(settle('s', 'a', 'oa', 100), 'ACCEPTED SETTLED', 'it used less');
SELECT is((SELECT available FROM limitledger.shadow_budget WHERE subject = 's' AND generation = :less), 400::bigint, 'which the shadow learns');
SELECT is(reserve('s', 'work', 'b', 100), 'ACCEPTED RESERVED', 'a hold');
SELECT is(release('s', 'b'), 'ACCEPTED RELEASED', 'released');
SELECT is((SELECT available FROM limitledger.shadow_budget WHERE subject = 's' AND generation = :less), 400::bigint, 'is back there, too');
SELECT is(reserve('s', 'work', 'c', 100), 'ACCEPTED RESERVED', 'a hold');
SELECT at('11:01:00');
SELECT is((SELECT expired FROM limitledger.expire_reservations()), 101::bigint, 'that runs out, with others');
SELECT is((SELECT available FROM limitledger.shadow_budget WHERE subject = 's' AND generation = :less), 400::bigint, 'is back there as well');
SELECT is(reserve('s', 'work', 'd', 350, 'od'), 'ACCEPTED STARTED', 'another one');
SELECT is(settle('s', 'd', 'od', 600), 'ACCEPTED SETTLED', 'uses more, and the real budget has it');
SELECT is(shadow_equation('s', :less), '500 + 0 + 200 = 0 + 0 + 700 + 0 + 0', 'the shadow owes it');
SELECT is(reserve('s', 'work', 'e', 1), 'ACCEPTED RESERVED', 'what is really available');
SELECT is(compared(:less), '4 0 0 | 1 0 0', 'an indebted shadow would not admit');
SELECT is((SELECT outcome FROM limitledger.record_usage('u', 'work', 'ran', 450)), 'ACCEPTED', 'usage that nobody reserved');
SELECT is(shadow_equation('u', :less), '500 + 0 + 0 = 50 + 0 + 450 + 0 + 0', 'is used there, too');
SELECT is(admission('s', 'work'), 'open', 'none of it is seen of the real pair');
SELECT is(reserve('own', 'work', 'a', 1) || ' ' || (SELECT count(*) FROM limitledger.shadow_budget WHERE subject = 'own'), 'ACCEPTED RESERVED 0', 'a wildcard in shadow passes by whom a policy of his own rules');

-- What the shadow would admit and the enforced refuses runs nowhere: it counts as used in full.
SELECT publish('*', 'narrow', '{"burst": 10}') AS narrow \gset
SELECT publish_only('*', 'narrow', '{"burst": 15}') AS wide \gset
SELECT is(shadow(:wide), 'shadow', 'a wider one in shadow');
SELECT is(many('n', 'narrow', 'r', 30), '10 ACCEPTED, 20 REFUSED', 'the enforced limit');
SELECT is(compared(:wide), '10 5 0 | 0 15 0', 'five more would have been admitted, no more');
-- Two of one decision: what happened is what the batch got.
SELECT is((SELECT string_agg(concat_ws(' ', outcome, dimension), ', ' ORDER BY element) FROM limitledger.reserve_capacity_batch(
  ARRAY['m', 'm'], ARRAY['narrow', 'work'], ARRAY['m1', 'm2'], ARRAY[11, 1]::bigint[], array_fill(sha256('m'), ARRAY[2]), require_all => true)),
  'REFUSED largest_reservation, REFUSED require_all', 'one says no');
SELECT is(compared(:wide), '10 6 0 | 0 15 0', 'the shadow of it would not have');
SELECT is(compared(:less), '4 1 0 | 1 0 0', 'nor that of the other');

-- Windows: a shadow's quota opens with each of its own epochs, and old units lapse.
SELECT at('12:30:00');
SELECT publish('*', 'minute', quota(100)) AS hourly \gset
SELECT publish_only('*', 'minute', quota(20) || '{"epoch": {"length": "1 minute"}}') AS minutely \gset
SELECT is(shadow(:minutely), 'shadow', 'a shorter window in shadow');
SELECT is(reserve('q', 'minute', 'a', 20, 'oa'), 'ACCEPTED STARTED', 'all of this minute');
SELECT at('12:31:00');
SELECT is(reserve('q', 'minute', 'b', 15), 'ACCEPTED RESERVED', 'of the next one');
SELECT is(settle('q', 'a', 'oa', 0), 'ACCEPTED SETTLED', 'the first used nothing');
SELECT is((SELECT available FROM limitledger.shadow_budget WHERE subject = 'q'), 5::bigint, 'which comes back to no window that has passed');
SELECT is(compared(:minutely), '2 0 0 | 0 0 0', 'both would have been admitted');

-- ---- Without an enforced policy: UNENFORCED ---------------------------------------------
SELECT publish_only('*', 'old limiter', '{"burst": 3}') AS first \gset
SELECT is(reserve('t', 'old limiter', 'a', 1), 'REFUSED no_policy', 'published is nothing yet');
SELECT is(shadow(:first), 'shadow', 'a shadow alone');
SELECT results_eq($$SELECT concat_ws(' ', outcome, dimension, state, retry_kind, retry_after_ms, available, cap), generation FROM limitledger.reserve_capacity('t', 'old limiter', 'a', 1, sha256('a'))$$,
  format($$VALUES ('UNENFORCED shadow REQUESTED', %s::bigint)$$, :first), 'the caller''s own limiter decides');
SELECT is(many('old', 'old limiter', 'r', 4), '4 UNENFORCED', 'each time');
SELECT is(compared(:first), '0 0 4 | 0 0 1', 'and the shadow of each pair counts');
SELECT is((SELECT count(*) FROM limitledger.head_budget WHERE route = 'old limiter'), 0::bigint, 'no real pair came into being');
SELECT is(state('t', 'a'), 'RESERVATION_UNKNOWN', 'nothing is stored under the id');
SELECT is((SELECT string_agg(concat_ws(' ', outcome, dimension), ', ' ORDER BY element) FROM limitledger.reserve_capacity_batch(
  ARRAY['w', 'w'], ARRAY['old limiter', 'work'], ARRAY['w1', 'w2'], ARRAY[1, 1]::bigint[], array_fill(sha256('w'), ARRAY[2]), require_all => true)),
  'UNENFORCED shadow, ACCEPTED', 'what is not enforced refuses nothing else');
SELECT is(limitledger.problem_details('UNENFORCED', 'shadow', NULL, NULL, 1, 'chat'), NULL, 'it is no problem');

-- The kill switch stops a route that is in shadow alone, too: nobody else decides then.
SELECT is((SELECT outcome FROM limitledger.freeze_route('old limiter', 'kill')), 'ACCEPTED', 'an operator stops the route');
SELECT is((SELECT concat_ws(' ', outcome, dimension, retry_kind) FROM limitledger.reserve_capacity('old', 'old limiter', 'k', 1, sha256('k'))), 'REFUSED frozen operator', 'which is not left to the caller');
SELECT is((SELECT outcome FROM limitledger.unfreeze_route('old limiter', 'go on')), 'ACCEPTED', 'and opens it');
SELECT is(reserve('old', 'old limiter', 'k', 1), 'UNENFORCED shadow', 'then it is');

-- Publishing what is in shadow, or was: activated if that is asked for, never a dead end.
SELECT publish_only('*', 'again', '{"burst": 5}') AS again \gset
SELECT is(shadow(:again), 'shadow', 'a shadow');
SELECT is(publish_only('*', 'again', '{"burst": 5}'), :again::bigint, 'published again it is the same');
SELECT is((SELECT stage FROM limitledger.policies WHERE generation = :again), 'shadow', 'and stays in shadow');
SELECT is(publish('*', 'again', '{"burst": 5}'), :again::bigint, 'published to be active');
SELECT is((SELECT stage FROM limitledger.policies WHERE generation = :again), 'active', 'it is active');
SELECT publish_only('*', 'again', '{"burst": 6}') AS later \gset
SELECT is(canary(:later, 1), 'canary 1 route', 'a canary');
SELECT is(publish('*', 'again', '{"burst": 6}'), :later::bigint, 'published to be active');
SELECT is((SELECT stage FROM limitledger.policies WHERE generation = :later), 'active', 'is active, too');
SELECT publish_only('*', 'again', '{"burst": 7}') AS tried \gset
SELECT is(shadow(:tried), 'shadow', 'one more shadow');
SELECT is((SELECT stage FROM limitledger.drain_policy(:tried, 'not now')), 'draining', 'that ends');
SELECT isnt(publish_only('*', 'again', '{"burst": 7}'), :tried::bigint, 'its content may be published anew');

-- Units come back to a shadow as they do to a real budget, so its sums end where those do.
SELECT publish('*', 'big', '{"burst": 9223372036854775807}') AS big \gset
SELECT publish_only('*', 'big', '{"burst": 9223372036854775807, "weight": 2}') AS equally_big \gset
SELECT is(shadow(:equally_big), 'shadow', 'a big one');
SELECT is(reserve('b', 'big', 'b' || i, 5000000000000000000) || ' ' || release('b', 'b' || i), 'ACCEPTED RESERVED ACCEPTED RELEASED', 'most of it') FROM generate_series(1, 3) i;
SELECT is(compared(:equally_big), '3 0 0 | 0 0 0', 'is admitted again and again');

-- ---- Canary by pair ----------------------------------------------------------------------
-- Of t1, t2, t3, t4, t5 on chat the buckets are 20, 15, 13, 67, 22: see test/unit/rollout.c.
SELECT at('13:00:00');
SELECT publish('*', 'chat', '{"burst": 1000}') AS all_of \gset
SELECT is(many(v.t, 'chat', v.t || ' r', 1, 400), '1 ACCEPTED', v.t || ' has used 400') FROM (VALUES ('t1'), ('t2'), ('t3'), ('t4')) v (t);
SELECT publish_only('*', 'chat', '{"burst": 700}') AS next \gset
SELECT at('13:00:10');
SELECT is(canary(:next, 15, 'pair'), 'canary 15 pair', 'fifteen percent');
SELECT is(canary(:next, 15), 'canary 15 pair already', 'once');
SELECT is((SELECT string_agg(v.t, ' ' ORDER BY v.t) FROM (VALUES ('t1'), ('t2'), ('t3'), ('t4'), ('t5')) v (t) WHERE generation(v.t, 'chat') = :next), 't3', 'one of five is in');
SELECT is(available('t3', 'chat'), 600::bigint, 'with what it had, within the new cap');
SELECT is(reserve('t3', 'chat', 'more', 600) || ', ' || reserve('t3', 'chat', 'yet more', 1), 'ACCEPTED RESERVED, REFUSED available', 'and no more');
SELECT is(reserve('t2', 'chat', 'more', 600) || ', ' || reserve('t2', 'chat', 'yet more', 1), 'ACCEPTED RESERVED, REFUSED available', 'one that is out goes on under the old one');
SELECT is(compared(:next), '1 1 0 | 0 0 0', 'with the new one in its shadow');
SELECT at('13:00:20');
SELECT is(canary(:next, 21), 'canary 21 pair', 'twenty-one percent');
SELECT is((SELECT string_agg(v.t, ' ' ORDER BY v.t) FROM (VALUES ('t1'), ('t2'), ('t3'), ('t4'), ('t5')) v (t) WHERE generation(v.t, 'chat') = :next), 't1 t2 t3', 'what was in is in');
SELECT is(reserve('t1', 'chat', 'new', 1), 'ACCEPTED RESERVED', 'a pair moves at its next call');
SELECT is((SELECT opened_at FROM limitledger.head_budget WHERE subject = 't1' AND route = 'chat'), '2030-01-01 13:00:20+00'::timestamptz, 'as of the step that took it in');
SELECT is((SELECT string_agg(concat_ws(' ', stage, canary_percent, canary_by), ', ') FROM limitledger.policies WHERE generation = :next), 'canary 21 pair', 'so it says');
SELECT is_misuse(format('canary_policy(%s, 20, ''why'')', :next), 'LL205', 'takes in 21', 'a part does not shrink');
SELECT is_misuse(format('canary_policy(%s, 30, ''why'', ''route'')', :next), 'LL205', 'takes in 21', 'nor is it another one');
SELECT is_misuse(format('drain_policy(%s, ''why'')', :next), 'LL205', 'generation', 'its pairs are not left without a policy');
SELECT is_misuse(format('shadow_policy(%s, ''why'')', publish_only('*', 'chat', '{"burst": 1}')), 'LL205', 'generation', 'nor is another one tried beside it');
SELECT is(reserve('t4', 'chat', 'still', 1), 'ACCEPTED RESERVED', 'the old generation admits for the others');
SELECT is((SELECT stage FROM limitledger.policies WHERE generation = :all_of), 'active', 'and is active');

-- Back: older content under a new generation, for all, with what was used.
SELECT at('13:00:30');
SELECT generation AS back, rolled_back_from FROM limitledger.rollback_policy(:all_of, 'too tight') \gset
SELECT is(:rolled_back_from, :next, 'it goes back from the canary');
SELECT is((SELECT string_agg(generation(v.t, 'chat')::text, ' ' ORDER BY v.t) FROM (VALUES ('t1'), ('t2'), ('t3'), ('t4')) v (t)), repeat(:back || ' ', 3) || :back, 'all are in');
SELECT is((SELECT string_agg(available(v.t, 'chat')::text, ' ' ORDER BY v.t) FROM (VALUES ('t1'), ('t2'), ('t3'), ('t4')) v (t)), '599 0 0 599', 'with what they had');
SELECT is((SELECT generation FROM limitledger.rollback_policy(:all_of, 'again')), :back::bigint, 'a repeat goes nowhere');
SELECT is((SELECT string_agg(stage, ' ' ORDER BY generation) FROM limitledger.policies WHERE generation IN (:all_of, :next, :back)), 'draining draining active', 'the others drain');
SELECT sound('after a rollback of a canary');

-- On: from canary to active.
SELECT publish_only('*', 'chat', '{"burst": 2000}') AS bigger \gset
SELECT is(shadow(:bigger) || ', ' || canary(:bigger, 50, 'pair') || ', ' || canary(:bigger, 99), 'shadow, canary 50 pair, canary 99 pair', 'shadow, half, nearly all');
SELECT is(reserve('t1', 'chat', 'bigger', 1), 'ACCEPTED RESERVED', 'one that is in');
SELECT is((SELECT stage FROM limitledger.activate_policy(:bigger)), 'active', 'all');
SELECT is((SELECT count(*) FROM (VALUES ('t1'), ('t2'), ('t3'), ('t4')) v (t) WHERE generation(v.t, 'chat') = :bigger), 4::bigint, 'are in');
SELECT is((SELECT stage FROM limitledger.policies WHERE generation = :back), 'draining', 'the older one drains');
SELECT is_misuse(format('canary_policy(%s, 99, ''why'')', :bigger), 'LL205', 'generation', 'there is no way back to a part');

-- ---- Canary by route: a fleet of routes, each wholly in or out -----------------------------
-- The buckets of a, b, c are 29, 8, 4.
SELECT publish('*', v.r, '{"burst": 100}') FROM (VALUES ('a'), ('b'), ('c')) v (r);
SELECT publish_only('*', v.r, '{"burst": 50}') FROM (VALUES ('a'), ('b'), ('c')) v (r);
SELECT is((SELECT string_agg(canary(p.generation, 8), ', ') FROM limitledger.policies p WHERE route IN ('a', 'b', 'c') AND stage = 'published'),
  'canary 8 route, canary 8 route, canary 8 route', 'eight percent of the routes');
SELECT is((SELECT string_agg(concat_ws(' ', v.r, cap), ', ' ORDER BY v.r) FROM (VALUES ('a'), ('b'), ('c')) v (r), limitledger.get_budget('t', v.r)), 'a 100, b 100, c 50', 'one of three is real');
SELECT is((SELECT string_agg(canary(p.generation, 30), ', ') FROM limitledger.policies p WHERE route IN ('a', 'b', 'c') AND stage = 'canary'),
  'canary 30 route, canary 30 route, canary 30 route', 'thirty');
SELECT is((SELECT string_agg(concat_ws(' ', v.r, cap), ', ' ORDER BY v.r) FROM (VALUES ('a'), ('b'), ('c')) v (r), limitledger.get_budget('t', v.r)), 'a 50, b 50, c 50', 'all three');

-- A canary that nothing was there before: it drains, and its pairs have no policy again.
SELECT publish_only('*', 'first', '{"burst": 50}') AS alone \gset
SELECT is(canary(:alone, 99, 'pair'), 'canary 99 pair', 'the first of its route');
SELECT is(reserve('t1', 'first', 'r', 1), 'ACCEPTED RESERVED', 'who is in is admitted');
SELECT is((SELECT stage FROM limitledger.drain_policy(:alone, 'not yet')), 'draining', 'it can be ended');
SELECT is(reserve('t1', 'first', 's', 1), 'REFUSED draining', 'for those who were in');
SELECT is(release('t1', 'r'), 'ACCEPTED RELEASED', 'what is held comes back');
UPDATE limitledger.policy SET drained_by = NULL;
SELECT is((SELECT outcome FROM limitledger.retire_policy(:alone)), 'ACCEPTED', 'then it is retired');
SELECT is(reserve('t1', 'first', 's', 1), 'REFUSED no_policy', 'and nobody has a policy');

-- ---- Out of the shadow, misuse, guards --------------------------------------------------------
SELECT is((SELECT stage FROM limitledger.drain_policy(:less, 'seen enough')), 'draining', 'a shadow ends');
SELECT is(reserve('s', 'work', 'after', 1), 'ACCEPTED RESERVED', 'requests go on');
SELECT is(compared(:less), '5 1 0 | 1 0 0', 'and it is not asked');
UPDATE limitledger.policy SET drained_by = NULL;    -- as if that had been committed
SELECT is((SELECT outcome || ' ' || stage FROM limitledger.retire_policy(:less)), 'ACCEPTED retired', 'nothing is left of it');
SELECT is((SELECT count(*) FROM limitledger.shadow_budget WHERE generation = :less), 0::bigint, 'its budgets are gone');
SELECT throws_ok(format('UPDATE limitledger.policy SET canary_percents = %L WHERE generation = %s', '{1}', :bigger), 'LL902', NULL, 'steps that were made stay');
SELECT throws_ok(format('UPDATE limitledger.policy SET canary_percents = canary_percents || 100, canary_since = canary_since || now() + interval ''9 years'' WHERE generation = %s', :bigger), 'LL902', NULL, 'nor are any added to what is no canary');
SELECT sound('at the end');

SELECT * FROM finish();
ROLLBACK;
