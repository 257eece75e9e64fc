/*
 * told.c
 *	  What was told: single answers against each other, and against the rows.
 *
 * No order is searched here, only what must hold in every order: so it holds for
 * interleavings with background workers and for gateways, too.
 */
#include "spec.h"

#include <string.h>

#define LL(x)	((long long) (x))

/* One element of one call, and what came of it. */
typedef struct Told
{
	const Call *call;
	Op			op;
	Fate		fate;
	char	  **column;			/* of its receipt; NULL: there is none */
	const char *outcome;		/* or NULL */
	bool		replayed;
	ReservationState state;
	int			from;			/* nothing of it was there before this line */
	int			stands;			/* and all of it from this one on, if it stands */
} Told;

static Told *told;
static int	tolds;

/* gather takes the calls apart. */
static void
gather(const Interleaving *in)
{
	tolds = 0;
	told = NULL;
	for (int i = 0; i < in->calls; i++)
	{
		const Call *c = &in->call[i];
		const Transaction *t = &in->transaction[c->transaction];
		Op			op[OPS_MAX];
		int			first;
		bool		receipt = is_receipt(c->function, &first);
		int			ops = c->function == F_PUBLISH ? 0 : ops_of(c, op);

		for (int j = 0; j < ops; j++)
		{
			Told	   *a = PUSH(told, tolds);

			*a = (Told) {
				.call = c, .op = op[j], .fate = fate_of(in, c), .state = NO_STATE,
				.from = t->one_snapshot ? t->begins : c->sent,
				.stands = t->is_explicit ? t->end : c->back
			};
			if (c->end != END_DONE)
				continue;
			a->outcome = receipt ? column(c, j, first) : column(c, 0, 0);
			if (receipt && j < c->rows && c->row[j].columns >= first + R_COLUMNS)
			{
				a->column = c->row[j].column + first;
				a->replayed = truth(a->column[R_REPLAYED]);
				a->state = state_of(a->column[R_STATE]);
			}
			else if (c->function == F_GRANT)
				a->replayed = truth(column(c, 0, 2));
		}
	}
}

static bool
accepted(const Told *a)
{
	return a->outcome != NULL && a->outcome[0] == 'A' && !a->replayed;
}

/* may_stand tells whether a call may have done its work. */
static bool
may_stand(const Told *a)
{
	return a->fate != UNDONE && (a->outcome == NULL ? a->call->end != END_DONE : accepted(a));
}

static bool
same_side(const Told *a, const Told *b)
{
	return a->call->gateway == b->call->gateway && a->call->elsewhere == b->call->elsewhere;
}

static bool
same_item(const Told *a, const Told *b)
{
	return a->op.id != 0 && a->op.id == b->op.id && a->op.subject == b->op.subject && same_side(a, b);
}

static bool
is_reserve(const Told *a)
{
	return a->op.function == F_RESERVE || a->op.function == F_SHARD_RESERVE;
}

static bool
is_settle(const Told *a)
{
	return a->op.function == F_SETTLE || a->op.function == F_SHARD_SETTLE;
}

static bool
is_release(const Told *a)
{
	return a->op.function == F_RELEASE || a->op.function == F_SHARD_RELEASE;
}

/* starts tells whether a call binds an operation. */
static bool
starts(const Told *a)
{
	return a->op.function == F_START || a->op.function == F_SHARD_START ||
		(is_reserve(a) && a->op.key != 0);
}

static bool
started(ReservationState s)
{
	return s == STARTED || s == USAGE_UNKNOWN || s == SETTLED || s == SETTLED_WITH_DEBT;
}

/* follows tells whether a state may be seen after another (D1). */
static bool
follows(ReservationState from, ReservationState to, bool gateway)
{
	if (from == to)
		return true;
	switch (from)
	{
		case RESERVED:
			return true;
		case STARTED:
			return to == USAGE_UNKNOWN || to == SETTLED || to == SETTLED_WITH_DEBT;
		case USAGE_UNKNOWN:
			return to == SETTLED || to == SETTLED_WITH_DEBT;
		case EXPIRING:
			return to == EXPIRED;
		default:
			(void) gateway;
			return false;
	}
}

