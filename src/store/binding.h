/*
 * binding.h
 *	  Which subjects the login of this session may name (I1).
 */
#ifndef LL_STORE_BINDING_H
#define LL_STORE_BINDING_H

#include "postgres.h"

/*
 * What a call works with in the place of a subject that its login may not name.
 * No subject is empty (A1), so no row is ever found under it, and no policy
 * covers it: every call answers as if nothing were there.
 */
extern Datum ll_binding_nobody(void);

static inline bool
ll_binding_is_nobody(Datum subject)
{
	return VARSIZE_ANY_EXHDR(DatumGetPointer(subject)) == 0;
}

extern void ll_binding_init(void);
extern void ll_binding_begin(Oid function);
extern bool ll_binding_bound(void);
extern bool ll_binding_reaches(Datum subject);

#endif							/* LL_STORE_BINDING_H */
