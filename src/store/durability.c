/*
 * durability.c
 *	  An acknowledged call is durable, whatever the session's settings (F4).
 *
 * A transaction that locked or wrote rows of the ledger commits with
 * synchronous_commit at least `on`: flushed here, and at the synchronous
 * standby where the server has one.  The session's own value is back before
 * the commit ends.  Such a transaction can't be prepared, because nobody would
 * own its locks (F5).
 *
 * The note must follow savepoints: only the outermost nesting level whose work
 * still stands is kept, since a level that rolls back takes every deeper one
 * with it.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "durability.h"
#include "errors.h"
#include "miscadmin.h"
#include "replication/syncrep.h"
#include "utils/guc.h"

static bool durability_required = true;
static bool shard_needs_standby = false;
static int	noted_level = 0;	/* 0: nothing locked or written */
static int	session_commit = -1;	/* the session's value while ours is in force */

/* The variable and what the server derives from it, as SET would. */
static void
set_commit(int value)
{
	synchronous_commit = value;
	assign_synchronous_commit(value, NULL);
}

static void
restore_session_commit(void)
{
	if (session_commit >= 0)
		set_commit(session_commit);
	session_commit = -1;
}

static void
on_transaction(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_PREPARE:
			if (noted_level > 0)
				ereport(ERROR,
						(errcode(LL_ERRCODE_PREPARE),
						 errmsg("a transaction that called limitledger can't be prepared"),
						 errdetail("A prepared transaction would hold the lock of its pairs with nobody to release it."),
						 errhint("Commit it, and repeat the call by the same id if the reply is lost.")));
			break;
		case XACT_EVENT_PRE_COMMIT:
			if (noted_level > 0 && durability_required &&
				synchronous_commit < SYNCHRONOUS_COMMIT_ON)
			{
				session_commit = synchronous_commit;
				set_commit(SYNCHRONOUS_COMMIT_ON);
			}
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
			restore_session_commit();
			noted_level = 0;
			break;
		case XACT_EVENT_PREPARE:
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_PARALLEL_ABORT:
			break;
	}
}

static void
on_subtransaction(SubXactEvent event, SubTransactionId id,
				  SubTransactionId parent, void *arg)
{
	int			level = GetCurrentTransactionNestLevel();

	if (event == SUBXACT_EVENT_COMMIT_SUB && noted_level == level)
		noted_level = level - 1;
	else if (event == SUBXACT_EVENT_ABORT_SUB && noted_level >= level)
		noted_level = 0;
}

/* ll_durability_init defines the setting and listens to transactions. */
void
ll_durability_init(void)
{
	DefineCustomBoolVariable("limitledger.durability_required",
							 "Flushes every ledger commit, whatever synchronous_commit says.",
							 "Off: the session's synchronous_commit decides, and an acknowledged call may be lost in a crash.",
							 &durability_required, true, PGC_SUSET, 0,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("limitledger.shard_needs_standby",
							 "Issues emergency shards only while a synchronous standby is connected.",
							 "On: a fail-over can't forget a shard that was issued.",
							 &shard_needs_standby, false, PGC_SUSET, 0,
							 NULL, NULL, NULL);
	RegisterXactCallback(on_transaction, NULL);
	RegisterSubXactCallback(on_subtransaction, NULL);
}

/* ll_durability_note: this transaction has locked or written rows of the ledger. */
void
ll_durability_note(void)
{
	int			level = GetCurrentTransactionNestLevel();

	if (noted_level == 0 || level < noted_level)
		noted_level = level;
}

/*
 * ll_durability_confirm waits for the synchronous standby, if there is one, on
 * behalf of a call that answers by what somebody else has committed and has
 * nothing of its own to commit: the other's wait may have been cancelled, and
 * this answer is the one that is trusted (F4).
 */
void
ll_durability_confirm(void)
{
	if (noted_level == 0)
		ll_durability_await();
}

/*
 * ll_durability_await does so even if this transaction has something to commit:
 * what is signed leaves before that, and whatever becomes of it (G8).
 */
void
ll_durability_await(void)
{
	int			session = synchronous_commit;

	if (!durability_required || RecoveryInProgress())
		return;
	HOLD_INTERRUPTS();
	set_commit(Max(session, SYNCHRONOUS_COMMIT_ON));
	SyncRepWaitForLSN(GetFlushRecPtr(NULL), false);
	set_commit(session);
	RESUME_INTERRUPTS();
}

/*
 * ll_durability_standby tells whether a synchronous standby is there to confirm
 * what is about to be committed, or none is asked for (G2).
 */
bool
ll_durability_standby(void)
{
	SyncRepStandbyData *standbys;

	return !shard_needs_standby ||
		(SyncRepStandbyNames != NULL && SyncRepStandbyNames[0] != '\0' &&
		 SyncRepGetCandidateStandbys(&standbys) > 0);
}
