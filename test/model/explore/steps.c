/*
 * steps.c
 *	  Which steps a world allows, what each is called, and what it does.
 *
 * Every step uses something up: a message, a phase of an actor, an allowance,
 * or what is due.  So no interleaving goes round in a circle.
 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- who is who ---------------------------------------------------------- */

static const char *const call_text[] = {
	"reserve", "start", "settle", "release", "unknown", "progress", "extend", "resolve"
};

static const char *const kind_text[STEP_KINDS] = {
	"send", "take", "time-out", "lock", "run", "forget",
	"tick", "clock-back", "crash", "cut", "heal",
	"claim", "finish", "end-executions", "repay",
	"lease", "attest", "publish", "freeze", "unfreeze", "grant", "record",
	"issue", "write-off", "reconcile",
	"accept", "seal", "boot", "local-sweep", "local-receipt", "report"
};

static const char *const manner_text[] = {"", " reply-lost", " request-lost", " duplicated"};

static bool
is_client(int actor)
{
	return actor < CLIENTS;
}

static bool
is_executor(int actor)
{
	return actor >= CLIENTS && actor < CLIENTS + EXECUTORS;
}

/*
 * operation_of: no two executions may share an operation id, and some do all the
 * same.  Two that are about one reservation never do: nobody could tell them apart.
 */
static int
operation_of(int actor)
{
	int			e = actor - CLIENTS;
	int			operation = 1;

	if (!is_executor(actor))
		return 0;
	if (setup.amounts.shared == 2 && e == 0)
		return RECORDED;
	if (setup.amounts.shared != 1)
		return e + 1;
	for (int other = 0; other < e; other++)
		operation += target_of(other) == target_of(e);
	return operation;
}

/* executor_of is the one that a reserve starts at once. */
static int
executor_of(int client)
{
	for (int e = 0; e < setup.amounts.executors; e++)
		if (target_of(e) == client)
			return CLIENTS + e;
	return -1;
}

/* reservation_of is what an actor is about. */
static int
reservation_of(const World *w, int actor)
{
	return is_client(actor) ? actor
		: is_executor(actor) ? target_of(actor - CLIENTS) : w->actor[actor].item;
}

static bool
is_local(const World *w, int actor)
{
	return (is_client(actor) || is_executor(actor)) &&
		w->actor[reservation_of(w, actor)].local;
}

/* wants_local: by its setup, or since its gateway can't reach the ledger. */
static bool
wants_local(const World *w, int client)
{
	int			local = setup.amounts.local;

	return local == 3 || local == client + 1 || (local == 4 && w->gateway[gateway_of(client)].cut);
}

static bool
cut_off(const World *w, const Message *m)
{
	return m->actor < CLIENTS + EXECUTORS && !is_local(w, m->actor) &&
		w->gateway[gateway_of(m->id)].cut;
}

static bool
waits(const World *w, int actor)
{
	for (int i = 0; i < w->messages; i++)
		if (w->message[i].actor == actor && !w->message[i].late)
			return true;
	return false;
}

/* ---- messages, in an order of their own so that equal worlds are equal bytes */

static void
put_message(World *w, Message m)
{
	int			i = w->messages++;

	for (; i > 0 && memcmp(&w->message[i - 1], &m, sizeof(m)) > 0; i--)
		w->message[i] = w->message[i - 1];
	w->message[i] = m;
}

static Message
pull_message(World *w, int i)
{
	Message		m = w->message[i];

	w->messages--;
	memmove(&w->message[i], &w->message[i + 1], sizeof(m) * (size_t) (w->messages - i));
	memset(&w->message[w->messages], 0, sizeof(m));
	return m;
}

static int
locked_message(const World *w)
{
	for (int i = 0; i < w->messages; i++)
		if (w->message[i].locked)
			return i;
	return -1;
}

/* ---- what is due --------------------------------------------------------- */

static LLTime
ledger_now(const World *w)
{
	return w->clock > w->ledger.pair.seen_at ? w->clock : w->ledger.pair.seen_at;
}

static bool
row_in(const World *w, LLState state, bool due)
{
	for (int i = 0; i < IDS; i++)
		if (w->ledger.row[i].r.state == state &&
			(!due || w->ledger.row[i].r.expires_at <= ledger_now(w)))
			return true;
	return false;
}

