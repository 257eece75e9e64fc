-- What \df+ and \dv+ say about each public call and view.  publish_policy, activate_policy,
-- ledger_clock, canonical_json and request_digest carry theirs in their own chapter.
--
-- The first sentence of each is also its line in README.md; test/t/900_docs.pl
-- compares the two.  Rule numbers are those of docs/rules.md.

-- ---- The life of a reservation ---------------------------------------------

COMMENT ON FUNCTION reserve_capacity IS
$$Admits one request and holds its units, or refuses it: the only way in which capacity is given out (D2, D3).

subject, route, reservation_id, start_operation: 1 to 256 bytes, compared byte for byte; the subject is never "*". units: 1 or more. digest, estimator_digest: 32 bytes or sha256:<64 hexadecimal digits>. region: NULL matches only a policy for "*". deadline: an instant from which on nothing is taken. priority: NULL stands for the policy's. start_operation: if given, the reservation is STARTED at once and bound to that operation.

The same id with the same digest, route and units gets the receipt that stands, replayed: look at state, since the hold may have ended meanwhile. With others it is a CONFLICT. A refusal stores nothing under the id, so the same id may be tried again.

Errors: LL101, LL102, LL103, LL104 for a bad argument; LL107 on overflow; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION reserve_capacity_batch IS
$$Admits many requests, those of a pair in their order and each pair locked once; one receipt per element (J2, D2, D3).

Parallel arrays of one length, 0 to 100000 elements; an optional array may be NULL as a whole or element by element. A refusal or conflict answers its own element and leaves the others alone. require_all makes one decision of them: all are admitted, or nothing is written, and those that would have been admitted are REFUSED require_all with the longest wait.

Errors, for the whole batch: those of reserve_capacity, naming the element; LL105 for arrays that do not match.$$;

COMMENT ON FUNCTION start_reservation IS
$$Moves RESERVED to STARTED and binds the operation, if the hold has not run out; run only what it accepts (D5).

subject, reservation_id, operation_id: 1 to 256 bytes. The receipt carries hard_limit, in units, and the execution deadline in expires_at. The same operation again gets the same answer; another one is a CONFLICT. No balance moves.

Errors: LL101, LL102; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION start_reservation_batch IS
$$Starts many reservations; one receipt per element, in their order (J2, D5).

Parallel arrays of one length, 0 to 100000 elements. Errors, for the whole batch: those of start_reservation, naming the element; LL105 for arrays that do not match.$$;

COMMENT ON FUNCTION settle_usage IS
$$Spends what an operation really used and gives the difference back, once (D6, D7, D8).

actual: units, 0 or more; NULL is an error, never zero. receipt_digest: of the executor's own receipt, kept and compared. source: executor, reconciler or operator, who vouches for the figure; an operator's is kept with its role in operator_actions.

The same operation, actual and receipt_digest again get the same receipt; others are a CONFLICT that shows what is stored. Less than the reported progress is REFUSED progress from the operator, and taken from the others. Above the reservation the excess takes what is available, and the rest is debt (SETTLED_WITH_DEBT), which stops admission. Debt above maximumOverdraft, or an actual above hardExecutionLimit, freezes the pair; it is booked all the same.

Errors: LL301 if the reservation was never started, and nothing is booked; LL101, LL102, LL103, LL104, LL106 for a bad argument; LL107 on overflow; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION settle_usage_batch IS
$$Settles many executions, each pair locked once; one receipt per element, in their order (J2, D6).

Parallel arrays of one length, 0 to 100000 elements; receipt_digests and sources may be NULL as a whole or element by element. An element that was never started is REFUSED not_started here, not an error. Errors, for the whole batch: those of settle_usage but LL301, naming the element; LL105 for arrays that do not match.$$;

COMMENT ON FUNCTION release_reservation IS
$$Gives all units of a hold back that was never started, once (D9).