/* check_twice: of two calls that both did it, one too many did (D2, D5, D6, D9, D12). */
static void
check_twice(const Interleaving *in, const Told *a, const Told *b)
{
	const char *id = text_of(a->op.id);

	if (same_item(a, b))
	{
		if (is_reserve(a) && is_reserve(b))
			found(CHECK_second_reservation, in, "%s: calls %d and %d both took units", id,
				  a->call->number, b->call->number);
		if (starts(a) && starts(b) && !(is_reserve(a) && is_reserve(b)))
			found(CHECK_second_start, in, "%s: calls %d and %d both started it", id, a->call->number,
				  b->call->number);
		if (is_settle(a) && is_settle(b))
			found(CHECK_second_settlement, in, "%s: calls %d and %d both settled it", id,
				  a->call->number, b->call->number);
		if ((is_release(a) && (is_release(b) || is_settle(b))) || (is_settle(a) && is_release(b)))
			found(CHECK_second_refund, in, "%s: calls %d and %d both gave units back", id,
				  a->call->number, b->call->number);
		if (a->op.function == F_EXTEND && b->op.function == F_EXTEND && a->op.key == b->op.key)
			found(CHECK_second_usage, in, "%s: calls %d and %d both extended it by %s", id,
				  a->call->number, b->call->number, text_of(a->op.key));
		return;
	}
	if (a->op.subject != b->op.subject || a->op.key == 0 || a->op.key != b->op.key || !same_side(a, b))
		return;
	if (starts(a) && starts(b))
		found(CHECK_second_start, in, "calls %d and %d both started operation %s", a->call->number,
			  b->call->number, text_of(a->op.key));
	if (a->op.function == b->op.function &&
		(a->op.function == F_RECORD_USAGE || a->op.function == F_IMPORT_USAGE ||
		 (a->op.function == F_GRANT && a->op.route == b->op.route)))
		found(CHECK_second_usage, in, "calls %d and %d both booked %s", a->call->number,
			  b->call->number, text_of(a->op.key));
}

/* check_sequence: what was seen first may become what was seen later (D1, D5, D10). */
static void
check_sequence(const Interleaving *in, const Told *a, const Told *b)
{
	const char *id = text_of(a->op.id);

	if (a->state == NO_STATE || b->state == NO_STATE)
		return;
	if (!follows(a->state, b->state, a->call->gateway))
	{
		if (started(a->state) && a->state < SETTLED && !started(b->state))
			found(a->state == USAGE_UNKNOWN ? CHECK_unknown_freed : CHECK_started_expired, in,
				  "%s: %s in call %d, %s in call %d", id, state_name(a->state), a->call->number,
				  state_name(b->state), b->call->number);
		else
			found(CHECK_state_order, in, "%s: %s in call %d, %s in call %d", id, state_name(a->state),
				  a->call->number, state_name(b->state), b->call->number);
		return;
	}
	if (a->state >= SETTLED && a->state == b->state && a->column[R_RESERVED] != NULL &&
		b->column[R_RESERVED] != NULL)
		for (int i = R_RESERVED; i <= R_EXPIRES; i++)
		{
			const char *x = a->column[i];
			const char *y = b->column[i];

			if (x == NULL || y == NULL ? x != y : strcmp(x, y) != 0)
			{
				found(CHECK_receipt, in, "%s: calls %d and %d tell different receipts", id,
					  a->call->number, b->call->number);
				return;
			}
		}
}