static bool
owes(const World *w)
{
	const LLBudget *head = &w->ledger.pair.head;

	return head->overdraft_issued > head->overdraft_repaid || w->ledger.pair.older_debt > 0;
}

static bool
local_due(const World *w)
{
	for (int i = 0; i < CLIENTS; i++)
	{
		LLTime		seen = w->local[w->item[i].budget].seen_at;

		if ((w->item[i].r.state == LL_RESERVED || w->item[i].r.state == LL_STARTED) &&
			w->item[i].r.expires_at <= (w->clock > seen ? w->clock : seen))
			return true;
	}
	return false;
}

/* known tells whether what ran of a reservation can grow no more, so that a receipt is true. */
static bool
known(const World *w, int id)
{
	for (int e = 0; e < setup.amounts.executors; e++)
	{
		int			phase = w->actor[CLIENTS + e].phase;

		if (target_of(e) == id &&
			(phase == STARTING || phase == MAY_RUN ||
			 (phase == IDLE && w->actor[id].phase != DONE && w->actor[id].phase != REFUSED)))
			return false;
	}
	return true;
}

/* ---- steps that a world allows ------------------------------------------- */

typedef struct List
{
	Step	   *step;
	int			count;
} List;

static void
add(List *list, int kind, int who, int what, int how)
{
	if (list->count == STEPS)
		abort();				/* STEPS is too small: no step may be left out */
	list->step[list->count++] = (Step) {kind, who, what, how};
}

static void
client_steps(const World *w, int c, List *list)
{
	const Actor *a = &w->actor[c];
	bool		central = !a->local;

	switch ((Phase) a->phase)
	{
		case IDLE:
			add(list, SEND, c, RESERVE, 0);
			return;
		case REFUSED:
			if (w->left[offsetof(Allowances, retry) / sizeof(int)] > 0)
				add(list, SEND, c, RESERVE, 0);
			return;
		case RESERVING:
			if (a->lost)
				add(list, SEND, c, RESERVE, 0);
			if (a->lost && central && setup.amounts.resolve)
				add(list, SEND, c, RESOLVE, 0);
			return;
		case RESOLVING:
			if (a->lost)
				add(list, SEND, c, RESOLVE, 0);
			return;
		case HOLDS:
			add(list, SEND, c, RELEASE, 0);
			if (central && w->left[offsetof(Allowances, extend) / sizeof(int)] > 0)
				add(list, SEND, c, EXTEND, 0);
			return;
		case GIVEN:
			if (w->left[offsetof(Allowances, cancel) / sizeof(int)] > 0)
				add(list, SEND, c, RELEASE, 0);
			return;
		case RELEASING:
			if (a->lost)
				add(list, SEND, c, RELEASE, 0);
			return;
		case EXTENDING:
			if (a->lost)
				add(list, SEND, c, EXTEND, 0);
			return;
		case STARTING: case MAY_RUN: case RAN: case REPORTING_PROGRESS: case SETTLING:
		case FORGOT: case REPORTING_UNKNOWN: case CLAIMED: case DONE:
			return;
	}
}

#define LEFT(name)	(w->left[offsetof(Allowances, name) / sizeof(int)])

static void
executor_steps(const World *w, int e, List *list)
{
	const Actor *a = &w->actor[e];
	int			given = w->actor[reservation_of(w, e)].phase;
	const int	run[] = {setup.amounts.run1, setup.amounts.run2, setup.amounts.run3};

	switch ((Phase) a->phase)
	{
		case IDLE:
			if (given == HOLDS || given == GIVEN)
				add(list, SEND, e, START, 0);
			return;
		case STARTING:
			if (a->lost)
				add(list, SEND, e, START, 0);
			return;
		case MAY_RUN:
			for (int i = 0; i < 3; i++)
				if (i == 0 || run[i] > 0)
					add(list, RUN, e, run[i], 0);
			return;
		case RAN:
			add(list, SEND, e, SETTLE, 0);
			if (LEFT(progress) > 0 && !is_local(w, e))
				add(list, SEND, e, PROGRESS, 0);
			if (LEFT(forget) > 0)
				add(list, SEND, e, UNKNOWN, 0);
			return;
		case SETTLING:
			if (a->lost)
				add(list, SEND, e, SETTLE, 0);
			return;
		case REPORTING_PROGRESS:
			if (a->lost)
				add(list, SEND, e, PROGRESS, 0);
			return;
		case FORGOT:
			add(list, SEND, e, UNKNOWN, 0);
			return;
		case REPORTING_UNKNOWN:
			if (a->lost)
				add(list, SEND, e, UNKNOWN, 0);
			return;
		case RESERVING: case RESOLVING: case HOLDS: case RELEASING: case EXTENDING:
		case GIVEN: case REFUSED: case CLAIMED: case DONE:
			return;
	}
}