After the start it is REFUSED already_started: who gives up on a call has not stopped it. Released again it gets the same receipt. Errors: LL101, LL102; LL107 on overflow; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION release_reservation_batch IS
$$Releases many holds, each pair locked once; one receipt per element, in their order (J2, D9).

Parallel arrays of one length, 0 to 100000 elements. Errors, for the whole batch: those of release_reservation, naming the element; LL105 for arrays that do not match.$$;

COMMENT ON FUNCTION report_usage_unknown IS
$$Says that nobody knows what an execution used: STARTED becomes USAGE_UNKNOWN, and its units stay reserved (D10).

Only settle_usage with the bound operation ends it. operation_id must be the bound one, else CONFLICT. Past the execution deadline maintain() says the same. Errors: LL101, LL102; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION claim_unknown_usage IS
$$Claims unknown usage for a reconciler, the oldest first, each item for one reconciler at a time; waits for nobody (D10).

batch_limit: 1 to 100000 items. lease: 1 second to 1 day, without months; when it ends, an item that is still unknown may be claimed again, so a crashed reconciler loses nothing. reconciler: 1 to 256 bytes, shown as claimed_by; NULL: the caller's role. No row means that there is nothing to claim.

No balance moves, and the claim gates nothing: ask the provider, then settle_usage with the operation and the source reconciler. A receipt of the executor that comes first settles as always, and the reconciler's is then a replay or a CONFLICT that shows it. Errors: LL101, LL102, LL106; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION report_progress IS
$$Records what an execution has used so far: the figure never falls, and no balance moves (D10).

units: in sum since the start, 0 or more; it may exceed what is reserved. A figure that is no higher than the stored one changes nothing and is replayed. operation_id must be the bound one, else CONFLICT. Taken from STARTED and USAGE_UNKNOWN alike; settle_usage with the source operator can't go below it. Errors: LL101, LL102, LL103; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION extend_reservation IS
$$Gives a reservation that has not run out more units, a later deadline, or both, decided like a new reserve (D13).

extension_id: 1 to 256 bytes, the idempotency key within the reservation. units: added to what is reserved, 0 or more, while its budget is the head. until: no later than the holdTtl, or once started the executionTtl, of its own generation from now; NULL, or an instant before the present deadline, leaves that as it is. The same extension again is replayed, whatever has become of the reservation; other units or another deadline under its id are a CONFLICT. A refusal stores nothing.

Errors: LL106 if there is nothing to extend; LL101, LL102, LL103 for a bad argument; LL107 on overflow; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION record_usage IS
$$Books usage that was never reserved, once per operation: what is available is spent, the rest is debt (D12).

operation_id: 1 to 256 bytes, unique within the subject. units: 0 or more. All of it is booked, on a frozen, indebted or draining pair as well; debt above maximumOverdraft, or units above hardExecutionLimit, freeze the pair. The same operation, route and units again are replayed; others are a CONFLICT that shows what is stored. An operation that is bound to a reservation is a CONFLICT: settle that. The receipt has no state, since there is no reservation.

Errors: LL101, LL102, LL103 for a bad argument; LL107 on overflow; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION record_usage_batch IS
$$Books many usages that were never reserved, each pair locked once; one receipt per element, in their order (J2, D12).

Parallel arrays of one length, 0 to 100000 elements. A conflict or a missing policy answers its own element. Errors, for the whole batch: those of record_usage, naming the element; LL105 for arrays that do not match.$$;

COMMENT ON FUNCTION import_usage IS
$$Opens a pair with what was already spent under another limiter, in the middle of a window or of a refill (B2).

units: 0 or more, what is missing from a full bucket, or the part of the quota that is used. The first budget opens at the cap and the units are spent there at once, under operation_id as record_usage does: what exceeds the cap is debt, above maximumOverdraft it freezes the pair, and hardExecutionLimit does not count. Import after the policy is active and before the first request: a pair that has a budget is REFUSED opened, and record_usage books what is missing. The same operation, route and units again are replayed.

