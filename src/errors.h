/*
 * errors.h
 *	  SQLSTATE class LL: what is misuse or a broken invariant (D3).
 *
 * Numbered by chapter, never reused: 1 arguments, 2 policies, 3 the order of
 * calls, 4 keys, shards and recovery, 9 the inside.  sqlstates() prints this
 * list.  A refusal is never an error; deadlocks, lock time-outs and
 * serialization failures stay themselves.
 */
#ifndef LL_ERRORS_H
#define LL_ERRORS_H

#include "postgres.h"

#define LL_SQLSTATE(chapter, tens, ones) MAKE_SQLSTATE('L', 'L', chapter, tens, ones)

#define LL_ERROR_LIST(X) \
	X(NULL_ARGUMENT, '1', '0', '1', "a mandatory argument is NULL") \
	X(TEXT_ARGUMENT, '1', '0', '2', "a subject, route or id is empty, longer than 256 bytes or reserved") \
	X(UNITS_ARGUMENT, '1', '0', '3', "units are out of range") \
	X(DIGEST_ARGUMENT, '1', '0', '4', "a digest is neither 32 bytes nor sha256: and 64 hexadecimal digits") \
	X(ARRAY_ARGUMENT, '1', '0', '5', "the arrays of a batch differ in length, are too long or have several dimensions") \
	X(OTHER_ARGUMENT, '1', '0', '6', "another argument is out of its range") \
	X(UNITS_OVERFLOW, '1', '0', '7', "a sum of units would exceed bigint") \
	X(NOT_CANONICAL, '1', '0', '8', "the JSON holds a number without a canonical form") \
	X(POLICY_MISSING_FIELD, '2', '0', '1', "the policy document lacks a field") \
	X(POLICY_UNKNOWN_FIELD, '2', '0', '2', "the policy document has a field that admissionBudget.v1 does not know") \
	X(POLICY_FIELD, '2', '0', '3', "a field of the policy document has a value that is not allowed") \
	X(POLICY_GENERATION, '2', '0', '4', "policyGeneration is not the generation that the document gets") \
	X(POLICY_ORDER, '2', '0', '5', "the stage of the generation, or a newer one, does not allow it") \
	X(POLICY_ABSENT, '2', '0', '6', "there is no such generation") \
	X(NOT_STARTED, '3', '0', '1', "settle_usage on a reservation that was not started") \
	X(PREPARE, '3', '0', '2', "PREPARE TRANSACTION after a call that wrote") \
	X(KEY_FILE, '4', '0', '1', "the file of the signing key can't be used") \
	X(PUBLIC_KEY, '4', '0', '2', "a public key has another form, its id is taken, or its life has ended") \
	X(WITNESS, '4', '0', '3', "the witness file is not set, or can't be used") \
	X(GATEWAY, '4', '0', '4', "this database is no gateway, or another one already") \
	X(INVARIANT, '9', '0', '1', "a rule of the ledger does not hold; nothing was written") \
	X(MOVEMENT, '9', '0', '2', "a guard refused a change that no call makes")

enum LLErrorCode
{
#define X(name, c, t, o, meaning) LL_ERRCODE_##name = LL_SQLSTATE(c, t, o),
	LL_ERROR_LIST(X)
#undef X
};

/* A broken invariant: the transaction ends, the server goes on, no values shown. */
#define ll_broken(rule, what) \
	ereport(ERROR, \
			(errcode(LL_ERRCODE_INVARIANT), \
			 errmsg("limitledger: %s", what), \
			 errdetail("Rule %s does not hold; nothing was written.", rule), \
			 errhint("Run verify_conservation(), and report this as a bug.")))

#define ll_overflow(what) \
	ereport(ERROR, \
			(errcode(LL_ERRCODE_UNITS_OVERFLOW), \
			 errmsg("%s would overflow", what), \
			 errdetail("A sum of units exceeds the range of bigint; nothing was written."), \
			 errhint("Use a coarser unit.")))

#endif							/* LL_ERRORS_H */