static void
reconciler_steps(const World *w, int q, List *list)
{
	const Actor *a = &w->actor[q];

	if (a->phase == IDLE && LEFT(lease) > 0 && row_in(w, LL_USAGE_UNKNOWN, false))
		add(list, LEASE, q, 0, 0);
	if ((a->phase == CLAIMED || (a->phase == SETTLING && a->lost)) && known(w, a->item))
		add(list, SEND, q, SETTLE, 0);
}

/* restart_steps: an actor forgets all but its id; a client may also never come back. */
static void
restart_steps(const World *w, int actor, List *list)
{
	const Actor *a = &w->actor[actor];

	if (LEFT(restart) == 0)
		return;
	if (is_client(actor) && a->phase >= RESERVING && a->phase <= EXTENDING)
	{
		if (!a->lost || a->phase != RESERVING)
			add(list, GO_LOST, actor, 0, 0);
		add(list, GO_LOST, actor, 1, 0);
	}
	if (is_executor(actor) && a->phase >= STARTING && a->phase <= SETTLING)
		add(list, GO_LOST, actor, 0, 0);
	if (actor >= CLIENTS + EXECUTORS && (a->phase == CLAIMED || a->phase == SETTLING))
		add(list, GO_LOST, actor, 0, 0);
}

static void
message_steps(const World *w, List *list)
{
	int			locked = locked_message(w);

	for (int i = 0; i < w->messages; i++)
	{
		const Message *m = &w->message[i];
		bool		locks = setup.amounts.locks && !is_local(w, m->actor) &&
			ledger_locks(&w->ledger, m);

		if (i > 0 && memcmp(m, m - 1, sizeof(*m)) == 0)
			continue;			/* its twin was offered */
		if (cut_off(w, m))
		{
			if (!m->late && LEFT(late) > 0)
				add(list, TIME_OUT, i, 0, 0);
			continue;
		}
		if (locks && !m->locked)
		{
			if (locked < 0)
				add(list, LOCK, i, 0, 0);
		}
		else
		{
			add(list, TAKE, i, ANSWERED, 0);
			if (!m->late && LEFT(lose) > 0)
				add(list, TAKE, i, REPLY_LOST, 0);
			if (LEFT(duplicate) > 0 && w->messages < MESSAGES)
				add(list, TAKE, i, DUPLICATED, 0);
		}
		if (m->locked || m->late)
			continue;
		if (LEFT(lose) > 0)
			add(list, TAKE, i, REQUEST_LOST, 0);
		if (LEFT(late) > 0)
			add(list, TIME_OUT, i, 0, 0);
	}
}

static void
sweep_steps(const World *w, List *list)
{
	if (row_in(w, LL_RESERVED, true))
		add(list, CLAIM, 0, 0, 0);
	if (row_in(w, LL_STARTED, true))
		add(list, END_EXECUTIONS, 0, 0, 0);
	if (local_due(w))
		add(list, LOCAL_SWEEP, 0, 0, 0);
	if (locked_message(w) >= 0)
		return;
	if (row_in(w, LL_EXPIRING, false))
		add(list, FINISH, 0, 0, 0);
	if (owes(w) && w->ledger.pair.accrued_at < w->clock)
		add(list, REPAY, 0, 0, 0);
}

