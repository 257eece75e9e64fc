/*
 * emergency.c
 *	  Shards on the side of the ledger.  See emergency.h.
 *
 *	  issue:      lock the gateway, for its fence; lock the head, look the shard
 *	              id up, decide, insert the shard, write the budget
 *	  reconcile:  read the shard, to learn its pair; lock the head, then the
 *	              shard; look the number up; decide; write receipts, report,
 *	              shard and budget
 *
 * Lost reply: the same shard id, and the same report, get the same answer.
 * Twice at once: the second waits for the head, and finds the first one's rows.
 * Crash before the commit: nothing has left or come back; nothing was signed
 * either, since only a committed row is (G8).  New epoch or generation
 * meanwhile: what comes back is minted into the head of now (G6).
 */
#include "postgres.h"

#include "emergency.h"

#include "access/xact.h"
#include "errors.h"
#include "miscadmin.h"
#include "store/clock.h"
#include "store/durability.h"
#include "store/recovery.h"
#include "utils/builtins.h"

static void
refuse(LLEmergencyAnswer *answer, LLDimension dimension)
{
	answer->verdict = ll_say(ll_dimension_info(dimension)->outcome, dimension);
}

static Datum
actor(void)
{
	return CStringGetTextDatum(GetUserNameFromId(GetUserId(), false));
}

/* look reads a shard by its id. */
static bool
look(LLEmergencyRow *shard, Datum subject, Datum id)
{
	Snapshot	snapshot = ll_snapshot_take();
	bool		found;

	memset(shard, 0, sizeof(*shard));
	found = ll_emergency_look(shard, subject, id, snapshot);
	ll_snapshot_drop(snapshot);
	return found;
}

/* ---- issue -------------------------------------------------------------- */

static bool
same_optional(Datum a, Datum b)
{
	return (a == 0) == (b == 0) && (a == 0 || ll_bytes_equal(a, b));
}

/* same_request tells whether a shard is what the request asks for. */
static bool
same_request(const LLEmergencyRow *shard, const LLIssueRequest *request)
{
	return ll_bytes_equal(shard->route, request->route) &&
		same_optional(shard->gateway, request->gateway) &&
		shard->state.last.allocated == request->units;
}

/* terms tells the decision what the pair may have in shards. */
static LLIssue
terms(const LLIssueRequest *request, const LLPairWork *work)
{
	const LLPolicyRow *ruling = work->reigns.ruling;
	LLIssue		issue = {0};

	issue.units = request->units;
	issue.draining = ruling->draining;
	issue.route_frozen = work->reigns.frozen_reason != 0;
	if (request->gateway == 0)
		issue.largest_share = LL_UNITS_MAX; /* only what is available bounds it (B8) */
	else if (ruling->active_at != LL_NO_TIME)
	{
		LLUnits		cap = ruling->policy.cap;

		issue.largest_share = cap / 100 * ruling->emergency_share +
			cap % 100 * ruling->emergency_share / 100;
		issue.outstanding = ll_emergency_outstanding(request->subject, request->route);
	}
	return issue;
}

/*
 * may_be_copy tells whether the ledger may be one: then nothing goes out or comes
 * back (G7).  The old limiter's share is not signed: a ledger without a witness
 * may give it, and take it back.
 */
static bool
may_be_copy(bool legacy)
{
	LLRecovery	recovery = ll_recovery_look();

	return recovery != LL_RECOVERY_NORMAL && !(recovery == LL_RECOVERY_UNSET && legacy);
}

/* unhealthy names what keeps the server itself from issuing (G2, G7). */
static LLDimension
unhealthy(const LLIssueRequest *request)
{
	if (may_be_copy(request->gateway == 0))
		return LL_DIM_RECOVERY;
	if (request->gateway != 0 && !ll_durability_standby())
		return LL_DIM_STANDBY;
	return LL_DIM_NONE;
}

/* fill makes the shard's row out of what was decided. */
static void
fill(LLEmergencyRow *shard, const LLIssueRequest *request, const LLPairWork *work)
{
	const LLBudget *head = &work->head.pair.head;

	memset(shard, 0, sizeof(*shard));
	shard->subject = request->subject;
	shard->id = request->shard_id;
	shard->route = request->route;
	shard->generation = head->generation;
	shard->epoch = head->epoch;
	shard->gateway = request->gateway;
	shard->issued_at = work->head.pair.seen_at;
	shard->expires_at = LL_NO_TIME;
	shard->issued_by = U64FromFullTransactionId(GetTopFullTransactionId());
	shard->actor = actor();
	shard->written_off_at = LL_NO_TIME;
	shard->settled_at = LL_NO_TIME;
	shard->state.line = head->line;
	shard->state.legacy = request->gateway == 0;
	shard->state.last.allocated = request->units;
	shard->state.last.available = request->units;
}

