/*
 * search.c
 *	  Is there an order of the transactions that explains every answer and row?
 *
 * Wing and Gong's search: of the transactions that nothing that is left must come
 * before, one is tried next on the specification (spec.h); where its answers are not
 * those that were given, another one.  A state that was met with the same set behind it
 * is not tried again (Lowe).  A transaction counts at its commit, whole.  What it asked
 * without holding it counts at its own time, after what the transaction held by then;
 * what was rolled back, to a savepoint or all of it, must have been true at some instant,
 * and leaves nothing; what was lost may be left out, or come at any later time.
 */
#include "spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
	UNITS_MAX = 126, STEPS_MAX = 64, DOUBTS_MAX = 5, TRIES_MAX = 400000, SKIPS_MAX = 6
};

typedef unsigned __int128 Set;

typedef struct UnitStep
{
	StepKind	kind;
	const Call *call;
	int			name;
	bool		advisory;		/* its figures may be of another instant, see differs() */
	int			hidden;			/* policies that came after it had its lock, perhaps */
	int			hidden_first;	/* and after a first row was there */
	int			ops;
	Op		   *op;
} UnitStep;

typedef struct Unit
{
	const Transaction *transaction;
	int			steps;
	UnitStep	step[STEPS_MAX];
	int			from;
	int			to;
	bool		optional;		/* it may not have happened */
	bool		undone;			/* it left nothing */
	int			hidden;			/* of its steps together */
	bool		overlaps;
} Unit;

typedef struct Search
{
	const History *history;
	const Interleaving *in;
	const Tables *tables;
	World		world;
	int			units;
	Unit	   *unit;
	int			hides;			/* policies that are not seen where they came late */
	long		tries;
	int			deepest;
	Check		check;			/* what was wrong there */
	char		why[600];
	bool		answered;		/* some order fits the answers */
	char		rows[400];		/* and what of the rows it does not */
} Search;

/* ---- states that were met ------------------------------------------------ */

typedef struct Met
{
	Set			placed;
	uint64_t	state;
	int			run;
} Met;

static Met *met;
static int	met_room = 0;
static int	met_count;
static int	met_run;

static bool
seen_before(Set placed, uint64_t state)
{
	uint64_t	h = (state ^ (uint64_t) placed * 0x9E3779B97F4A7C15u) ^ (uint64_t) (placed >> 64);

	if (met_room == 0)
		met = calloc((size_t) (met_room = 1 << 16), sizeof(*met));
	if (met_count * 2 > met_room)
		return false;
	for (int i = (int) (h & (uint64_t) (met_room - 1));; i = (i + 1) & (met_room - 1))
	{
		if (met[i].run != met_run)
		{
			met[i] = (Met) {placed, state, met_run};
			met_count++;
			return false;
		}
		if (met[i].placed == placed && met[i].state == state)
			return true;
	}
}

/* ---- one answer ---------------------------------------------------------- */

