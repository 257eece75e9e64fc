/*
 * answer.h
 *	  Rows that go out: receipts, one or many (J1, J2).
 */
#ifndef LL_API_ANSWER_H
#define LL_API_ANSWER_H

#include "postgres.h"

#include "fmgr.h"
#include "ledger/ledger.h"

extern void ll_answer_writes(const char *call);
extern Datum ll_answer_receipt(const LLReceipt *receipt);
extern Datum ll_answer_receipts(FunctionCallInfo fcinfo, const LLReceipt *receipts, int count);
extern Datum ll_answer_row(FunctionCallInfo fcinfo, const Datum *values, const bool *nulls);
extern Datum ll_answer_text(const char *text, bool *null);

#endif							/* LL_API_ANSWER_H */