static void
operator_steps(const World *w, List *list)
{
	const Ledger *l = &w->ledger;

	if (LEFT(publish) > 0 && l->policies < POLICIES)
		add(list, PUBLISH, 0, 0, 0);
	if (locked_message(w) >= 0)
		return;
	if (LEFT(freeze) > 0 && !l->pair.frozen)
		add(list, FREEZE, 0, 0, 0);
	if (LEFT(unfreeze) > 0 && l->pair.frozen)
		add(list, UNFREEZE, 0, 0, 0);
	if (LEFT(grant) > 0)
		add(list, GRANT, 0, 0, 0);
	if (LEFT(record) > 0)
		add(list, RECORD, 0, 0, 0);
	for (int i = 0; i < CLIENTS && LEFT(attest) > 0; i++)
	{
		const LLReservation *r = &l->row[i].r;

		if (r->state != LL_USAGE_UNKNOWN)
			continue;
		if (r->progress_units > 0)
			add(list, ATTEST, i, (int) r->progress_units - 1, 0);
		if (known(w, i))
			add(list, ATTEST, i, w->ghost[i].ran, 0);
	}
}

static bool
falls(const Report *older, const Report *newer)
{
	return older->spent < newer->spent || older->retired < newer->retired ||
		older->excess < newer->excess || older->sealed < newer->sealed;
}

/* reconcile_steps: the next report, an old one again, an old one under the next number. */
static void
reconcile_steps(const World *w, int s, List *list)
{
	const Issued *shard = &w->ledger.shard[s];
	const Local *local = &w->local[s];
	int			next = shard->reconciled + 1;

	if (next <= local->cut)
		add(list, RECONCILE, s, next, next);
	if (shard->reconciled > 0 && LEFT(again) > 0)
		add(list, RECONCILE, s, shard->reconciled, shard->reconciled);
	if (next < local->cut && LEFT(again) > 0)
		add(list, RECONCILE, s, next + 1, next + 1);
	for (int old = 0; old < shard->reconciled && LEFT(foreign) > 0; old++)
		if (next <= REPORTS && falls(&local->report[old], &local->report[shard->reconciled]))
			add(list, RECONCILE, s, next, old);
}

static void
shard_steps(const World *w, List *list)
{
	for (int s = 0; s < SHARDS; s++)
	{
		const Issued *shard = &w->ledger.shard[s];
		const Local *local = &w->local[s];
		int			g = gateway_of(s);

		if (!shard->there)
		{
			if (LEFT(issue) > 0 && locked_message(w) < 0 && (s == 0 ? setup.amounts.shard1 : setup.amounts.shard2) > 0)
				add(list, ISSUE, s, 0, 0);
			continue;
		}
		if (LEFT(again) > 0 && locked_message(w) < 0)
			add(list, ISSUE, s, 1, 0);
		if (!local->accepted && !w->gateway[g].cut && shard->boot == w->gateway[g].boot &&
			shard->fence > w->gateway[g].fence && w->clock < shard->expires_at)
			add(list, ACCEPT, s, g, 0);
		else if (LEFT(again) > 0)
			add(list, ACCEPT, s, g, 1);
		if (LEFT(foreign) > 0)
			add(list, ACCEPT, s, 1 - g, 2);
		if (LEFT(write_off) > 0 && !shard->settled && locked_message(w) < 0)
			add(list, WRITE_OFF, s, 0, 0);
		if (!local->accepted)
			continue;
		if (LEFT(seal) > 0)
			add(list, SEAL, s, 0, 0);
		if (LEFT(report) > 0 && local->cut < REPORTS - 1)
			for (int receipts = gateway_unreported(w, s) > 0; receipts >= 0; receipts--)
				add(list, REPORT, s, receipts, 0);
		if (locked_message(w) < 0 && !w->gateway[g].cut)
			reconcile_steps(w, s, list);
	}
	for (int g = 0; g < GATEWAYS; g++)
	{
		if (LEFT(boot) > 0 && (g == 0 || !setup.amounts.same_gateway))
			add(list, BOOT, g, 0, 0);
		if (w->gateway[g].cut)
			add(list, HEAL, g, 0, 0);
		else if (LEFT(cut) > 0 && (g == 0 || !setup.amounts.same_gateway))
			add(list, CUT, g, 0, 0);
	}
	/* what was never started is bound by the receipt that says so (D1) */
	for (int i = 0; i < CLIENTS; i++)
		if (w->item[i].r.state == LL_USAGE_UNKNOWN && known(w, i))
			add(list, LOCAL_RECEIPT, i,
				w->item[i].operation > 0 ? w->item[i].operation : RECORDED + 1 + i, 0);
}