Errors: LL101, LL102, LL103 for a bad argument; LL107 on overflow; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION import_usage_batch IS
$$Imports what many pairs have spent under another limiter; one receipt per element, in their order (J2, B2).

Parallel arrays of one length, 0 to 100000 elements. A refusal or conflict answers its own element; of several for one pair the first by operation id opens it. Errors, for the whole batch: those of import_usage, naming the element; LL105 for arrays that do not match.$$;

COMMENT ON FUNCTION get_reservation IS
$$Reads the receipt that is committed under an id, or UNKNOWN; writes nothing and locks nothing (D11).

UNKNOWN does not say that a call in flight will not store one: ask resolve_reservation for the final word. Errors: LL101, LL102.$$;

COMMENT ON FUNCTION resolve_reservation IS
$$Gives the final word after a lost reply: the receipt, or a fence that keeps the id from ever taking anything (D11).

It waits for a transaction that is using the id. If there is no reservation, the id becomes RELEASED with 0 units under the given digest, and a late original gets that receipt. Another digest than the stored one is a CONFLICT.

Errors: LL101, LL102, LL104; 25006 in a read-only transaction.$$;

-- ---- Pairs -------------------------------------------------------------------

COMMENT ON FUNCTION get_budget IS
$$Shows a pair as of now: refill and epochs that are due are counted in, nothing is written or locked (C1, C4).

All quantities are units. generation to deficit describe the head; debt and outstanding are sums over all budgets of the pair. admission is open, suspended (debt), frozen, draining or no_policy (retired). A pair that no call has met yet shows what its first one would find; without a policy there is no row. Errors: LL101, LL102.$$;

COMMENT ON FUNCTION repay_debt IS
$$Lets the refill that is due pay the debt of a pair, and stores it (E2, E3).

The next reserve does the same, so this is for those who do not want to wait for one. repaid_units and debt are units; repeated, it pays nothing twice. UNKNOWN: no call has met the pair yet. Errors: LL101, LL102; LL107 on overflow; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION grant_capacity IS
$$Mints units for a pair, once per grant id, and records who did it and why: for debt first, then a deficit, then available up to the cap (E3).

grant_id: 1 to 256 bytes, the idempotency key within the pair. units: 1 or more. reason: 1 to 256 bytes, kept in capacity_grants. granted_units is what found room; the rest is not granted, and a repeat does not try again. The same grant_id with other units is a CONFLICT. A frozen pair stays frozen. REFUSED no_policy: no policy covers the pair. Errors: LL101, LL102, LL103, LL106; LL107 on overflow; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION freeze IS
$$Stops admission for a pair until unfreeze, and records who did it and why; settlement goes on (D8).

reason: 1 to 256 bytes, kept in operator_actions and shown by get_budget. What is held can be started, settled and released. A pair that no call has met is opened for it. On a pair that is frozen it changes and records nothing. REFUSED no_policy: no policy covers the pair. Errors: LL101, LL102, LL106; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION unfreeze IS
$$Opens a frozen pair again, once its debt is zero, and records who did it and why (D8).

reason: 1 to 256 bytes, kept in operator_actions. With debt it is REFUSED debt. On a pair that is not frozen it changes and records nothing. UNKNOWN: no call has met the pair yet. Errors: LL101, LL102; 25006 in a read-only transaction.$$;

-- ---- Maintenance ---------------------------------------------------------------

COMMENT ON PROCEDURE maintain IS
$$Does all that is due, in bounded steps of one transaction each: holds expire, executions become unknown, debt is repaid, what is no longer kept is purged (J4, D10, D14, D15, E3).

batch_limit: rows or pairs of one step, 1 to 100000. time_limit: 0 or more; no step begins after it. Rows and pairs that somebody else has locked are left to the next run. CALL it outside a transaction block, from cron; the caller needs EXECUTE on claim_expiring, finish_expiring, expire_executions, repay_debtors, purge_reservations, purge_usage and purge_budgets, too. The ledger is right without it.