static bool
same_text(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool
differs_in(const char *told, int64_t should)
{
	return told != NULL && number_of(told, 0) != should;
}

#define DIFFERS(condition, ...)	do { if (condition) { snprintf(why, size, __VA_ARGS__); return true; } } while (0)
#define LL(x)	((long long) (x))

/* differs_from_receipt compares a receipt with what the specification has. */
static bool
differs_from_receipt(const Search *s, const Spec *state, World *w, const Op *op, const Answer *a,
					 char **c, bool advisory, char *why, size_t size)
{
	const SpecReservation *r = a->reservation < 0 ? NULL : &state->reservation[a->reservation];
	bool		shown = r != NULL && !(a->outcome[0] == 'C' && same_text(a->dimension, "request"));

	(void) op;
	DIFFERS(!same_text(c[R_OUTCOME], a->outcome) || !same_text(c[R_DIMENSION], a->dimension),
			"answered %s %s, and it should be %s %s", c[R_OUTCOME], c[R_DIMENSION] ? c[R_DIMENSION] : "",
			a->outcome, a->dimension ? a->dimension : "");
	DIFFERS(truth(c[R_REPLAYED]) != a->replayed && op->function != F_GET,
			"answered replayed %s", c[R_REPLAYED]);
	if (r != NULL)
		DIFFERS(!same_text(c[R_STATE], state_name(r->state)), "answered %s, and it should be %s",
				c[R_STATE], state_name(r->state));
	if (shown)
	{
		DIFFERS(differs_in(c[R_RESERVED], r->units), "answered %s reserved, not %lld", c[R_RESERVED],
				LL(r->units));
		DIFFERS(!same_text(c[R_OPERATION], r->operation ? text_of(r->operation) : NULL),
				"answered operation %s, not %s", c[R_OPERATION], text_of(r->operation));
		DIFFERS(differs_in(c[R_EXPIRES], r->expires), "answered expires_at %s, not %lld",
				c[R_EXPIRES], LL(r->expires));
		if (r->state == SETTLED || r->state == SETTLED_WITH_DEBT)
			DIFFERS(number_of(c[R_ACTUAL], -1) != r->actual || differs_in(c[R_EXCESS], r->excess),
					"answered actual %s and excess %s, not %lld and %lld", c[R_ACTUAL], c[R_EXCESS],
					LL(r->actual), LL(r->excess));
		if (r->pair >= 0)
		{
			const SpecBudget *b = &state->budget[r->budget];

			DIFFERS(differs_in(c[R_GENERATION], s->history->policy[b->policy].generation) ||
					differs_in(c[R_EPOCH], b->epoch), "answered generation %s and epoch %s",
					c[R_GENERATION], c[R_EPOCH]);
		}
	}
	/* What an unlocked reader was shown of the pair may be older than what it did. */
	if (a->pair >= 0 && !advisory && c[R_AVAILABLE] != NULL &&
		(a->wrote || a->outcome[0] == 'R') && !a->replayed)
	{
		int64_t		available = spec_available(state, w, a->pair, NULL, NULL);

		DIFFERS(differs_in(c[R_AVAILABLE], available), "answered %s available, and it should be %lld",
				c[R_AVAILABLE], LL(available));
	}
	if (a->outcome[0] == 'R' && a->wait >= 0 && c[R_RETRY] != NULL)
		DIFFERS(differs_in(c[R_RETRY], (a->wait + 999) / 1000), "answered to wait %s ms, not %lld",
				c[R_RETRY], LL((a->wait + 999) / 1000));
	if (a->outcome[0] == 'R' && a->wait_kind != NULL)
		DIFFERS(!same_text(c[R_RETRY_KIND], a->wait_kind), "answered to wait for %s, not %s",
				c[R_RETRY_KIND], a->wait_kind);
	return false;
}

/* differs_from_pair compares what repay, grant, freeze and unfreeze tell of a pair. */
static bool
differs_from_pair(const Spec *state, World *w, const Call *call, const Answer *a, char *why,
				  size_t size)
{
	int			at = call->function == F_GRANT ? 4 : call->function == F_REPAY ? 3 : 2;
	int64_t		debt;
	int64_t		available;

	DIFFERS(!same_text(column(call, 0, 0), a->outcome) || !same_text(column(call, 0, 1), a->dimension),
			"answered %s %s, and it should be %s %s", column(call, 0, 0), column(call, 0, 1),
			a->outcome, a->dimension);
	if (call->function == F_GRANT && a->outcome[0] != 'R')
		DIFFERS(truth(column(call, 0, 2)) != a->replayed ||
				differs_in(column(call, 0, 3), a->number), "answered %s granted, not %lld",
				column(call, 0, 3), LL(a->number));
	if (call->function == F_REPAY)
		DIFFERS(differs_in(column(call, 0, 2), a->number), "answered %s repaid, not %lld",
				column(call, 0, 2), LL(a->number));
	if (a->pair < 0)
		return false;
	available = spec_available(state, w, a->pair, &debt, NULL);
	DIFFERS(differs_in(column(call, 0, at), debt), "answered %s owed, not %lld",
			column(call, 0, at), LL(debt));
	DIFFERS(differs_in(column(call, 0, at + 1), available), "answered %s available, not %lld",
			column(call, 0, at + 1), LL(available));
	return false;
}

/* differs_from_budget compares get_budget. */
static bool
differs_from_budget(const Search *s, const Spec *state, World *w, const Op *op, const Call *call,
					char *why, size_t size)
{
	static Spec present;
	const SpecBudget *b;
	int			pair;
	int64_t		figure[16];

	spec_copy(&present, state);
	pair = spec_present(&present, w, op->subject, op->route);
	if (pair < 0 || call->rows == 0)
		return false;
	b = &present.budget[present.pair[pair].head];
	{
		int64_t		should[16] = {
			s->history->policy[b->policy].generation, b->epoch, 0,
			s->history->policy[b->policy].cap, b->opening, b->minted, b->issued, b->available,
			b->reserved, b->spent, b->retired, b->repaid, b->burned, b->deficit,
			spec_debt(&present, pair), spec_outstanding(&present, pair)
		};

		memcpy(figure, should, sizeof(figure));
	}
	for (int i = 0; i < 16; i++)
		DIFFERS(i != 2 && differs_in(column(call, 0, i), figure[i]),
				"get_budget shows %s in column %d, not %lld", column(call, 0, i), i + 1,
				LL(figure[i]));
	return false;
}

/* differs tells whether the answer to a call is not the one that the specification gives. */
static bool
differs(const Search *s, const Spec *state, World *w, const UnitStep *step, int element,
		const Answer *a, char *why, size_t size)
{
	const Call *call = step->call;
	const Op   *op = &step->op[element];
	int			first;

	why[0] = '\0';
	if (call->end == END_ERROR)	/* D6: the one error that is an answer */
		DIFFERS(call->function != F_SETTLE || !same_text(a->dimension, "not_started"),
				"failed as not started, and it should be %s %s", a->outcome,
				a->dimension ? a->dimension : "");
	if (call->end != END_DONE)
		return false;
	if (is_receipt(call->function, &first))
	{
		DIFFERS(element >= call->rows || call->row[element].columns < first + R_COLUMNS,
				"answered with %d rows", call->rows);
		DIFFERS(call->function == F_SETTLE && same_text(a->dimension, "not_started") && a->pair >= 0,
				"answered %s, and it was not started", call->row[element].column[R_OUTCOME]);
		return differs_from_receipt(s, state, w, op, a, call->row[element].column + first,
									step->advisory, why, size);
	}
	switch (call->function)
	{
		case F_REPAY:
		case F_GRANT:
		case F_FREEZE:
		case F_UNFREEZE:
			return differs_from_pair(state, w, call, a, why, size);
		case F_GET_BUDGET:
			return differs_from_budget(s, state, w, op, call, why, size);
		case F_CLAIM_EXPIRING:
		case F_EXPIRE_EXECUTIONS:
		case F_FINISH_EXPIRING:
		case F_EXPIRE_RESERVATIONS: /* those of other interleavings count there, too */
			DIFFERS(number_of(column(call, 0, 0), 0) < a->number, "answered %s, fewer than %lld",
					column(call, 0, 0), LL(a->number));
			DIFFERS(call->function == F_EXPIRE_RESERVATIONS &&
					number_of(column(call, 0, 1), 0) < a->number2, "answered %s expired",
					column(call, 0, 1));
			return false;
		case F_REPAY_DEBTORS:
			DIFFERS(number_of(column(call, 0, 0), 0) < a->number ||
					number_of(column(call, 0, 1), 0) < a->number2, "answered %s pairs and %s units",
					column(call, 0, 0), column(call, 0, 1));
			return false;
		case F_CLAIM_UNKNOWN:
			for (int i = 0; i < call->rows; i++)
				for (int j = 0; j < state->reservations; j++)
				{
					const SpecReservation *r = &state->reservation[j];

					DIFFERS(same_text(column(call, i, 0), text_of(r->subject)) &&
							same_text(column(call, i, 1), text_of(r->id)) &&
							(r->state != USAGE_UNKNOWN || differs_in(column(call, i, 4), r->units) ||
							 differs_in(column(call, i, 5), r->progress)),
							"claimed %s, which is %s", text_of(r->id), state_name(r->state));
				}
			return false;
		case F_FREEZE_ROUTE:
		case F_UNFREEZE_ROUTE:
			DIFFERS(truth(column(call, 0, 2)) != (a->number != 0), "answered otherwise whether the route was frozen");
			return false;
		default:
			return false;
	}
}

/* ---- the rows that are left ---------------------------------------------- */

/* left_of compares a state with the tables; NULL if they agree. */
static bool
rows_differ(const Search *s, const Spec *state, char *why, size_t size)
{
	const Tables *t = s->tables;
	int			stored = 0;
	int			budgets = 0;

	if (!t->read)
		return false;
	for (int i = 0; i < t->reservations; i++)
		for (int j = 0; j < state->reservations; j++)
		{
			const ReservationRow *row = &t->reservation[i];
			const SpecReservation *r = &state->reservation[j];

			if (row->subject != r->subject || row->id != r->id)
				continue;
			stored++;
			DIFFERS((int) row->state != r->state || row->reserved != r->units ||
					row->digest != r->digest || row->operation != r->operation ||
					row->expires != r->expires || row->excess != r->excess ||
					row->progress != r->progress ||
					row->actual != (r->state == SETTLED || r->state == SETTLED_WITH_DEBT ? r->actual : -1),
					"%s is stored %s, %lld reserved, %lld used, until %lld, and should be %s, %lld, %lld, until %lld",
					text_of(r->id), state_name(row->state), LL(row->reserved), LL(row->actual),
					LL(row->expires), state_name(r->state), LL(r->units), LL(r->actual), LL(r->expires));
			DIFFERS(r->pair >= 0 && (row->generation != s->history->policy[state->budget[r->budget].policy].generation ||
									 row->epoch != state->budget[r->budget].epoch),
					"%s is stored in another budget", text_of(r->id));
		}
	DIFFERS(stored != state->reservations, "%d of %d reservations are stored", stored,
			state->reservations);
	for (int p = 0; p < state->pairs; p++)
	{
		const SpecPair *pair = &state->pair[p];
		int			next = 0;

		if (!pair->exists)
			continue;
		for (int i = 0; i < t->budgets; i++)
		{
			const BudgetRow *row = &t->budget[i];
			const SpecBudget *b;

			if (row->subject != pair->subject || row->route != pair->route)
				continue;
			while (next < state->budgets && state->budget[next].pair != p)
				next++;
			DIFFERS(next == state->budgets, "a budget too many is stored");
			b = &state->budget[next++];
			budgets++;
#define FIELD(stored_as, field) \
			DIFFERS(row->stored_as != b->field, #stored_as " is stored as %lld, and should be %lld", \
					LL(row->stored_as), LL(b->field))
			DIFFERS(row->generation != s->history->policy[b->policy].generation,
					"generation is stored as %lld", LL(row->generation));
			FIELD(epoch, epoch);
			FIELD(opening, opening);
			FIELD(minted, minted);
			FIELD(issued, issued);
			FIELD(available, available);
			FIELD(reserved, reserved);
			FIELD(spent, spent);
			FIELD(retired, retired);
			FIELD(repaid, repaid);
			FIELD(burned, burned);
			FIELD(carried, carried);
			FIELD(deficit, deficit);
			if (!row->head)
				FIELD(closing, closing);
#undef FIELD
			DIFFERS(row->head && (row->frozen != (pair->frozen != 0) || row->seen_at != pair->seen ||
								  row->accrued_at != pair->at || row->remainder != pair->remainder),
					"the head is stored with frozen %d, seen_at %lld, accrued_at %lld, remainder %lld, and should be %d, %lld, %lld, %lld",
					row->frozen, LL(row->seen_at), LL(row->accrued_at), LL(row->remainder),
					pair->frozen, LL(pair->seen), LL(pair->at), LL(pair->remainder));
		}
		for (; next < state->budgets; next++)
			DIFFERS(state->budget[next].pair == p, "a budget of %s is missing", text_of(pair->subject));
	}
	for (int i = 0; i < state->records; i++)
	{
		const SpecRecord *r = &state->record[i];
		bool		there = r->kind != USAGE && r->kind != EXTENSION && r->kind != GRANT;

		for (int j = 0; r->kind == USAGE && j < t->operations && !there; j++)
			there = t->operation[j].subject == r->subject && t->operation[j].operation == r->key &&
				t->operation[j].id == 0 && t->operation[j].units == r->units;
		for (int j = 0; r->kind == EXTENSION && j < t->extensions && !there; j++)
			there = t->extension[j].subject == r->subject && t->extension[j].id == r->id &&
				t->extension[j].extension == r->key && t->extension[j].units == r->units;
		for (int j = 0; r->kind == GRANT && j < t->grants && !there; j++)
			there = t->grant[j].subject == r->subject && t->grant[j].grant == r->key &&
				t->grant[j].units == r->units && t->grant[j].granted == r->granted;
		DIFFERS(!there, "%s is not stored as it should be", text_of(r->key));
	}
	return false;
}

/* ---- the search ---------------------------------------------------------- */

/* clock_of is what the ledger's clock showed to a call: set, or as it was told. */
static int64_t
clock_of(const Search *s, const Call *call, int64_t last)
{
	int			first;
	const char *at = NULL;

	if (call->clock != NO_CLOCK)
		return call->clock;
	if (is_receipt(call->function, &first))
		at = column(call, 0, first + R_LEDGER_AT);
	else if (call->function == F_REPAY || call->function == F_GRANT || call->function == F_FREEZE ||
			 call->function == F_UNFREEZE)
		at = column(call, 0, call->function == F_GRANT ? 7 : call->function == F_REPAY ? 6 : 5);
	else if (call->function == F_GET_BUDGET)
		at = column(call, 0, 20);
	(void) s;
	return number_of(at, last);
}

/* keep remembers what is wrong at the deepest place. */
static void
keep(Search *s, int depth, const Call *call, const Answer *a, int element, const char *why)
{
	Check		check = CHECK_order;
	int			first;
	const char *told = is_receipt(call->function, &first) ? column(call, element, first) : column(call, 0, 0);

	if (told != NULL && told[0] == 'A' && a->outcome[0] == 'R' && a->dimension != NULL &&
		(call->function == F_RESERVE || call->function == F_EXTEND ||
		 call->function == F_RESERVE_BATCH))
	{
		if (strcmp(a->dimension, "available") == 0 || strcmp(a->dimension, "cap") == 0 ||
			strncmp(a->dimension, "largest", 7) == 0)
			check = CHECK_admitted_beyond;
		else if (strcmp(a->dimension, "debt") == 0 || strcmp(a->dimension, "frozen") == 0)
			check = CHECK_admitted_in_debt;
	}
	if (depth < s->deepest || (depth == s->deepest && (s->check != CHECK_order || check == CHECK_order)
							   && s->why[0] != '\0'))
		return;
	s->deepest = depth;
	s->check = check;
	snprintf(s->why, sizeof(s->why), "after %d transactions: call %d, %s, %s", depth, call->number,
			 call->name, why);
}

/* perform does a unit on a state; false if it was not answered so. */
static bool
perform(Search *s, const Unit *u, Spec *state, uint64_t skips, int depth, int *due)
{
	char		why[400];

	s->world.skips = skips;
	s->world.due = 0;
	for (int i = 0; i < u->steps; i++)
	{
		const UnitStep *step = &u->step[i];
		Answer		answer[OPS_MAX];

		if (step->kind == STEP_SAVEPOINT)
			continue;
		s->world.clock = clock_of(s, step->call, s->world.clock);
		s->world.hidden = s->hides & step->hidden;
		s->world.hidden_first = s->hides & step->hidden_first;
		if (step->call->function == F_RESERVE_BATCH && truth(argument(step->call, 10)))
		{
			spec_require_all(state, &s->world, step->op, step->ops, answer);
			for (int j = 0; j < step->ops; j++)
			{
				/* Running figures, and the longest wait of all: told by the others. */
				UnitStep	lenient = *step;

				lenient.advisory = true;
				answer[j].wait = -1;
				if (same_text(answer[j].dimension, "require_all"))
					answer[j].wait_kind = NULL;
				if (differs(s, state, &s->world, &lenient, j, &answer[j], why, sizeof(why)))
				{
					keep(s, depth, step->call, &answer[j], j, why);
					*due = s->world.due;
					return false;
				}
			}
			continue;
		}
		for (int j = 0; j < step->ops; j++)
		{
			answer[j] = spec_call(state, &s->world, &step->op[j]);
			if (differs(s, state, &s->world, step, j, &answer[j], why, sizeof(why)))
			{
				keep(s, depth, step->call, &answer[j], j, why);
				*due = s->world.due;
				return false;
			}
		}
	}
	*due = s->world.due;
	return true;
}

/*
 * rows_fit compares a state with the rows.  Housekeeping of others in the lane does what
 * is due here, too: sweeps of later interleavings, and workers.  When it came is told by
 * the instants at which budgets were closed, and the latest one that the head has seen.
 */
static bool
rows_fit(Search *s, const Spec *state, char *why, size_t size)
{
	static const Function claims[] = {F_OTHER, F_FINISH_EXPIRING, F_EXPIRE_RESERVATIONS, F_CLAIM_EXPIRING};
	static Spec after;
	int64_t		instant[BUDGETS_MAX];
	int			instants = 0;
	char		other[400];

	if (!rows_differ(s, state, why, size))
		return true;
	for (int i = 0; i < s->tables->budgets && instants < BUDGETS_MAX; i++)
		if (s->tables->budget[i].subject == s->in->subject)
			instant[instants++] = s->tables->budget[i].head ? s->tables->budget[i].seen_at
				: s->tables->budget[i].closed_at;
	for (int i = 0; i < s->tables->reservations && instants < BUDGETS_MAX; i++)
		if (s->tables->reservation[i].subject == s->in->subject &&
			(s->tables->reservation[i].state == EXPIRING || s->tables->reservation[i].state == USAGE_UNKNOWN))
			instant[instants++] = s->tables->reservation[i].expires;
	for (int i = 1; i < 16; i++)
	{
		Op			op = {.units = INT64_MAX};
		bool		first = i & 1;	/* debts, before what comes back pays them */

		spec_copy(&after, state);
		s->world.skips = 0;
		for (int j = 0; j < 3 * instants; j++)
		{
			int			step = j % 3;

			if (instant[j / 3] < state->pair[0].seen)
				continue;
			s->world.clock = instant[j / 3];
			op.function = step == 0 ? (first ? F_REPAY_DEBTORS : F_OTHER) : step == 1 ? claims[i / 4]
				: i & 2 ? F_EXPIRE_EXECUTIONS : F_OTHER;
			if (op.function != F_OTHER)
				spec_call(&after, &s->world, &op);
		}
		if (!rows_differ(s, &after, other, sizeof(other)))
			return true;
	}
	return false;
}

static bool extend_order(Search *s, const Spec *state, Set placed, int depth, int64_t clock);

/* attempt places one unit next, in one way; `hides` are the policies that it may have missed. */
static bool
attempt(Search *s, const Spec *state, Spec *after, Set placed, int depth, int n, int64_t clock,
		uint64_t skips, int hides, int *due)
{
	const Unit *u = &s->unit[n];
	bool		fits;

	spec_copy(after, state);
	s->world.clock = clock;
	s->world.overlaps = u->overlaps;
	s->hides = hides;
	fits = perform(s, u, after, skips, depth, due);
	s->hides = 0;
	s->world.hidden = s->world.hidden_first = 0;
	return fits && extend_order(s, u->undone ? state : after, placed | (Set) 1 << n, depth + 1,
								s->world.clock);
}

/* try places one unit next, in each way that its sweeps may have passed rows by. */
static bool
try(Search *s, const Spec *state, Set placed, int depth, int n, int64_t clock)
{
	const Unit *u = &s->unit[n];
	Spec	   *after = malloc(sizeof(Spec));
	int			due = 0;
	int			most = 0;
	bool		fits = false;

	for (uint64_t skips = 0; !fits; skips++)
	{
		int			missed = state->published & u->hidden;

		fits = attempt(s, state, after, placed, depth, n, clock, skips, 0, &due);
		/* What had committed when the lock was taken decides: of late ones, some or all are missed. */
		while (!fits && missed != 0)
		{
			fits = attempt(s, state, after, placed, depth, n, clock, skips, missed, &due);
			missed &= missed - 1;
		}
		most = due > most ? due : most;
		if (!u->overlaps || skips + 1 >= (uint64_t) 1 << (most < SKIPS_MAX ? most : SKIPS_MAX))
			break;
	}
	free(after);
	return fits;
}

static bool
extend_order(Search *s, const Spec *state, Set placed, int depth, int64_t clock)
{
	int			first_end = INT32_MAX;
	bool		left = false;

	if (s->world.too_big || ++s->tries > TRIES_MAX)
		return true;			/* the caller looks at both */
	for (int i = 0; i < s->units; i++)
		if (!(placed >> i & 1) && !s->unit[i].optional)
		{
			left = true;
			if (s->unit[i].to < first_end)
				first_end = s->unit[i].to;
		}
	if (!left)
	{
		char		why[400];

		s->answered = true;
		if (rows_fit(s, state, why, sizeof(why)))
			return true;
		if (s->rows[0] == '\0')
			snprintf(s->rows, sizeof(s->rows), "%s", why);
	}
	if (seen_before(placed, spec_hash(state)))
		return false;
	for (int optional = 0; optional <= 1; optional++)
		for (int i = 0; i < s->units; i++)
			if (!(placed >> i & 1) && s->unit[i].optional == (optional == 1) &&
				s->unit[i].from < first_end && try(s, state, placed, depth, i, clock))
				return true;
	return false;
}

/* ---- what there is to place ---------------------------------------------- */

/*
 * Two things are not told: whether a call in a transaction whose answer was lost did
 * anything, and whether one that took nothing ended holds on the way, and so keeps its
 * pair's lock.  Each is tried both ways, the first DOUBTS_MAX of them.
 */
static int	doubts;
static int	otherwise;			/* by bits: it did nothing, or it holds the pair */

static bool
goes_otherwise(void)
{
	return doubts < DOUBTS_MAX && (otherwise >> doubts++ & 1) != 0;
}

/* may_end_holds: one that wanted units and took none, refused or met by a fence (D14). */
static bool
may_end_holds(const Call *call)
{
	int			first;
	const char *kind;

	if (call->end != END_DONE || call->rows != 1 || !is_receipt(call->function, &first))
		return false;
	kind = column(call, 0, first + R_RETRY_KIND);
	if (call->function == F_RESERVE && truth(column(call, 0, first + R_REPLAYED)))
		return state_of(column(call, 0, first + R_STATE)) == RELEASED;
	return (call->function == F_RESERVE || call->function == F_EXTEND) && kind != NULL &&
		column(call, 0, first + R_OUTCOME)[0] == 'R' && strcmp(kind, "never") != 0 &&
		strcmp(kind, "operator") != 0;
}

static bool
is_sweep(Function f)
{
	return f == F_CLAIM_EXPIRING || f == F_FINISH_EXPIRING || f == F_EXPIRE_RESERVATIONS ||
		f == F_EXPIRE_EXECUTIONS || f == F_REPAY_DEBTORS;
}

/* holds_nothing: a call that took no lock that lasts, and wrote nothing. */
static bool
holds_nothing(const Call *call)
{
	int			first;
	const char *outcome;

	if (call->function == F_GET || call->function == F_GET_BUDGET)
		return true;
	if (call->function == F_CLAIM_UNKNOWN)	/* what it claimed it has locked */
		return call->rows == 0;
	if (call->end != END_DONE)
		return false;
	if (is_sweep(call->function))
		return number_of(column(call, 0, 0), 0) == 0 && number_of(column(call, 0, 1), 0) == 0;
	if (call->function == F_REPAY || call->function == F_FREEZE || call->function == F_UNFREEZE)
		return column(call, 0, 0) != NULL && column(call, 0, 0)[0] == 'U';
	if (!is_receipt(call->function, &first))
		return false;
	for (int i = 0; i < call->rows; i++)
	{
		outcome = column(call, i, first + R_OUTCOME);
		if (outcome == NULL || (outcome[0] == 'A' && !truth(column(call, i, first + R_REPLAYED))))
			return false;
	}
	return true;
}

static bool
takes_no_pair(Function f)
{
	return f == F_START || f == F_REPORT_UNKNOWN || f == F_REPORT_PROGRESS || f == F_GET ||
		f == F_RESOLVE || f == F_START_BATCH;
}

static Unit *
new_unit(Search *s, const Transaction *t, int from)
{
	Unit	   *u;

	if (s->units == UNITS_MAX)
	{
		s->world.too_big = true;
		s->units--;
	}
	u = &s->unit[s->units++];
	u->transaction = t;
	u->steps = 0;
	u->from = from;
	u->to = t->end;
	u->optional = t->fate == MAYBE;
	u->undone = t->fate == UNDONE;
	u->overlaps = false;
	u->hidden = 0;
	return u;
}

/* add puts a step into a unit; false if the specification does not know its call. */
static bool
add(Search *s, Unit *u, const Step *step)
{
	UnitStep   *to;
	Op			op[OPS_MAX];

	if (u->steps == STEPS_MAX)
	{
		s->world.too_big = true;
		return true;
	}
	to = &u->step[u->steps++];
	*to = (UnitStep) {.kind = step->kind, .name = step->name};
	if (step->kind != STEP_CALL)
		return true;
	to->call = &s->in->call[step->call];
	to->ops = ops_of(to->call, op);
	to->op = arena_new(sizeof(Op) * (size_t) (to->ops + 1));
	memcpy(to->op, op, sizeof(Op) * (size_t) to->ops);
	to->advisory = takes_no_pair(to->call->function);
	return to->ops > 0;
}

/*
 * add_alone makes a unit of one call that holds nothing, and so was true within its own
 * time, after what its transaction held already: that much of it goes before the call,
 * and leaves nothing here.
 */
static bool
add_alone(Search *s, const Transaction *t, const Unit *held, const Step *step)
{
	const Call *call = &s->in->call[step->call];
	Unit	   *u = new_unit(s, t, t->one_snapshot ? t->begins : call->sent);

	if (held != NULL)
	{
		u->undone = true;
		u->overlaps = true;		/* what it passed by then it passes by here */
		u->steps = held->steps;
		memcpy(u->step, held->step, sizeof(u->step[0]) * (size_t) held->steps);
		u->from = u->from < held->from ? held->from : u->from;
	}
	if (call->end == END_DONE)	/* it was told, whatever became of its transaction */
	{
		u->optional = false;
		u->to = call->back;
	}
	return add(s, u, step);
}

/* is_answer tells whether an error says something of the ledger: LL301 does (D6). */
static bool
is_answer(const Call *call)
{
	return call->end != END_ERROR || strcmp(call->sqlstate, "LL301") == 0;
}

/*
 * roll_back_to cuts off what a savepoint takes with it.  Until then all of the unit was
 * true and held, which one that leaves nothing says; what came before goes on.
 */
static void
roll_back_to(Search *s, Unit **u, const Step *step)
{
	Unit	   *whole;
	int			kept;
	bool		holds = false;

	if (*u == NULL)
		return;
	for (kept = (*u)->steps; kept > 0; kept--)
		if ((*u)->step[kept - 1].kind == STEP_SAVEPOINT && (*u)->step[kept - 1].name == step->name)
			break;
	if (kept == (*u)->steps)
		return;
	for (int i = 0; i < kept; i++)
		holds = holds || (*u)->step[i].kind == STEP_CALL;
	whole = *u;
	if (holds)
	{
		whole = new_unit(s, (*u)->transaction, (*u)->from);
		memcpy(whole->step, (*u)->step, sizeof(whole->step));
		whole->steps = (*u)->steps;
		(*u)->steps = kept;
	}
	else
		*u = NULL;
	whole->undone = true;
	whole->optional = false;
	whole->to = step->at;
}

/* add_transaction cuts a transaction where it held nothing yet. */
static bool
add_transaction(Search *s, const Transaction *t)
{
	Unit	   *u = NULL;

	for (int i = 0; i < t->steps; i++)
	{
		const Step *step = &t->step[i];
		const Call *call = step->kind == STEP_CALL ? &s->in->call[step->call] : NULL;

		if (call != NULL && (call->gateway || !is_answer(call)))
			continue;
		if (t->is_explicit && call != NULL && call->end == END_LOST && goes_otherwise())
			continue;
		if (call != NULL && holds_nothing(call) &&
			!(t->is_explicit && may_end_holds(call) && goes_otherwise()))
		{
			if (!add_alone(s, t, u, step))
				return false;
			continue;
		}
		if (step->kind == STEP_ROLLBACK_TO)
		{
			roll_back_to(s, &u, step);
			continue;
		}
		if (u == NULL)
		{
			if (call == NULL)	/* a savepoint holds nothing; see below */
				continue;
			u = new_unit(s, t, call->sent);
			for (int j = 0; j < i; j++)
				if (t->step[j].kind == STEP_SAVEPOINT && !add(s, u, &t->step[j]))
					return false;
		}
		if (!add(s, u, step))
			return false;
		/* A refused one that holds the pair is judged at the commit, and has not locked its id. */
		if (call != NULL && call->function == F_RESERVE && may_end_holds(call))
			u->step[u->steps - 1].op[0].unmet = !truth(column(call, 0, R_REPLAYED));
	}
	return true;
}

/* told_of is the line at which another transaction was told that it had published a policy. */
static int
told_of(const Search *s, int policy, const Transaction *own)
{
	for (int i = 0; i < s->in->calls; i++)
	{
		const Call *c = &s->in->call[i];

		if (c->function == F_PUBLISH && c->sent < policy && policy < c->back)
			return &s->in->transaction[c->transaction] == own ? 0 : s->in->transaction[c->transaction].end;
	}
	return 0;
}

/*
 * may_wait_for_row: the transaction that a call waits for may have the reservation or the
 * operation that it is about, and not its pair: then it had the pair's lock before.
 */
static bool
may_wait_for_row(const Search *s, const UnitStep *step, const Transaction *own)
{
	Op			op[OPS_MAX];

	for (int i = 0; i < s->in->transactions; i++)
	{
		const Transaction *t = &s->in->transaction[i];

		if (t == own || !t->is_explicit || t->begins > step->call->back || t->end < step->call->sent)
			continue;
		for (int j = 0; j < t->steps; j++)
			if (t->step[j].kind == STEP_CALL)
				for (int k = ops_of(&s->in->call[t->step[j].call], op) - 1; k >= 0; k--)
					for (int n = 0; n < step->ops; n++)
						if (op[k].subject == step->op[n].subject &&
							((op[k].id != 0 && op[k].id == step->op[n].id) ||
							 (op[k].key != 0 && op[k].key == step->op[n].key)))
							return true;
	}
	return false;
}

/* search looks for an order; *known: it knows all calls, and came to an end. */
static bool
search(Search *to, const History *history, const Interleaving *in, const Tables *tables, bool *known)
{
	static Search s;
	static Unit units[UNITS_MAX];
	static Spec empty;
	bool		fits;

	*known = false;
	s = (Search) {
		.history = history, .in = in, .tables = tables, .unit = units, .deepest = -1,
		.check = CHECK_order
	};
	s.world = (World) {.history = history, .begins = in->begins};
	while (s.world.first_published < history->policies &&
		   history->policy[s.world.first_published].line < in->begins)
		s.world.first_published++;
	doubts = 0;
	for (int i = 0; i < in->transactions; i++)
		if (!add_transaction(&s, &in->transaction[i]))
			return false;
	if (s.world.too_big)
		return false;
	for (int i = 0; i < s.units; i++)
		for (int j = 0; j < in->transactions; j++)
		{
			const Transaction *t = &in->transaction[j];

			if (t != units[i].transaction && t->steps > 0 && units[i].from < t->end &&
				t->step[0].at < units[i].to)
				units[i].overlaps = true;
		}
	for (int i = 0; i < s.units; i++)
		for (int k = 0; k < units[i].steps; k++)
			for (int j = s.world.first_published; j < history->policies; j++)
			{
				UnitStep   *step = &units[i].step[k];
				int			bit = 1 << (j - s.world.first_published);
				int			told;

				if (j - s.world.first_published >= 31 || step->call == NULL)
					continue;
				told = told_of(&s, history->policy[j].line, units[i].transaction);
				if (told > step->call->back)
					step->hidden_first |= bit;
				if (told > step->call->back ||
					(told > step->call->sent && may_wait_for_row(&s, step, units[i].transaction)))
					step->hidden |= bit;
				units[i].hidden |= step->hidden;
			}
	met_run++;
	met_count = 0;
	memset(&empty, 0, sizeof(empty));
	fits = extend_order(&s, &empty, 0, 0, 0);
	*known = !s.world.too_big && s.tries <= TRIES_MAX;
	*to = s;
	return fits;
}

bool
judge_order(const History *history, const Interleaving *in, const Tables *tables)
{
	static Search s;
	static Search first;
	bool		known;

	if (!in->is_virtual)		/* workers move between the lines */
		return false;
	doubts = 0;
	for (otherwise = 0; otherwise < 1 << doubts; otherwise++)
	{
		if (search(&s, history, in, tables, &known) || !known)
			return known;
		if (otherwise == 0 || (s.answered && !first.answered))
			first = s;
	}
	if (first.answered)
		found(CHECK_rows_differ, in, "%s", first.rows);
	else
		found(first.check, in, "%s", first.why);
	return true;
}