/* steps_of lists what may happen next; fixed order, so that runs can be repeated. */
int
steps_of(const World *w, Step *step)
{
	List		list = {step, 0};

	message_steps(w, &list);
	for (int i = 0; i < ACTORS; i++)
	{
		if (w->actor[i].phase == DONE)
			continue;
		if (w->messages < MESSAGES && !waits(w, i))
		{
			if (is_client(i))
				client_steps(w, i, &list);
			else if (is_executor(i))
				executor_steps(w, i, &list);
			else
				reconciler_steps(w, i, &list);
		}
		restart_steps(w, i, &list);
	}
	sweep_steps(w, &list);
	operator_steps(w, &list);
	if (setup.amounts.shard1 > 0 || LEFT(cut) > 0)
		shard_steps(w, &list);
	if (LEFT(tick) > 0)
		add(&list, TICK, 0, 0, 0);
	if (LEFT(back) > 0 && w->clock > BASE)
		add(&list, STEP_BACK, 0, 0, 0);
	if (LEFT(crash) > 0 && locked_message(w) >= 0)
		add(&list, CRASH, 0, 0, 0);
	return list.count;
}

/* use takes one of what is left of an allowance. */
#define USE(name)	use(&w->left[offsetof(Allowances, name) / sizeof(int)])

static void
use(uint8_t *left)
{
	if (*left > 0)
		--*left;
}

/* ---- replies ------------------------------------------------------------- */

/* tell keeps the furthest that anybody was told of a reservation. */
static void
tell(World *w, int id, const Answer *a)
{
	Ghost	   *g = &w->ghost[id];

	if (a->outcome != LL_ACCEPTED)
		return;
	g->told = a->state;
	if (a->state == LL_SETTLED || a->state == LL_SETTLED_WITH_DEBT)
		g->told_actual = a->actual;
}

static void
hear_client(World *w, int c, const Message *m, const Answer *a)
{
	Actor	   *actor = &w->actor[c];
	bool		accepted = a->outcome == LL_ACCEPTED;
	int			e = executor_of(c);

	actor->phase = DONE;
	if (m->call == RESERVE && !accepted)
		actor->phase = REFUSED;
	if (m->call == RESERVE && accepted && a->state == LL_RESERVED)
		actor->phase = HOLDS;
	if (m->call == EXTEND)
		actor->phase = HOLDS;
	if (m->call == RESERVE && accepted && a->state == LL_STARTED && m->operation > 0)
	{
		actor->phase = GIVEN;
		if (w->actor[e].phase == IDLE)
		{
			w->actor[e].phase = MAY_RUN;
			w->ghost[c].runner = operation_of(e);
		}
	}
}

/* hear_executor: one that was told to leave it to another may take no notice, and send a receipt. */
static void
hear_executor(World *w, int e, const Message *m, const Answer *a)
{
	Actor	   *actor = &w->actor[e];

	actor->phase = DONE;
	if (m->call == PROGRESS)
		actor->phase = RAN;
	if (m->call == START && a->outcome == LL_ACCEPTED && a->state == LL_STARTED)
	{
		actor->phase = MAY_RUN;
		w->ghost[m->id].runner = m->operation;
	}
	if (m->call == START && a->outcome == LL_CONFLICT && LEFT(foreign) > 0)
	{
		USE(foreign);
		actor->phase = RAN;
	}
}

static void
hear(World *w, const Message *m, const Answer *a)
{
	tell(w, m->id, a);
	w->actor[m->actor].lost = false;
	if (is_client(m->actor))
		hear_client(w, m->actor, m, a);
	else if (is_executor(m->actor))
		hear_executor(w, m->actor, m, a);
	else
		w->actor[m->actor].phase = IDLE;
}

/* ---- taking a step ------------------------------------------------------- */

int
units_of(int client)
{
	const int	units[CLIENTS] = {setup.amounts.units1, setup.amounts.units2, setup.amounts.units3};

	return units[client];
}

static const Phase phase_of[] = {
	[RESERVE] = RESERVING,[START] = STARTING,[SETTLE] = SETTLING,[RELEASE] = RELEASING,
	[UNKNOWN] = REPORTING_UNKNOWN,[PROGRESS] = REPORTING_PROGRESS,[EXTEND] = EXTENDING,
	[RESOLVE] = RESOLVING
};