/* bind_gateway gives the shard its gateway's boot and next fence; false: it has none. */
static bool
bind_gateway(LLEmergencyRow *shard, const LLPairWork *work, LLGatewayRow *gateway)
{
	if (!gateway->booted)
		return false;
	shard->boot_epoch = gateway->boot_epoch;
	shard->fence = ++gateway->last_fence;
	shard->expires_at = shard->issued_at + work->reigns.ruling->shard_ttl;
	ll_gateway_fence(gateway);
	return true;
}

/* issue decides on a pair that is present, and writes the shard. */
static void
issue(const LLIssueRequest *request, LLGatewayRow *gateway, LLEmergencyAnswer *answer)
{
	LLPairWork *work = &answer->work;
	LLIssue		asked = terms(request, work);
	LLPair		before = work->head.pair;
	LLDimension dimension;

	answer->verdict = ll_issue_shard(&work->head.pair, ll_pair_policy(work), &asked);
	if (answer->verdict.outcome != LL_ACCEPTED)
		return;
	fill(&answer->shard, request, work);
	dimension = unhealthy(request);
	if (dimension == LL_DIM_NONE && request->gateway != 0 && !bind_gateway(&answer->shard, work, gateway))
		dimension = LL_DIM_GATEWAY;
	if (dimension != LL_DIM_NONE)
	{
		work->head.pair = before;
		refuse(answer, dimension);
		return;
	}
	ll_emergency_insert(&answer->shard);
	if (request->reason != 0)
		ll_action_insert(answer->shard.issued_at, "grant_legacy_share", request->subject,
						 request->route, request->reason);
	answer->found = true;
	work->changed = true;
}

/*
 * ll_issue_emergency moves units of a pair into a shard of one gateway, or into
 * the old limiter's share (G2, B8).  Who waits for a gateway keeps no pair from
 * anybody meanwhile (F3).
 */
void
ll_issue_emergency(const LLIssueRequest *request, LLEmergencyAnswer *answer)
{
	LLPairWork *work = &answer->work;
	LLGatewayRow gateway = {0};

	if (request->gateway != 0)
		(void) ll_gateway_lock(&gateway, request->gateway);
	ll_pair_init(work, request->subject, request->route);
	if (!ll_pair_open(work))
	{
		refuse(answer, LL_DIM_NO_POLICY);
		return;
	}
	if (!look(&answer->shard, request->subject, request->shard_id))
		issue(request, &gateway, answer);
	else if (same_request(&answer->shard, request))
	{
		answer->found = true;
		answer->verdict = ll_replayed();
	}
	else
		refuse(answer, LL_DIM_SHARD);
	ll_pair_write(work);
}

/* ---- reconcile ---------------------------------------------------------- */

/* lock_shard locks the pair of a shard, then the shard; false: there is none. */
static bool
lock_shard(Datum subject, Datum id, LLEmergencyAnswer *answer)
{
	LLPairWork *work = &answer->work;
	Snapshot	snapshot;
	bool		locked;

	ll_pair_init(work, subject, ll_copy_varlena(answer->shard.route));
	if (ll_pair_find_and_lock(work, LockWaitBlock) != LL_LOCK_TAKEN)
		ll_broken("G2", "the pair of a shard has no head");
	ll_pair_present(work);
	snapshot = ll_snapshot_take();
	locked = ll_emergency_look(&answer->shard, subject, id, snapshot) &&
		ll_emergency_lock(&answer->shard, snapshot);
	ll_snapshot_drop(snapshot);
	return locked;
}

/* wrong_origin names what a report has that its shard has not. */
static LLDimension
wrong_origin(const LLEmergencyRow *shard, const LLReportRequest *request)
{
	if (!ll_bytes_equal(shard->gateway, request->gateway))
		return LL_DIM_GATEWAY;
	if (memcmp(&shard->boot_epoch, &request->boot_epoch, UUID_LEN) != 0)
		return LL_DIM_BOOT_EPOCH;
	if (shard->fence != request->fence)
		return LL_DIM_FENCE;
	return LL_DIM_NONE;
}

