/*
 * payload.h
 *	  The two documents as bytes: what is signed, and nothing around it.
 */
#ifndef LL_ENVELOPE_PAYLOAD_H
#define LL_ENVELOPE_PAYLOAD_H

#include "envelope.h"

/*
 * Reading accepts exactly what writing can write.  A report without an array
 * for its receipts is read to be judged only.  Writing does not judge.
 */
extern LLFault ll_shard_read(LLSpan payload, LLShardDocument *shard);
extern LLFault ll_report_read(LLSpan payload, LLReportDocument *report);
extern LLFault ll_shard_write(const LLShardDocument *shard, LLBuffer *payload);
extern LLFault ll_report_write(const LLReportDocument *report, LLBuffer *payload);

#endif							/* LL_ENVELOPE_PAYLOAD_H */