/* check_stored: what was acknowledged is there, as it was told. */
static void
check_stored(const Interleaving *in, const Tables *t, const Told *a)
{
	const ReservationRow *r;
	const char *id = text_of(a->op.id);

	if (a->call->gateway || a->op.id == 0 || a->op.function == F_PUBLISH)
		return;
	r = stored_reservation(t, a->op.subject, a->op.id);
	if (a->state == NO_STATE)
		return;
	if (r == NULL)
	{
		found(CHECK_lost_reservation, in, "%s: told %s in call %d, and nothing is stored", id,
			  state_name(a->state), a->call->number);
		return;
	}
	if (is_reserve(a) && accepted(a) &&
		(r->asked != a->op.units || r->digest != a->op.digest || r->route != a->op.route))
		found(CHECK_lost_reservation, in, "%s: stored otherwise than call %d reserved it", id,
			  a->call->number);
	if (starts(a) && accepted(a) && r->operation != a->op.key)
		found(started(r->state) ? CHECK_second_start : CHECK_started_expired, in,
			  "%s: started as %s by call %d, and stored %s with %s", id, text_of(a->op.key),
			  a->call->number, state_name(r->state), text_of(r->operation));
	else if (!follows(a->state, r->state, false))
		found(a->state == STARTED && !started(r->state) ? CHECK_started_expired
			  : a->state == USAGE_UNKNOWN && !started(r->state) ? CHECK_unknown_freed
			  : CHECK_state_order, in, "%s: told %s in call %d, and stored %s", id,
			  state_name(a->state), a->call->number, state_name(r->state));
	if (is_settle(a) && accepted(a) && (r->actual != a->op.units || r->receipt != a->op.digest))
		found(CHECK_second_settlement, in, "%s: settled with %lld by call %d, and stored with %lld", id,
			  LL(a->op.units), a->call->number, LL(r->actual));
}

/* Who may have done what a row tells of; *asked: somebody asked for it at all. */
static bool
somebody(const Told *like, bool (*did) (const Told *a, const Told *like), bool *asked)
{
	*asked = false;
	for (int i = 0; i < tolds; i++)
		if (did(&told[i], like))
		{
			if (may_stand(&told[i]))
				return true;
			*asked = true;
		}
	return false;
}

static bool
reserved_it(const Told *a, const Told *like)
{
	return is_reserve(a) && same_item(a, like) && a->op.digest == like->op.digest &&
		a->op.units == like->op.units && a->op.route == like->op.route;
}

static bool
fenced_it(const Told *a, const Told *like)
{
	return a->op.function == F_RESOLVE && same_item(a, like) && a->op.digest == like->op.digest;
}

static bool
started_it(const Told *a, const Told *like)
{
	return starts(a) && same_item(a, like) && a->op.key == like->op.key;
}

static bool
settled_it(const Told *a, const Told *like)
{
	return is_settle(a) && same_item(a, like) && a->op.key == like->op.key &&
		a->op.units == like->op.units;
}

static bool
released_it(const Told *a, const Told *like)
{
	return is_release(a) && same_item(a, like);
}

static bool
used_it(const Told *a, const Told *like)
{
	return (a->op.function == F_RECORD_USAGE || a->op.function == F_IMPORT_USAGE) &&
		a->op.key == like->op.key && a->op.units == like->op.units && a->op.route == like->op.route;
}

static bool
granted_it(const Told *a, const Told *like)
{
	return a->op.function == F_GRANT && a->op.key == like->op.key && a->op.units == like->op.units;
}

static bool
extended_it(const Told *a, const Told *like)
{
	return a->op.function == F_EXTEND && same_item(a, like) && a->op.key == like->op.key &&
		a->op.units == like->op.units;
}

/* explain finds who may have made a row, or what it tells of (D3). */
static void
explain(const Interleaving *in, const Told *like, bool (*did) (const Told *a, const Told *like),
		const char *what)
{
	bool		asked;

	if (somebody(like, did, &asked))
		return;
	found(asked ? CHECK_refused_row : CHECK_unexplained, in, "%s is stored %s, and %s", 
		  text_of(like->op.id != 0 ? like->op.id : like->op.key), what,
		  asked ? "all that asked for it were refused or rolled back" : "nobody asked for it");
}

