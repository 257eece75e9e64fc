/*
 * signing.c
 *	  The key that signs here: opened, judged, used and wiped at each signing (G3).
 *
 * No hook fires when a file changes behind its path, so nothing of it is kept,
 * and a key that was replaced signs from the next call on.  No error, detail
 * or log line has a byte of it: the words of docs/envelope.md say what is
 * wrong with the file, and its path is for superusers.
 */
#include "postgres.h"

#include "signing.h"

#include "answer.h"
#include "args.h"
#include "errors.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"

PG_FUNCTION_INFO_V1(limitledger_signing_key_id);

#define SETTING "limitledger.signing_key_file"

static char *signing_key_file = NULL;

/* ll_signing_init defines the setting. */
void
ll_signing_init(void)
{
	DefineCustomStringVariable(SETTING,
							   "Names the file of the secret key that signs shards or reports.",
							   "A file of the server's user, of mode 0600, outside the data folder. Empty: nothing can be signed.",
							   &signing_key_file, "", PGC_SUSET, GUC_SUPERUSER_ONLY,
							   NULL, NULL, NULL);
}

static void pg_attribute_noreturn()
refuse_unset(void)
{
	ereport(ERROR,
			(errcode(LL_ERRCODE_KEY_FILE),
			 errmsg(SETTING " is not set"),
			 errdetail("Without a key nothing can be signed."),
			 errhint("Make one with tools/make-signing-key as the user that the server runs as, and let a superuser set it.")));
}

/* refuse_file says what is wrong with the file; `problem` is the errno of its opening or reading. */
static void pg_attribute_noreturn()
refuse_file(LLKeyError error, int problem)
{
	bool		system = error == LL_KEY_OPEN || error == LL_KEY_READ;

	errno = problem;
	ereport(ERROR,
			(errcode(LL_ERRCODE_KEY_FILE),
			 errmsg("the file of " SETTING " can't be used"),
			 system ? errdetail("%s: %s: %m.", ll_key_error_name(error), ll_key_error_meaning(error))
			 : errdetail("%s: %s.", ll_key_error_name(error), ll_key_error_meaning(error)),
			 errhint("It must be a regular file of the user that the server runs as, of mode 0600, outside the data folder, as tools/make-signing-key makes it.")));
}

/*
 * ll_sign lets `seal` use the key, and wipes it whatever happens.  `kid` becomes
 * its id.  What is to be signed is put together before: while there is a key in
 * memory, nothing is asked of PostgreSQL.
 */
LLFault
ll_sign(LLSealer seal, void *arg, char kid[LL_KID_MAX + 1])
{
	LLSecretKey key;
	LLFault		fault = {LL_ENVELOPE_NONE, NULL};
	LLKeyError	error;

	if (signing_key_file == NULL || signing_key_file[0] == '\0')
		refuse_unset();
	error = ll_key_read(signing_key_file, DataDir, &key);
	if (error != LL_KEY_NONE)
		refuse_file(error, errno);
	PG_TRY();
	{
		memcpy(kid, key.kid, sizeof(key.kid));
		fault = seal(&key, arg);
	}
	PG_FINALLY();
	{
		ll_key_wipe(&key);
	}
	PG_END_TRY();
	return fault;
}

static LLFault
take_public(const LLSecretKey *key, void *arg)
{
	ll_key_public(key, arg);
	return (LLFault) {LL_ENVELOPE_NONE, NULL};
}

/*
 * limitledger_signing_key_id reads the key file and returns the id of the key
 * and the line that others trust it by (G3).  Errors: LL401.
 */
Datum
limitledger_signing_key_id(PG_FUNCTION_ARGS)
{
	char		kid[LL_KID_MAX + 1];
	char		line[LL_KEY_LINE_MAX + 1];
	LLPublicKey key;
	Datum		values[2];
	bool		nulls[2] = {false};

	ll_refuse_bound(fcinfo, "signing_key_id()");
	(void) ll_sign(take_public, &key, kid);
	if (ll_public_key_write(&key, line) != LL_KEY_NONE)
		ll_broken("G3", "a signing key has no public line");
	values[0] = CStringGetTextDatum(kid);
	values[1] = CStringGetTextDatum(line);
	return ll_answer_row(fcinfo, values, nulls);
}
