/*
 * witness.h
 *	  The witness file: which incarnations of a ledger may be the original (G7).
 *
 * One line:
 *
 *	  limitledger-witness-v1 LSN INCARNATION [NEXT]
 *
 * LSN is a position that the write-ahead log has reached.  NEXT is there while
 * an incarnation is being replaced: from before the transaction that does so
 * commits until after it has.  docs/shards.md has the whole story.
 *
 * No function here raises an error or allocates, since one caller runs after a
 * commit, where neither may happen.  errno says more after READ and WRITE.
 */
#ifndef LL_STORE_WITNESS_H
#define LL_STORE_WITNESS_H

#include "postgres.h"

#include "access/xlogdefs.h"
#include "utils/uuid.h"

/* The closed list of what may be wrong with the file: name, word, meaning. */
#define LL_WITNESS_PROBLEM_LIST(X) \
	X(NONE, "the file is sound") \
	X(MISSING, "the witness file is not there") \
	X(FOLDER, "the folder of the witness file can't be opened") \
	X(INSIDE, "the witness file is inside the data folder, so each copy would hold it") \
	X(SYMLINK, "the witness file is a symbolic link") \
	X(KIND, "the witness file is no regular file") \
	X(OWNER, "the witness file belongs to another user than the server's") \
	X(MODE, "the mode of the witness file allows more than 0600") \
	X(LINKED, "the witness file has a second name") \
	X(READ, "the witness file can't be read") \
	X(FORM, "the witness file is not one line of the documented form, and nothing else") \
	X(BUSY, "the witness file is kept locked by another process") \
	X(WRITE, "the witness file can't be written")

typedef enum LLWitnessProblem
{
#define X(name, meaning) LL_WITNESS_##name,
	LL_WITNESS_PROBLEM_LIST(X)
#undef X
} LLWitnessProblem;

#define LL_WITNESS_INCARNATIONS	2

/* What the file says. */
typedef struct LLWitness
{
	XLogRecPtr	lsn;
	int			count;			/* of incarnations; 0: the file is empty or of no known form */
	pg_uuid_t	incarnation[LL_WITNESS_INCARNATIONS];
} LLWitness;

/* The file, open and locked, so that what is written follows from what was read. */
typedef struct LLWitnessFile
{
	int			folder;
	int			file;
	const char *name;			/* within the folder, a part of the caller's path */
} LLWitnessFile;

extern const char *ll_witness_meaning(LLWitnessProblem problem);
extern bool ll_witness_names(const LLWitness *witness, const pg_uuid_t *incarnation);

/* ll_witness_read reads the file as it is at this moment, and locks nothing. */
extern LLWitnessProblem ll_witness_read(const char *path, LLWitness *witness);

/*
 * ll_witness_lock opens the file, makes one if `create`, locks and reads it.
 * BUSY: somebody else has it; try again.  With `create` a FORM that is not
 * known is no problem: count is 0.  After any problem nothing is open.
 */
extern LLWitnessProblem ll_witness_lock(LLWitnessFile *file, const char *path, bool create,
										LLWitness *witness);
extern LLWitnessProblem ll_witness_write(const LLWitnessFile *file, const LLWitness *witness);
extern void ll_witness_unlock(LLWitnessFile *file);

#endif							/* LL_STORE_WITNESS_H */