/* explain_rows asks of each row of the interleaving's subject who made it. */
static void
explain_rows(const Interleaving *in, const Tables *t)
{
	static const Call here = {0};

	for (int i = 0; i < t->reservations; i++)
	{
		const ReservationRow *r = &t->reservation[i];
		Told		like = {.call = &here};

		if (r->subject != in->subject)
			continue;
		like.op = (Op) {
			.subject = r->subject, .id = r->id, .route = r->route, .digest = r->digest,
			.units = r->asked, .key = r->operation
		};
		explain(in, &like, r->route == 0 ? fenced_it : reserved_it, r->route == 0 ? "as a fence" : "as reserved");
		if (r->operation != 0)
			explain(in, &like, started_it, "as started");
		if (r->actual >= 0)
		{
			like.op.units = r->actual;
			explain(in, &like, settled_it, "as settled");
		}
		if (r->state == RELEASED && r->route != 0)
			explain(in, &like, released_it, "as released");
	}
	for (int i = 0; i < t->operations; i++)
	{
		const OperationRow *o = &t->operation[i];
		Told		like = {.call = &here};

		if (o->subject != in->subject || o->id != 0)
			continue;
		like.op = (Op) {.subject = o->subject, .key = o->operation, .units = o->units, .route = o->route};
		explain(in, &like, used_it, "as usage");
	}
	for (int i = 0; i < t->grants; i++)
	{
		const GrantRow *g = &t->grant[i];
		Told		like = {.call = &here};

		if (g->subject != in->subject)
			continue;
		like.op = (Op) {.subject = g->subject, .key = g->grant, .units = g->units, .route = g->route};
		explain(in, &like, granted_it, "as a grant");
	}
	for (int i = 0; i < t->extensions; i++)
	{
		const ExtensionRow *e = &t->extension[i];
		Told		like = {.call = &here};

		if (e->subject != in->subject)
			continue;
		like.op = (Op) {.subject = e->subject, .id = e->id, .key = e->extension, .units = e->units};
		explain(in, &like, extended_it, "as extended");
	}
}

/* sole tells whether nobody else may have made the row that a reserve asked for. */
static bool
sole(const Told *a)
{
	for (int i = 0; i < tolds; i++)
		if (&told[i] != a && same_item(&told[i], a) && may_stand(&told[i]) &&
			(is_reserve(&told[i]) || told[i].op.function == F_RESOLVE))
			return false;
	return true;
}

/* check_torn: of a transaction whose end is not known all stands, or nothing (F5). */
static void
check_torn(const Interleaving *in, const Tables *t)
{
	for (int i = 0; i < tolds; i++)
		for (int j = i + 1; j < tolds; j++)
		{
			const Told *a = &told[i];
			const Told *b = &told[j];

			if (a->fate != MAYBE || b->fate != MAYBE || a->call->transaction != b->call->transaction ||
				a->call->gateway || !is_reserve(a) || !is_reserve(b) || !accepted(a) || !accepted(b) ||
				same_item(a, b) || !sole(a) || !sole(b))
				continue;
			if ((stored_reservation(t, a->op.subject, a->op.id) == NULL) !=
				(stored_reservation(t, b->op.subject, b->op.id) == NULL))
				found(CHECK_torn, in, "one of %s and %s is stored, of one transaction",
					  text_of(a->op.id), text_of(b->op.id));
		}
}

void
judge_told(const History *h, const Interleaving *in, const Tables *t)
{
	(void) h;
	gather(in);
	for (int i = 0; i < in->calls; i++)
	{
		const Call *c = &in->call[i];

		if (c->end == END_ERROR && (strncmp(c->sqlstate, "XX", 2) == 0 || strncmp(c->sqlstate, "LL9", 3) == 0 ||
									strncmp(c->sqlstate, "23", 2) == 0))
			found(CHECK_error, in, "call %d, %s, failed with %s", c->number, c->name, c->sqlstate);
	}
	for (int i = 0; i < tolds; i++)
		for (int j = 0; j < tolds; j++)
		{
			const Told *a = &told[i];
			const Told *b = &told[j];

			if (i < j && a->fate == COMMITTED && b->fate == COMMITTED && accepted(a) && accepted(b))
				check_twice(in, a, b);
			if (i != j && a->fate == COMMITTED && a->stands < b->from && same_item(a, b))
				check_sequence(in, a, b);
		}
	if (!t->read)
		return;
	for (int i = 0; i < tolds; i++)
		if (told[i].fate == COMMITTED)
			check_stored(in, t, &told[i]);
	explain_rows(in, t);
	check_torn(in, t);
}
