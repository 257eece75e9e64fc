/*
 * stored.c
 *	  Rows against rows: what must hold of the tables whatever was called.
 */
#include "auditor.h"

typedef __int128 Wide;

#define LL(x)	((long long) (x))

/* whose finds the interleaving that a subject belongs to. */
static const Interleaving *
whose(const History *h, int subject)
{
	for (int i = 0; i < h->interleavings; i++)
		if (h->interleaving[i].subject == subject)
			return &h->interleaving[i];
	return NULL;
}

/* A number is given again if its publish was rolled back: the last one told of counts. */
static const Policy *
policy_of(const History *h, const BudgetRow *b)
{
	for (int i = h->policies - 1; i >= 0; i--)
		if (h->policy[i].generation == b->generation && h->policy[i].route == b->route)
			return &h->policy[i];
	return NULL;
}

/* untold: a policy may be there whose publish had no answer. */
static bool
untold(const Interleaving *in)
{
	for (int i = 0; in != NULL && i < in->calls; i++)
		if (in->call[i].function == F_PUBLISH && in->call[i].end != END_DONE)
			return true;
	return false;
}

static bool
holds(ReservationState s)
{
	return s == RESERVED || s == EXPIRING || s == STARTED || s == USAGE_UNKNOWN;
}

/* check_budget: C1, C2 and C4 of one budget, from the rows that tell of it. */
static void
check_budget(const History *h, const Tables *t, const BudgetRow *b)
{
	const Interleaving *in = whose(h, b->subject);
	const Policy *p = policy_of(h, b);
	const char *whom = text_of(b->subject);
	Wide		came = (Wide) b->opening + b->minted + b->issued;
	Wide		went = (Wide) b->available + b->reserved + b->spent + b->retired + b->repaid;
	Wide		reserved = 0;
	Wide		spent = b->purged;
	Wide		retired = 0;

	if (came != went)
		found(CHECK_equation, in, "%s, generation %lld: %lld came, %lld went", whom,
			  LL(b->generation), LL(came), LL(went));
	if (b->opening < 0 || b->minted < 0 || b->issued < 0 || b->available < 0 || b->reserved < 0 ||
		b->spent < 0 || b->retired < 0 || b->repaid < 0 || b->burned < 0 || b->deficit < 0 ||
		b->repaid > b->issued)
		found(CHECK_sign, in, "%s, generation %lld: a figure is negative, or more repaid than issued",
			  whom, LL(b->generation));
	for (int i = 0; i < t->reservations; i++)
	{
		const ReservationRow *r = &t->reservation[i];
		bool		own = r->generation == b->generation && r->epoch == b->epoch;

		if (r->subject != b->subject || r->route != b->route)
			continue;
		if (own && holds(r->state))
			reserved += r->reserved;
		if (own && r->actual >= 0)
			spent += r->actual < r->reserved ? r->actual : r->reserved;
		if (r->excess > 0 && r->excess_generation == b->generation && r->excess_epoch == b->epoch)
			spent += r->excess;
	}
	for (int i = 0; i < t->operations; i++)
	{
		const OperationRow *o = &t->operation[i];

		if (o->id == 0 && o->subject == b->subject && o->route == b->route &&
			o->generation == b->generation && o->epoch == b->epoch)
			spent += o->units;
	}
	for (int i = 0; i < t->reports; i++)
	{
		const ReportRow *r = &t->report[i];

		if (r->subject == b->subject && r->route == b->route && r->generation == b->generation &&
			r->epoch == b->epoch)
			spent += r->excess;
	}
	for (int i = 0; i < t->shards; i++)
	{
		const ShardRow *s = &t->shard[i];

		if (s->subject == b->subject && s->route == b->route && s->generation == b->generation &&
			s->epoch == b->epoch)
			retired += s->allocated;
	}
	if (reserved != b->reserved)
		found(CHECK_reserved, in, "%s: reserved is %lld, its reservations hold %lld", whom,
			  LL(b->reserved), LL(reserved));
	if (spent > b->spent)		/* used, and in no balance */
		found(CHECK_overdraft, in, "%s: spent is %lld, %lld was used", whom, LL(b->spent), LL(spent));
	else if (spent != b->spent)
		found(CHECK_spent, in, "%s: spent is %lld, its settlements say %lld", whom, LL(b->spent),
			  LL(spent));
	if (retired != b->retired)
		found(CHECK_shard_retired, in, "%s: retired is %lld, its shards were given %lld", whom,
			  LL(b->retired), LL(retired));
	if (p == NULL && untold(in))
		return;
	if (p == NULL)
		found(CHECK_orphan, in, "%s: generation %lld was never published", whom, LL(b->generation));
	else if (b->head && b->available > p->cap)
		found(CHECK_cap, in, "%s: available is %lld, the cap %lld", whom, LL(b->available), LL(p->cap));
}

/* check_carry: what a budget opened with (B5). */
static void
check_carry(const History *h, const BudgetRow *b, const BudgetRow *before)
{
	const Interleaving *in = whose(h, b->subject);
	const Policy *p = policy_of(h, b);
	const Policy *q = policy_of(h, before);
	Wide		most;

	if (b->follows_generation != before->generation || b->follows_epoch != before->epoch ||
		b->opened_at != before->closed_at)
	{
		found(CHECK_carry, in, "%s: a budget of generation %lld does not follow the one before it",
			  text_of(b->subject), LL(b->generation));
		return;
	}
	if (p == NULL || q == NULL)
		return;
	if (b->line != before->line)
		most = p->kind == WINDOW && b->line == before->line + 1 ? p->cap : -1;
	else
	{
		most = before->closing;
		if (b->whole)
			most += (Wide) p->cap - q->cap - before->deficit;
		most = most < 0 ? 0 : most > p->cap ? p->cap : most;
	}
	if (b->carried != most || b->opening > b->carried)
		found(CHECK_carry, in, "%s: opened with %lld of %lld carried, and %lld was left",
			  text_of(b->subject), LL(b->opening), LL(b->carried), LL(most));
}