Returns holds claimed and expired, executions that became unknown, pairs that repaid and the units they repaid, reservations and usages that were purged, and closed budgets that were. Errors: LL106; 2D000 inside a transaction block; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION expire_reservations IS
$$Claims holds that have run out and gives their units back, in one transaction; never waits for a lock (D14).

batch_limit: 1 to 100000 holds. Call it until claimed and expired are 0. Errors: LL101, LL106; LL107 on overflow; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION claim_expiring IS
$$First step of expiry: RESERVED rows that have run out become EXPIRING; locks no budget and waits for nobody (D14).

batch_limit: 1 to 100000 rows. Errors: LL101, LL106; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION finish_expiring IS
$$Second step of expiry: EXPIRING rows become EXPIRED and their units come back, pair by pair; waits for nobody (D14).

batch_limit: 1 to 100000 rows that are looked at for their pairs, and rows of one pair. Errors: LL101, LL106; LL107 on overflow; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION expire_executions IS
$$Executions past their deadline become USAGE_UNKNOWN; their units stay reserved; waits for nobody (D10).

batch_limit: 1 to 100000 rows. Errors: LL101, LL106; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION repay_debtors IS
$$Lets the refill that is due pay the debts of a bounded number of pairs, in key order after the given one; waits for nobody (E3).

batch_limit: 1 to 100000 pairs. Begin after '' and '', go on after last_subject and last_route, end when they are NULL. Errors: LL101, LL106; LL107 on overflow; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION purge_reservations IS
$$Deletes reservations that ended longer ago than their policy keeps them, a bounded number in the order of generations and of time; their budgets keep the sum (D15).

batch_limit: 1 to 100000 rows, and as many generations. Begin at 0 and NULL, go on at next_generation and next_instant, end when they are NULL. Operations and extensions go with their reservation. What is open is never purged, and what somebody uses is left to the next run. Fences are kept as long as the generations that are not retired ask for at most. purged_units: what the rows had spent, now in purged_spent of their budgets. Errors: LL101, LL106; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION purge_usage IS
$$Deletes records of unreserved usage that are older than their policy keeps what has ended, a bounded number as purge_reservations does (D15, D12).

batch_limit: 1 to 100000 rows, and as many generations. Begin at 0 and NULL, go on at next_generation and next_instant, end when they are NULL. purged_units: what was recorded, now in purged_spent of the budgets. Errors: LL101, LL106; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION purge_budgets IS
$$Deletes closed budgets that hold and owe nothing and that no stored row tells of, the oldest of their pairs first; each pair keeps the one that its head follows (D15, B5).

batch_limit: 1 to 100000 budgets, and as many generations. Begin at 0 and NULL, go on at next_generation and next_instant, end when they are NULL. A budget goes once nothing has changed it for the retention of its policy. purged_units: what they had spent. Errors: LL101, LL106; 25006 in a read-only transaction.$$;

-- ---- Gateways -----------------------------------------------------------------

COMMENT ON FUNCTION open_gateway IS
$$Makes this database a gateway under the id by which the ledger knows it, and returns its boot epoch (G4, G5).

gateway: 1 to 256 bytes. Repeated, it changes nothing but begins a boot if the server was started since; announce the boot epoch to the ledger after each start. Errors: LL101, LL102; LL404 if the database is another gateway already; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION renew_boot IS
$$Begins a new boot: shards of the one before are sealed, what they held becomes USAGE_UNKNOWN, all in one transaction (G5).

reason: 1 to 256 bytes, kept in operator_actions. The first call after a start of the server does the same by itself. Announce the new boot epoch to the ledger, which issues shards for no other. Errors: LL101, LL106; LL404 if the database is no gateway; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION accept_emergency_shard IS
$$Takes in a shard that the ledger signed for this gateway and its present boot, with a fence above all before (G4).