static void
send_call(World *w, int actor, CallName call)
{
	Actor	   *a = &w->actor[actor];
	int			id = reservation_of(w, actor);
	int			at_once = setup.amounts.at_once ? executor_of(id) : -1;
	Message		m = {.actor = actor,.call = call,.id = id,.until = -1};

	switch (call)
	{
		case RESERVE:
			if (a->phase == IDLE)
				a->local = wants_local(w, actor);
			else if (a->phase == REFUSED)
				USE(retry);
			m.units = units_of(actor);
			if (at_once >= 0 && !a->local)
				m.operation = operation_of(at_once);
			/* the deadline is the caller's, the same at every try */
			if (setup.amounts.deadline > 0)
				m.until = setup.amounts.deadline;
			break;
		case START:
			if (w->actor[id].phase == HOLDS)
				w->actor[id].phase = GIVEN;
			m.operation = operation_of(actor);
			break;
		case SETTLE:
			m.operation = is_executor(actor) ? operation_of(actor)
				: w->ledger.row[id].operation;
			m.units = w->ghost[id].ran;
			break;
		case UNKNOWN:
			if (a->phase == RAN)
				USE(forget);
			m.operation = operation_of(actor);
			break;
		case PROGRESS:
			if (a->phase == RAN)
				USE(progress);
			m.operation = operation_of(actor);
			/* what is known of it grows from report to report */
			m.units = w->ghost[id].ran > LEFT(progress) ? w->ghost[id].ran - LEFT(progress) : 0;
			break;
		case EXTEND:
			if (a->phase == HOLDS)
				USE(extend);
			m.units = setup.amounts.more;
			m.until = (int) (w->clock - BASE) + setup.amounts.hold_ttl;
			break;
		case RESOLVE:
			m.units = units_of(actor);
			break;
		case RELEASE:
			if (a->phase == GIVEN)
				USE(cancel);
			break;
	}
	a->phase = phase_of[call];
	a->lost = false;
	put_message(w, m);
}

/* call_with_lock decides by the clock, and by the policies, of when the lock was taken. */
static Answer
call_with_lock(World *w, const Message *m)
{
	int8_t		policies = w->ledger.policies;
	Answer		answer;

	w->ledger.policies = w->locked_policies;
	answer = ledger_call(&w->ledger, m, w->locked_at);
	w->ledger.policies = policies;
	w->locked_policies = 0;
	w->locked_at = 0;
	return answer;
}

static void
take_message(World *w, int index, Manner manner, Deed *deed)
{
	Message		m = w->message[index];
	bool		local = is_local(w, m.actor);

	m = pull_message(w, index);
	if (manner == REPLY_LOST || manner == REQUEST_LOST)
	{
		USE(lose);
		w->actor[m.actor].lost = true;
	}
	if (manner == REQUEST_LOST)
		return;
	deed->message = m;
	deed->called = !local;
	deed->local = local;
	deed->now = m.locked ? w->locked_at : w->clock;
	deed->answer = local ? gateway_call(w, &m)
		: m.locked ? call_with_lock(w, &m) : ledger_call(&w->ledger, &m, deed->now);
	if (manner == DUPLICATED)
	{
		Message		copy = m;

		USE(duplicate);
		copy.late = true;
		copy.locked = false;
		put_message(w, copy);
	}
	if (!m.late && manner != REPLY_LOST)
		hear(w, &m, &deed->answer);
}

/* let_go leaves what an actor has sent to the network: nobody waits for it. */
static void
let_go(World *w, int actor)
{
	for (int i = 0; i < w->messages; i++)
		if (w->message[i].actor == actor && !w->message[i].late)
		{
			Message		m = pull_message(w, i);

			m.late = true;
			put_message(w, m);
			return;
		}
}

static void
go_lost(World *w, int actor, bool for_good)
{
	Actor	   *a = &w->actor[actor];

	let_go(w, actor);
	a->lost = false;
	if (is_client(actor))
	{
		a->phase = for_good ? DONE : RESERVING;
		a->lost = !for_good;
	}
	else
		a->phase = is_executor(actor) ? FORGOT : IDLE;
}

