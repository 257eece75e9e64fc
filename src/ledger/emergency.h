/*
 * emergency.h
 *	  Shards on the side of the ledger: issue, reconcile, write off (G), and the
 *	  old limiter's share, which takes the same way (B8).
 */
#ifndef LL_LEDGER_EMERGENCY_H
#define LL_LEDGER_EMERGENCY_H

#include "ledger.h"
#include "store/shards.h"

typedef struct LLIssueRequest
{
	Datum		subject;
	Datum		route;
	Datum		shard_id;
	Datum		gateway;		/* 0: the old limiter */
	LLUnits		units;
	Datum		reason;			/* of an operator, or 0 */
} LLIssueRequest;

/* A report as it was opened, or what the old limiter says. */
typedef struct LLReportRequest
{
	Datum		subject;
	Datum		shard_id;
	Datum		gateway;
	pg_uuid_t	boot_epoch;
	int64		fence;
	int64		sequence;
	Datum		digest;			/* bytea, of the document */
	LLShard		figures;
	LLShardReceipt *receipts;
	int			receipt_count;
} LLReportRequest;

typedef struct LLEmergencyAnswer
{
	LLVerdict	verdict;
	bool		found;			/* the shard stands, and so does its pair */
	LLEmergencyRow shard;
	LLPairWork	work;
	LLReportRow report;
} LLEmergencyAnswer;

extern void ll_issue_emergency(const LLIssueRequest *request, LLEmergencyAnswer *answer);
extern void ll_reconcile_emergency(const LLReportRequest *request, LLEmergencyAnswer *answer);
extern void ll_reconcile_legacy(const LLReportRequest *request, LLEmergencyAnswer *answer);
extern void ll_write_off_emergency(Datum subject, Datum shard_id, Datum reason,
								   LLEmergencyAnswer *answer);

#endif							/* LL_LEDGER_EMERGENCY_H */