envelope: as sign_emergency_shard returned it. REFUSED recovery: set up the witness, or acknowledge. REFUSED envelope says in detail why it does not open, in a word of docs/envelope.md, and the member. The same shard again is a replay, whatever has become of it; another one under its id is a CONFLICT. Errors: LL101; LL403 if the witness file can't be written; LL404 if the database is no gateway; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION shard_reserve IS
$$Admits one request against the shards of this gateway and holds its units, or refuses it, with no ledger in reach (G4, D2).

Arguments and answers are those of reserve_capacity; region, estimator and priority were decided by the policy that gave the shard. Of the pair's open shards, in the order of their fences, the first that has enough gives the units; one that was used above what it had stops the pair. generation, epoch, hard_limit, available and cap of the receipt are the shard's. The same id again gets the receipt that stands, also when its shard is sealed, has run out or is of another boot.

Errors: LL101, LL102, LL103, LL104 for a bad argument; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION shard_reserve_batch IS
$$Admits many requests against the shards of this gateway, each shard locked once; one receipt per element (J2, G4).

Parallel arrays of one length, 0 to 100000 elements; an optional array may be NULL as a whole or element by element. Errors, for the whole batch: those of shard_reserve, naming the element; LL105 for arrays that do not match.$$;

COMMENT ON FUNCTION shard_start IS
$$Moves RESERVED to STARTED and binds the operation, on a gateway; run only what it accepts (D5, G4).

As start_reservation. What a boot made unknown before its start is REFUSED boot_epoch. An ACCEPTED replay says in state what has become of the execution since. Errors: LL101, LL102; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION shard_settle IS
$$Spends what an operation really used against its shard and gives the difference back, once (D6, D7, G1).

As settle_usage, whatever has become of the shard: what comes back to a sealed one is retired. Above the reservation the excess takes what the shard has available; the rest stands beside the equation (SETTLED_WITH_DEBT), is reported, and becomes debt of the pair in the ledger; which budget bears it is not known here, so excess_generation and excess_epoch are NULL. An item that a boot made unknown before its start is bound to the operation that settles it.

Errors: LL301 if the reservation was never started, and nothing is booked; LL101, LL102, LL103, LL104, LL106 for a bad argument; LL107 on overflow; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION shard_settle_batch IS
$$Settles many executions of this gateway, each shard locked once; one receipt per element, in their order (J2, D6).

Parallel arrays of one length, 0 to 100000 elements; receipt_digests and sources may be NULL as a whole or element by element. An element that was never started is REFUSED not_started here, not an error. Errors, for the whole batch: those of shard_settle but LL301, naming the element; LL105 for arrays that do not match; 40001 if another call bound one of its operations meanwhile.$$;

COMMENT ON FUNCTION shard_release IS
$$Gives all units of a hold that was never started back to its shard, once (D9, G6).

As release_reservation; to a sealed shard they come back for good. Errors: LL101, LL102; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION shard_report_unknown IS
$$Says that nobody knows what an execution of this gateway used: STARTED becomes USAGE_UNKNOWN (D10, G4).

As report_usage_unknown. Only shard_settle ends it. Errors: LL101, LL102; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION seal_shard IS
$$Ends a shard of this gateway for good: what is available is retired, and nothing more is reserved from it (G6).

What it holds goes on, and is retired when it comes back. Sealed before, it changes nothing, and says by whom. Errors: LL101, LL102; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION cut_shard_report IS
$$Writes the next numbered report of a shard: its figures, and up to 1000 receipts of what ended since the last one (G6, G8).

With nothing new since the last report it is a replay of that one. more: call again, for the receipts that are left. Commit, then sign it with report_shard. Errors: LL101, LL102; LL403 if the witness file can't be written; 25006 in a read-only transaction.$$;

COMMENT ON FUNCTION report_shard IS
$$Signs a report that was cut and committed; the same number gives the same bytes, as often as it is asked for (G8, G3).

