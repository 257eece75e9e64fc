-- :chunks times 10,000 holds of 10 units on :pairs pairs of one route.
SELECT count(r.outcome)
FROM generate_series(0, :chunks - 1) AS c (c),
     LATERAL (SELECT array_agg(format('tenant-%s', (c.c * 10000 + n) % :pairs)) AS subjects,
                     array_agg(:'route'::text)                                  AS routes,
                     array_agg(format('%s-%s', :'route', c.c * 10000 + n))      AS reservation_ids,
                     array_agg(10::bigint)                                      AS units,
                     array_agg(sha256('hold'))                                  AS digests
              FROM generate_series(0, 9999) AS n) AS a,
     LATERAL limitledger.reserve_capacity_batch(
       a.subjects, a.routes, a.reservation_ids, a.units, a.digests) AS r
WHERE r.outcome = 'ACCEPTED'
HAVING count(r.outcome) = :chunks * 10000;
