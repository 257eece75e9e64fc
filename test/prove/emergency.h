/* emergency.h: shards on the side of the ledger (G2, G6). */
#ifndef LL_PROVE_EMERGENCY_H
#define LL_PROVE_EMERGENCY_H

#include "local.h"
#include "settlement.h"

/*@ // G2: only a healthy pair gives units away, within its share
	predicate issuable(LLPair p, LLPolicy y, LLIssue i) =
		!i.draining && i.largest_share != 0 && !p.frozen && !i.route_frozen && i.units <= y.cap &&
		i.units <= i.largest_share - \min(i.outstanding, i.largest_share) &&
		pair_debt(p) == 0 && i.units <= p.head.available;
*/

/*@ requires \valid(pair) && \valid_read(policy) && \valid_read(issue) && \separated(pair, policy, issue);
	requires sound(*pair, *policy) && policy(*policy);
	requires 1 <= issue->units && 0 <= issue->outstanding && 0 <= issue->largest_share;
	assigns pair->head.available, pair->head.retired_for_emergency;
	ensures sound(*pair, *policy);
	ensures moved(\result) <==> issuable(\old(*pair), *policy, *issue);
	ensures moved(\result) || \result.outcome == LL_REFUSED;
	ensures no_wait(\result) && !\result.replayed && !\result.overflow;
	ensures pair->head.available == \old(pair->head.available) - (MOVED ? issue->units : 0);
	ensures pair->head.retired_for_emergency ==
		\old(pair->head.retired_for_emergency) + (MOVED ? issue->units : 0); */
extern LLVerdict ll_issue_shard(LLPair *pair, const LLPolicy *policy, const LLIssue *issue);

/*@ // what the ledger keeps of a shard
	predicate issued(LLIssuedShard i) =
		kept(i.last) && 0 <= i.receipted <= i.last.spent + i.last.excess &&
		0 <= i.reminted <= i.confirmed && i.confirmed <= i.last.retired;

	// a report that may follow the last one (G1, G6)
	predicate follows(LLShard last, LLShard next) =
		shard(next) && next.allocated == last.allocated && next.spent >= last.spent &&
		next.excess >= last.excess && next.retired >= last.retired && (last.sealed ==> next.sealed);

	// units are confirmed unused only if all that was used is accounted for (G6)
	predicate proven(LLIssuedShard i, LLShard next, integer receipted) =
		(next.sealed || i.legacy) && i.receipted + receipted == next.spent + next.excess && !i.written_off;
*/

/*@ requires \valid(pair) && \valid_read(policy) && \valid(issued) && \valid_read(reported) && \valid(done);
	requires \separated(pair, policy, issued, reported, done);
	requires sound(*pair, *policy) && policy(*policy) && issued(*issued) && 0 <= receipted;
	assigns *pair, *issued, *done;
	ensures moved(\result) ==> follows(\old(issued->last), *reported) &&
		\old(issued->receipted) + receipted <= reported->spent + reported->excess;
	ensures !moved(\result) ==> same_pair(\old(*pair), *pair) &&
		same_shard(\old(issued->last), issued->last) && issued->confirmed == \old(issued->confirmed) &&
		issued->reminted == \old(issued->reminted) && issued->receipted == \old(issued->receipted);
	ensures no_wait(\result) && !\result.replayed;
	ensures moved(\result) ==> sound(*pair, *policy) && keeps(\old(*pair), *pair);
	ensures moved(\result) ==> issued(*issued) && same_shard(*reported, issued->last) &&
		issued->receipted == \old(issued->receipted) + receipted;
	ensures moved(\result) ==> done->excess == reported->excess - \old(issued->last.excess) &&
		pair->head.spent == \old(pair->head.spent) + done->excess &&
		pair->head.reserved == \old(pair->head.reserved);
	ensures moved(\result) ==> done->confirmed == issued->confirmed - \old(issued->confirmed);
	ensures moved(\result) && proven(\old(*issued), *reported, receipted) ==>
		issued->confirmed == reported->retired;
	ensures moved(\result) && !proven(\old(*issued), *reported, receipted) ==> done->confirmed == 0;
	ensures moved(\result) ==> 0 <= done->reminted <= done->confirmed &&
		issued->reminted == \old(issued->reminted) + done->reminted;
	ensures moved(\result) && issued->line != pair->head.line ==> done->reminted == 0;
	ensures moved(\result) && (breach || \old(pair->frozen)) ==> pair->frozen; */
extern LLVerdict ll_reconcile_shard(LLPair *pair, const LLPolicy *policy, LLIssuedShard *issued,
									const LLShard *reported, LLUnits receipted, bool breach,
									LLReconciled *done);

/*@ requires \valid_read(issued) && issued(*issued);
	assigns \nothing;
	ensures \result <==> issued->written_off ||
		(issued->last.available == 0 && issued->last.reserved == 0 &&
		 issued->confirmed == issued->last.retired &&
		 issued->receipted == issued->last.spent + issued->last.excess); */
extern bool ll_shard_settled(const LLIssuedShard *issued);

#ifdef PROVE_EMERGENCY

/*@ assigns \nothing;
	ensures says(\result, outcome, dimension) && !\result.replayed && no_wait(\result); */
static LLVerdict say(LLOutcome outcome, LLDimension dimension);

/*@ requires \valid_read(issued) && \valid_read(reported);
	assigns \nothing;
	ensures no_wait(\result) && !\result.replayed && !\result.overflow;
	ensures \result.outcome == LL_ACCEPTED || \result.outcome == LL_REFUSED;
	ensures \result.outcome == LL_ACCEPTED <==> follows(issued->last, *reported); */
static LLVerdict judge_report(const LLIssuedShard *issued, const LLShard *reported);

#endif

#endif							/* LL_PROVE_EMERGENCY_H */
