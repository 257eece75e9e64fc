-- Two routes of holds that run out: 'due' after a second, 'soon' after :ttl.

SELECT generation, stage
FROM (VALUES ('due', '1 second'), ('soon', :'ttl')) AS p (route, ttl),
     limitledger.publish_policy(jsonb_build_object(
       'schema', 'admissionBudget.v1', 'subject', '*', 'route', p.route, 'region', '*', 'unit', 'token',
       'refill', '{"kind": "none"}'::jsonb, 'burst', 1000000000, 'epoch', '{"length": "1 day"}'::jsonb,
       'estimatorDigests', '[]'::jsonb, 'largestReservation', 1000000, 'holdTtl', p.ttl,
       'executionTtl', '1 day', 'hardExecutionLimit', 1000000, 'maximumOverdraft', 0,
       'priority', 0, 'weight', 1, 'fairnessBudget', 0, 'retention', '30 days'));