/* boot_actors: who worked at the gateway forgets as well. */
static void
boot_actors(World *w, int g)
{
	for (int i = 0; i < CLIENTS + EXECUTORS; i++)
	{
		const Actor *a = &w->actor[i];

		if (!is_local(w, i) || gateway_of(reservation_of(w, i)) != g)
			continue;
		if (is_client(i) && a->phase >= RESERVING && a->phase <= EXTENDING)
			go_lost(w, i, false);
		if (is_executor(i) && a->phase >= STARTING && a->phase <= SETTLING)
			go_lost(w, i, false);
	}
}

static void
time_out(World *w, int index)
{
	int			actor = w->message[index].actor;

	USE(late);
	w->actor[actor].lost = true;
	let_go(w, actor);
}

/* crash: the transaction that held the pair vanishes; what is committed stays. */
static void
crash(World *w)
{
	Message		m = pull_message(w, locked_message(w));

	USE(crash);
	w->locked_at = 0;
	w->locked_policies = 0;
	if (!m.late)
		w->actor[m.actor].lost = true;
}

static void
lease(World *w, int q, Deed *deed)
{
	int			id;

	USE(lease);
	deed->called = true;
	deed->answer = ledger_lease(&w->ledger, w->clock, &id);
	if (deed->answer.outcome != LL_ACCEPTED)
		return;
	w->actor[q].phase = CLAIMED;
	w->actor[q].item = id;
}

/* on_ledger is one transaction of a sweep or an operator. */
static void
on_ledger(World *w, Step step, Deed *deed)
{
	deed->called = true;
	deed->answer = ledger_step(&w->ledger, w, step);
}

static void
on_gateway(World *w, Step step, Deed *deed)
{
	deed->local = true;
	deed->answer = gateway_step(w, step);
}

static void
run(World *w, int executor, int units)
{
	Ghost	   *g = &w->ghost[target_of(executor - CLIENTS)];

	g->runs++;
	g->ran += units;
	w->actor[executor].phase = RAN;
}

void
take_step(World *w, Step step, Deed *deed)
{
	*deed = (Deed) {.step = step,.now = w->clock};
	switch ((StepKind) step.kind)
	{
		case SEND:
			send_call(w, step.who, step.what);
			break;
		case TAKE:
			take_message(w, step.who, step.what, deed);
			break;
		case TIME_OUT:
			time_out(w, step.who);
			break;
		case LOCK:
			{
				Message		m = pull_message(w, step.who);

				m.locked = true;
				w->locked_at = w->clock;
				w->locked_policies = w->ledger.policies;
				put_message(w, m);
			}
			break;
		case RUN:
			run(w, step.who, step.what);
			break;
		case GO_LOST:
			USE(restart);
			go_lost(w, step.who, step.what);
			break;
		case TICK:
			USE(tick);
			w->clock++;
			break;
		case STEP_BACK:
			USE(back);
			w->clock = w->clock > BASE + 2 ? w->clock - 2 : BASE;
			/* a pair that has seen nothing later goes on from here, by the new policy */
			if (w->ledger.policies > 1 && w->ledger.in_force == 0 && w->clock < w->switched_from)
				w->switched_from = w->clock;
			break;
		case CRASH:
			crash(w);
			break;
		case CUT:
			USE(cut);
			w->gateway[step.who].cut = true;
			break;
		case HEAL:
			w->gateway[step.who].cut = false;
			break;
		case LEASE:
			lease(w, step.who, deed);
			break;
		case ATTEST:
			USE(attest);
			on_ledger(w, step, deed);
			break;
		case PUBLISH:
			USE(publish);
			on_ledger(w, step, deed);
			w->switched_at = w->latest;
			w->switched_from = w->clock;
			break;
		case FREEZE:
			USE(freeze);
			on_ledger(w, step, deed);
			break;
		case UNFREEZE:
			USE(unfreeze);
			on_ledger(w, step, deed);
			break;
		case GRANT:
			USE(grant);
			on_ledger(w, step, deed);
			break;
		case RECORD:
			USE(record);
			on_ledger(w, step, deed);
			break;
		case ISSUE:
			if (step.what)
				USE(again);
			else
				USE(issue);
			on_ledger(w, step, deed);
			break;
		case WRITE_OFF:
			USE(write_off);
			on_ledger(w, step, deed);
			break;
		case CLAIM:
		case FINISH:
		case END_EXECUTIONS:
		case REPAY:
			on_ledger(w, step, deed);
			break;
		case RECONCILE:
			if (step.what != step.how)
				USE(foreign);
			else if (step.what != w->ledger.shard[step.who].reconciled + 1)
				USE(again);
			deed->called = true;
			deed->answer = ledger_reconcile(&w->ledger, step.who, step.what,
											&w->local[step.who].report[step.how], w->clock);
			break;
		case ACCEPT:
			if (step.how == 1)
				USE(again);
			if (step.how == 2)
				USE(foreign);
			on_gateway(w, step, deed);
			break;
		case SEAL:
			USE(seal);
			on_gateway(w, step, deed);
			break;
		case BOOT:
			USE(boot);
			on_gateway(w, step, deed);
			boot_actors(w, step.who);
			break;
		case REPORT:
			USE(report);
			on_gateway(w, step, deed);
			break;
		case LOCAL_SWEEP:
		case LOCAL_RECEIPT:
			on_gateway(w, step, deed);
			break;
	}
	if (w->clock > w->latest)
		w->latest = w->clock;
}