/* Some receipts: what they say was used, and whether one of them broke its hard limit. */
typedef struct Receipted
{
	LLUnits		units;
	bool		breach;
	bool		repeated;		/* one of them was booked before */
} Receipted;

static Receipted
add_up(const LLReportRequest *request, const LLEmergencyRow *shard)
{
	const LLPolicy *own = &ll_policy_get(shard->generation)->policy;
	Receipted	sum = {0};
	LLShardReceipt known;

	for (int i = 0; i < request->receipt_count; i++)
	{
		const LLShardReceipt *receipt = &request->receipts[i];

		CHECK_FOR_INTERRUPTS();
		sum.repeated = sum.repeated || ll_receipt_look(&known, shard, receipt->reservation);
		if (receipt->actual_units < 0)
			continue;
		if (receipt->actual_units > LL_UNITS_MAX - sum.units)
			ll_overflow("the sum of the receipts");
		sum.units += receipt->actual_units;
		sum.breach = sum.breach || receipt->actual_units > own->hard_limit;
	}
	return sum;
}

/* book decides on the next report, and writes what it did. */
static void
book(const LLReportRequest *request, LLEmergencyAnswer *answer)
{
	LLPairWork *work = &answer->work;
	LLEmergencyRow *shard = &answer->shard;
	Receipted	sum = add_up(request, shard);

	if (sum.repeated)
	{
		refuse(answer, LL_DIM_RECEIPTS);
		return;
	}
	answer->verdict = ll_reconcile_shard(&work->head.pair, ll_pair_policy(work), &shard->state,
										 &request->figures, sum.units, sum.breach,
										 &answer->report.done);
	if (answer->verdict.overflow)
		ll_overflow("the pair's budget");
	if (answer->verdict.outcome != LL_ACCEPTED)
		return;
	answer->report.sequence = request->sequence;
	answer->report.digest = request->digest;
	shard->sequence = request->sequence;
	if (shard->settled_at == LL_NO_TIME && ll_shard_settled(&shard->state))
		shard->settled_at = work->head.pair.seen_at;
	for (int i = 0; i < request->receipt_count; i++)
		ll_receipt_insert(&request->receipts[i], shard);
	ll_report_insert(&answer->report, shard, &work->head);
	ll_emergency_update(shard);
	ll_shadow_spend(work, answer->report.done.excess);
	work->breach = sum.breach ? "an execution used more than its hard limit"
		: "the debt exceeded the maximum overdraft";
	work->changed = true;
}

/*
 * ll_reconcile_emergency takes in a report that was opened (G6): the one after
 * the last, or one that was taken in before.
 */
void
ll_reconcile_emergency(const LLReportRequest *request, LLEmergencyAnswer *answer)
{
	LLDimension dimension;

	if (!look(&answer->shard, request->subject, request->shard_id) ||
		answer->shard.gateway == 0)
	{
		refuse(answer, LL_DIM_EMERGENCY_SHARD);
		return;
	}
	dimension = wrong_origin(&answer->shard, request);
	if (dimension != LL_DIM_NONE)
	{
		refuse(answer, dimension);
		return;
	}
	if (!lock_shard(request->subject, request->shard_id, answer))
		ll_broken("C3", "a shard was deleted");
	answer->found = true;
	if (request->sequence <= answer->shard.sequence)
	{
		if (!ll_report_look(&answer->report, &answer->shard, request->sequence))
			ll_broken("G6", "a report that was reconciled has no row");
		if (ll_bytes_equal(answer->report.digest, request->digest))
			answer->verdict = ll_replayed();
		else
			refuse(answer, LL_DIM_REPORT);
	}
	else if (may_be_copy(false))
		refuse(answer, LL_DIM_RECOVERY);
	else if (request->sequence != answer->shard.sequence + 1)
		refuse(answer, LL_DIM_SEQUENCE);
	else
		book(request, answer);
	ll_pair_write(&answer->work);
}

/* ---- the old limiter (B8) ----------------------------------------------- */

