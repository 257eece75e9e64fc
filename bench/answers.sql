-- Proof that both sides answer alike: new, replay, conflict, each refusal that
-- the two policies can give.  Instants differ by nature; what follows from them
-- is compared as a distance or as present or not.

CREATE TEMP TABLE scenario (
  step integer PRIMARY KEY, route text, reservation_id text, units bigint, digest bytea,
  deadline timestamptz DEFAULT NULL, expected text);

INSERT INTO scenario (step, route, reservation_id, units, digest, expected) VALUES
  (1, 'open', 'a-1', 10,      sha256('a-1'), 'ACCEPTED'),
  (2, 'open', 'a-1', 10,      sha256('a-1'), 'ACCEPTED'),
  (3, 'open', 'a-1', 10,      sha256('a-2'), 'CONFLICT request'),
  (4, 'open', 'a-1', 11,      sha256('a-1'), 'CONFLICT request'),
  (5, 'full', 'a-1', 10,      sha256('a-1'), 'CONFLICT request'),
  (6, 'open', 'a-2', 1000001, sha256('a-2'), 'REFUSED largest_reservation'),
  (7, 'full', 'a-2', 10,      sha256('a-2'), 'REFUSED available'),
  (8, 'open', 'a-2', 1000000, sha256('a-2'), 'ACCEPTED');
INSERT INTO scenario VALUES
  (9, 'open', 'a-3', 10,      sha256('a-3'), '2000-01-01Z', 'REFUSED deadline');

CREATE FUNCTION pg_temp.answer(side text, s scenario) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  r      record;
  answer text;
BEGIN
  EXECUTE format('SELECT * FROM %I.reserve_capacity(''bench'', $1, $2, $3, $4, deadline => $5)', side)
    INTO r USING s.route, s.reservation_id, s.units, s.digest, s.deadline;
  answer := concat_ws(' ', r.outcome, r.dimension);
  IF answer IS DISTINCT FROM s.expected THEN
    RAISE EXCEPTION '% answers step % with %, expected %', side, s.step, answer, s.expected;
  END IF;
  -- available of 'full' moves once a day; that of 'open' all the time.
  RETURN concat_ws(', ', answer, r.state, r.replayed, r.generation, r.epoch, r.reserved_units,
    r.actual_units, r.operation, r.cap, r.retry_kind, r.hard_limit, r.excess_units,
    CASE WHEN s.route = 'full' AND r.outcome = 'REFUSED' THEN r.available END,
    CASE WHEN r.outcome = 'ACCEPTED' AND NOT r.replayed THEN r.expires_at - r.ledger_at END,
    'retry in seconds', r.retry_after_ms / 1000, 'full again', r.reset_at > r.ledger_at);
END;
$$;

DO $$
DECLARE
  s      scenario;
  ours   text;
  theirs text;
BEGIN
  FOR s IN SELECT * FROM scenario ORDER BY step LOOP
    ours   := pg_temp.answer('limitledger', s);
    theirs := pg_temp.answer('bench_baseline', s);
    IF ours IS DISTINCT FROM theirs THEN
      RAISE EXCEPTION 'step %: the answers differ', s.step
        USING DETAIL = format(E'limitledger: %s\nplpgsql:     %s', ours, theirs);
    END IF;
  END LOOP;
END;
$$;