/* ---- words --------------------------------------------------------------- */

static int
actor_text(int actor, char *text, size_t size)
{
	return is_client(actor) ? snprintf(text, size, "client%d", actor + 1)
		: is_executor(actor) ? snprintf(text, size, "executor%d", actor - CLIENTS + 1)
		: snprintf(text, size, "reconciler%d", actor - CLIENTS - EXECUTORS + 1);
}

/* step_text writes a step so that a trace names it whatever else there is. */
int
step_text(const World *w, Step step, char *text, size_t size)
{
	const char *kind = kind_text[step.kind];
	const Message *m;
	char		who[16];

	switch ((StepKind) step.kind)
	{
		case SEND:
			actor_text(step.who, who, sizeof(who));
			return snprintf(text, size, "%s %s %s", kind, who, call_text[step.what]);
		case TAKE:
		case TIME_OUT:
		case LOCK:
			m = &w->message[step.who];
			actor_text(m->actor, who, sizeof(who));
			return snprintf(text, size, "%s %s %s r%d op%d %d until %d%s%s%s", kind, who,
							call_text[m->call], m->id + 1, m->operation, m->units, m->until,
							m->late ? " late" : "", m->locked ? " locked" : "",
							step.kind == TAKE ? manner_text[step.what] : "");
		case RUN:
			actor_text(step.who, who, sizeof(who));
			return snprintf(text, size, "%s %s %d", kind, who, step.what);
		case GO_LOST:
			actor_text(step.who, who, sizeof(who));
			return snprintf(text, size, "%s %s%s", kind, who, step.what ? " for-good" : "");
		case LEASE:
			actor_text(step.who, who, sizeof(who));
			return snprintf(text, size, "%s %s", kind, who);
		case ATTEST:
		case LOCAL_RECEIPT:
			return snprintf(text, size, "%s r%d %d", kind, step.who + 1, step.what);
		case CUT:
		case HEAL:
		case BOOT:
			return snprintf(text, size, "%s gateway%d", kind, step.who + 1);
		case ISSUE:
			return snprintf(text, size, "%s shard%d%s", kind, step.who + 1, step.what ? " again" : "");
		case ACCEPT:
			return snprintf(text, size, "%s shard%d gateway%d%s", kind, step.who + 1, step.what + 1,
							step.how == 1 ? " again" : step.how == 2 ? " foreign" : "");
		case RECONCILE:
			return snprintf(text, size, "%s shard%d number %d figures %d", kind, step.who + 1,
							step.what, step.how);
		case REPORT:
			return snprintf(text, size, "%s shard%d receipts %d", kind, step.who + 1, step.what);
		case SEAL:
		case WRITE_OFF:
			return snprintf(text, size, "%s shard%d", kind, step.who + 1);
		case TICK: case STEP_BACK: case CRASH: case CLAIM: case FINISH: case END_EXECUTIONS:
		case REPAY: case PUBLISH: case FREEZE: case UNFREEZE: case GRANT: case RECORD:
		case LOCAL_SWEEP:
			break;
	}
	return snprintf(text, size, "%s", kind);
}
