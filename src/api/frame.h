/*
 * frame.h
 *	  A call about reservations on its way through ll_run: what it asks, one element
 *	  or many, and the receipts that answer it.
 */
#ifndef LL_API_FRAME_H
#define LL_API_FRAME_H

#include "postgres.h"

#include "fmgr.h"
#include "ledger/ledger.h"

typedef struct LLFrame
{
	void	   *elements;
	int			count;
	LLReceipt  *receipts;
	Datum		subject;
	Datum		id;
	Datum		other;			/* operation, extension or digest */
	LLUnits		units;
	LLExtensionRow extension;
	bool		require_all;
} LLFrame;

extern LLFrame ll_frame(void *elements, int count);
extern void ll_frame_run(FunctionCallInfo fcinfo, void (*script) (void *arg), LLFrame *frame);
extern Datum ll_frame_answer(LLCall which, const LLFrame *frame);
extern Datum ll_frame_answer_all(FunctionCallInfo fcinfo, LLCall which, const LLFrame *frame);

#endif							/* LL_API_FRAME_H */