/* booked_elsewhere tells whether another share has a receipt of the operation. */
static bool
booked_elsewhere(const List *others, const LLEmergencyRow *shard, const LLShardReceipt *receipt)
{
	ListCell   *cell;

	foreach(cell, others)
	{
		LLEmergencyRow other = {.subject = shard->subject, .id = PointerGetDatum(lfirst(cell))};
		LLShardReceipt known;

		if (ll_receipt_look(&known, &other, receipt->reservation))
			return true;
	}
	return false;
}

/* take_out removes receipts that were booked before; or says why one can't be booked. */
static LLDimension
take_out(LLReportRequest *request, const LLEmergencyRow *shard)
{
	List	   *others = ll_legacy_others(shard);
	int			left = 0;

	for (int i = 0; i < request->receipt_count; i++)
	{
		const LLShardReceipt *receipt = &request->receipts[i];
		LLShardReceipt known;

		CHECK_FOR_INTERRUPTS();
		if (ll_receipt_look(&known, shard, receipt->reservation))
		{
			if (known.reserved_units != receipt->reserved_units ||
				known.actual_units != receipt->actual_units)
				return LL_DIM_FIGURES;
		}
		else if (booked_elsewhere(others, shard, receipt))
			return LL_DIM_OPERATION_ELSEWHERE;
		else
			request->receipts[left++] = *receipt;
	}
	request->receipt_count = left;
	return LL_DIM_NONE;
}

/* count_up adds the receipts to the last figures: each takes what it had reserved, and no more is there. */
static LLShard
count_up(const LLReportRequest *request, const LLShard *last)
{
	LLShard		figures = *last;

	for (int i = 0; i < request->receipt_count; i++)
	{
		const LLShardReceipt *receipt = &request->receipts[i];
		LLUnits		reserved = Min(receipt->reserved_units, figures.available);
		LLUnits		within = Min(receipt->actual_units, reserved);

		if (receipt->actual_units - within > LL_UNITS_MAX - figures.excess)
			ll_overflow("the excess");
		figures.available -= reserved;
		figures.spent += within;
		figures.retired += reserved - within;
		figures.excess += receipt->actual_units - within;
	}
	return figures;
}

/*
 * ll_reconcile_legacy books receipts of the old limiter, each once.  What it had
 * reserved and not used comes back; what no receipt names stays retired.
 */
void
ll_reconcile_legacy(const LLReportRequest *request, LLEmergencyAnswer *answer)
{
	LLReportRequest report = *request;
	LLDimension dimension;

	if (!look(&answer->shard, request->subject, request->shard_id) ||
		answer->shard.gateway != 0)
	{
		refuse(answer, LL_DIM_EMERGENCY_SHARD);
		return;
	}
	if (!lock_shard(request->subject, request->shard_id, answer))
		ll_broken("C3", "a shard was deleted");
	answer->found = true;
	dimension = take_out(&report, &answer->shard);
	if (dimension != LL_DIM_NONE)
		refuse(answer, dimension);
	else if (report.receipt_count == 0)
		answer->verdict = ll_replayed();
	else if (may_be_copy(true))
		refuse(answer, LL_DIM_RECOVERY);
	else
	{
		report.sequence = answer->shard.sequence + 1;
		report.figures = count_up(&report, &answer->shard.state.last);
		book(&report, answer);
	}
	ll_pair_write(&answer->work);
}

/* ---- write-off ---------------------------------------------------------- */

/*
 * ll_write_off_emergency gives a shard up: its units stay retired.  What was
 * used above them is still booked if a report comes after all (G6).
 */
void
ll_write_off_emergency(Datum subject, Datum shard_id, Datum reason, LLEmergencyAnswer *answer)
{
	LLEmergencyRow *shard = &answer->shard;

	if (!look(shard, subject, shard_id))
	{
		refuse(answer, LL_DIM_EMERGENCY_SHARD);
		return;
	}
	if (!lock_shard(subject, shard_id, answer))
		ll_broken("C3", "a shard was deleted");
	answer->found = true;
	answer->verdict = ll_say(LL_ACCEPTED, LL_DIM_NONE);
	answer->verdict.replayed = shard->settled_at != LL_NO_TIME;
	if (!answer->verdict.replayed)
	{
		shard->written_off_at = shard->settled_at = answer->work.head.pair.seen_at;
		shard->written_off_reason = reason;
		shard->state.written_off = true;
		ll_emergency_update(shard);
		ll_action_insert(shard->written_off_at, "write_off_shard", subject,
						 answer->work.head.route, reason);
	}
	ll_pair_write(&answer->work);
}