sequence: NULL for the newest that is committed, so in the transaction that cuts a report the one before it. REFUSED not_committed: it was cut by this very transaction, or there is none of that number. Reads limitledger.signing_key_file. Errors: LL101, LL102; LL401 if the key file can't be used; LL403 if the witness file can't be written.$$;

COMMENT ON FUNCTION sweep_shards IS
$$Ends what time ends on a gateway, in one bounded batch: holds, executions past their deadline, shards that have run out (D14, D10, G6).

batch_limit: 1 to 100000 reservations, and as many shards. Waits for nobody; what is locked is left to the next run. After a start of the server it begins the boot first. Errors: LL101, LL106; 42501 for a login that is bound to subjects; 25006 in a read-only transaction.$$;

COMMENT ON VIEW local_shards IS
'Every shard that this gateway has accepted, its figures and how it ended (G1).';

COMMENT ON VIEW shard_reservations IS
'Every reservation against a shard of this gateway, and the report that tells of its end (D1, G6).';

COMMENT ON VIEW local_reports IS
'Every report that this gateway has cut, with the figures and the number of receipts in it (G6).';

-- ---- The protocol as tables ------------------------------------------------------

COMMENT ON FUNCTION transitions IS
$$Prints the state machine: what each event does in each state (D1).

next_state_with_debt is set where a settlement can end in two ways. outcome ACCEPTED without a change of state is a replay.$$;

COMMENT ON FUNCTION outcomes IS
$$Prints the closed list of answers: the outcome, the rule that said no and what a refused caller waits for (D3).

retry_kind: refill, release, operator or never; NULL where waiting changes nothing.$$;

COMMENT ON FUNCTION sqlstates IS
$$Prints the errors of the ledger, SQLSTATE class LL: misuse and broken invariants, never a refusal (D3).$$;

-- ---- The ledger for people ---------------------------------------------------------

COMMENT ON FUNCTION verify_conservation IS
$$Proves the rules over the whole database in one snapshot: a row for each discrepancy, none when all is well (C1, C2, B5).

rule names the rule that does not hold, detail the figures. Runs with the owner's rights, takes no lock that a call would wait for, and reads every budget and reservation once.$$;

COMMENT ON FUNCTION verify_subjects IS
$$Proves the same rules for some subjects: those behind the first argument, up to the second (C1, C2, B5).

after_subject: NULL, the default, begins with the first subject. last_subject: NULL ends with the last one. Ranges that meet prove the whole, in several snapshots: so a large ledger is audited without one that lasts. Runs with the owner's rights, takes no lock that a call would wait for, and reads the budgets and reservations of these subjects once.$$;

COMMENT ON VIEW policies IS
'Every published generation, with its stage (published, shadow, canary, active, draining, retired), its switch instant, that of its retirement and its document as published (B1, B4).';

COMMENT ON VIEW rollout_status IS
'Each generation: how far it is, what is left to drain, and what it would have decided in shadow (B4, B6, B7).';

COMMENT ON VIEW rollout_totals IS
'For monitors, what rollout_status says of each generation, with no name of a subject or a route; the newest first (B4, B6, B7).';

COMMENT ON VIEW budgets IS
'Every budget, as stored: the head of each pair and those that it closed, each with the equation opening + minted + overdraft_issued = available + reserved + spent + retired_for_emergency + overdraft_repaid, in units (C1); refill that is due is shown by get_budget().';

COMMENT ON VIEW reservations IS
'Every reservation, as stored, one limitReservation.v1 per row (D1); route, generation and epoch are NULL in a fence (D11).';

COMMENT ON VIEW unreserved_usage IS
'Usage that was never reserved, as record_usage booked it, with the budget that bore it (D12).';

COMMENT ON VIEW capacity_grants IS
'Units that operators granted to a pair, when and why: asked for and granted (E3).';

COMMENT ON VIEW operator_actions IS
'What operators did, when and why: to a pair or a policy, and figures that they attested (D8, D10).';