/* check_pair looks at the budgets of one pair, the head last. */
static void
check_pair(const History *h, const BudgetRow *first, const BudgetRow *head)
{
	const Interleaving *in = whose(h, head->subject);
	Wide		debt = 0;
	Wide		reserved = 0;

	if (!head->head)
	{
		found(CHECK_orphan, in, "%s: closed budgets without a head", text_of(head->subject));
		return;
	}
	for (const BudgetRow *b = first; b < head; b++)
	{
		debt += (Wide) b->issued - b->repaid;
		reserved += b->reserved;
		check_carry(h, b + 1, b);
	}
	if (first->follows_generation >= 0 && !first->follows_purged)
		found(CHECK_carry, in, "%s: the budget that the first one follows is missing",
			  text_of(head->subject));
	if (debt != head->older_debt || reserved != head->older_reserved)
		found(CHECK_older, in, "%s: the head counts %lld owed and %lld reserved in closed budgets, they have %lld and %lld",
			  text_of(head->subject), LL(head->older_debt), LL(head->older_reserved), LL(debt),
			  LL(reserved));
	debt += (Wide) head->issued - head->repaid;
	if (debt > 0 && head->available > 0)
		found(CHECK_suspended, in, "%s: %lld available, and %lld owed", text_of(head->subject),
			  LL(head->available), LL(debt));
}

static bool
budget_exists(const Tables *t, int subject, int route, int64_t generation, int64_t epoch)
{
	for (int i = 0; i < t->budgets; i++)
		if (t->budget[i].subject == subject && t->budget[i].route == route &&
			t->budget[i].generation == generation && t->budget[i].epoch == epoch)
			return true;
	return false;
}

/* check_reservation: D5 and D7 of one row. */
static void
check_reservation(const History *h, const Tables *t, const ReservationRow *r)
{
	const Interleaving *in = whose(h, r->subject);
	const char *id = text_of(r->id);
	const OperationRow *o;
	int64_t		excess = r->actual > r->reserved ? r->actual - r->reserved : 0;

	if (r->route != 0 && !budget_exists(t, r->subject, r->route, r->generation, r->epoch))
		found(CHECK_orphan, in, "%s/%s: its budget does not exist", text_of(r->subject), id);
	if (r->operation != 0)
	{
		o = stored_operation(t, r->subject, r->operation);
		if (o == NULL || o->id != r->id)
			found(CHECK_binding, in, "%s/%s: its operation %s is bound to %s", text_of(r->subject), id,
				  text_of(r->operation), o == NULL ? "nothing" : text_of(o->id));
	}
	if (r->excess != excess)
		found(CHECK_excess, in, "%s/%s: %lld used of %lld reserved, and an excess of %lld",
			  text_of(r->subject), id, LL(r->actual), LL(r->reserved), LL(r->excess));
	else if (r->state == SETTLED_WITH_DEBT)
	{
		bool		issued = false;

		for (int i = 0; i < t->budgets; i++)
			issued = issued || (t->budget[i].subject == r->subject && t->budget[i].route == r->route &&
								t->budget[i].generation == r->excess_generation &&
								t->budget[i].epoch == r->excess_epoch && t->budget[i].issued > 0);
		if (!issued)
			found(CHECK_excess, in, "%s/%s: settled with debt, and none was issued",
				  text_of(r->subject), id);
	}
	if (r->route != 0 && r->excess > 0 &&
		!budget_exists(t, r->subject, r->route, r->excess_generation, r->excess_epoch))
		found(CHECK_orphan, in, "%s/%s: the budget that bore its excess does not exist",
			  text_of(r->subject), id);
}

static void
check_operation(const History *h, const Tables *t, const OperationRow *o)
{
	const Interleaving *in = whose(h, o->subject);
	const ReservationRow *r;

	if (o->id == 0)
	{
		if (!budget_exists(t, o->subject, o->route, o->generation, o->epoch))
			found(CHECK_orphan, in, "%s: the budget that bore usage %s does not exist",
				  text_of(o->subject), text_of(o->operation));
		return;
	}
	r = stored_reservation(t, o->subject, o->id);
	if (r == NULL || r->operation != o->operation)
		found(CHECK_binding, in, "%s: operation %s is bound to %s, which is %s", text_of(o->subject),
			  text_of(o->operation), text_of(o->id), r == NULL ? "not there" : "not bound to it");
}

void
judge_stored(const History *h, const Tables *t)
{
	int			first = 0;

	for (int i = 0; i < t->budgets; i++)
	{
		const BudgetRow *b = &t->budget[i];
		const BudgetRow *next = i + 1 < t->budgets ? b + 1 : NULL;

		check_budget(h, t, b);
		if (next == NULL || next->subject != b->subject || next->route != b->route)
		{
			check_pair(h, &t->budget[first], b);
			first = i + 1;
		}
	}
	for (int i = 0; i < t->reservations; i++)
		check_reservation(h, t, &t->reservation[i]);
	for (int i = 0; i < t->operations; i++)
		check_operation(h, t, &t->operation[i]);
	for (int i = 0; i < t->extensions; i++)
		if (stored_reservation(t, t->extension[i].subject, t->extension[i].id) == NULL)
			found(CHECK_orphan, whose(h, t->extension[i].subject), "%s: extension %s of no reservation",
				  text_of(t->extension[i].subject), text_of(t->extension[i].extension));
}
