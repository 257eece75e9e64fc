/*
 * recovery.h
 *	  Whether this database is the original, or may be a copy of it (G7).
 *
 * The row of `incarnation` says where the ledger lives and what it takes itself
 * for; the witness file, which no copy of the database carries along, has to
 * name the same incarnation.
 */
#ifndef LL_STORE_RECOVERY_H
#define LL_STORE_RECOVERY_H

#include "postgres.h"

#include "access/xlogdefs.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

typedef enum LLRecovery
{
	LL_RECOVERY_NORMAL,			/* the witness agrees */
	LL_RECOVERY_UNSET,			/* no witness is set up, so nobody can tell */
	LL_RECOVERY_PROMOTED,		/* another timeline than the one that was acknowledged */
	LL_RECOVERY_QUARANTINED		/* the witness names another database */
} LLRecovery;

/* What there is to tell about it. */
typedef struct LLRecoveryView
{
	LLRecovery	status;
	bool		standby;		/* a standby judges nothing: status is not set */
	const char *detail;			/* NULL: nothing to say */
	bool		acknowledged;	/* the rest is set */
	pg_uuid_t	incarnation;
	TimeLineID	timeline;		/* that was acknowledged */
	TimestampTz acknowledged_at;
} LLRecoveryView;

extern void ll_recovery_init(void);

/*
 * ll_recovery_look is for calls that write: it lets the witness file follow,
 * and gives the ledger a new incarnation after each start of the server.  The
 * other two read.
 */
extern LLRecovery ll_recovery_look(void);
extern void ll_recovery_show(LLRecoveryView *view);
extern bool ll_recovery_stops_admission(void);

/* ll_recovery_acknowledge makes this database the original. */
extern void ll_recovery_acknowledge(Datum actor, Datum reason, LLRecoveryView *before,
									pg_uuid_t *incarnation);

extern const char *ll_recovery_name(LLRecovery status);

#endif							/* LL_STORE_RECOVERY_H */
