/*
 * shards.c
 *	  The ledger's rows of shards against those of their gateway (G).
 */
#include "auditor.h"

typedef __int128 Wide;

#define LL(x)	((long long) (x))

static const Interleaving *
whose(const History *h, int subject)
{
	for (int i = 0; i < h->interleavings; i++)
		if (h->interleaving[i].subject == subject)
			return &h->interleaving[i];
	return NULL;
}

static bool
adds_up(int64_t allocated, int64_t available, int64_t reserved, int64_t spent, int64_t retired,
		int64_t excess)
{
	return (Wide) available + reserved + spent + retired == allocated && available >= 0 &&
		reserved >= 0 && spent >= 0 && retired >= 0 && excess >= 0;
}

static const ShardRow *
issued(const Tables *t, int subject, int shard)
{
	for (int i = 0; i < t->shards; i++)
		if (t->shard[i].shard == shard && t->shard[i].subject == subject)
			return &t->shard[i];
	return NULL;
}

static const LocalShardRow *
spent_as(const Tables *t, int subject, int shard)
{
	for (int i = 0; i < t->local_shards; i++)
		if (t->local_shard[i].shard == shard && t->local_shard[i].subject == subject)
			return &t->local_shard[i];
	return NULL;
}

/* check_local: the gateway's figures are those of what is held against the shard (G1, G4). */
static void
check_local(const History *h, const Tables *t, const LocalShardRow *l)
{
	const Interleaving *in = whose(h, l->subject);
	const ShardRow *s = issued(t, l->subject, l->shard);
	const char *name = text_of(l->shard);
	Wide		reserved = 0;
	Wide		used = 0;

	if (s == NULL || l->allocated > s->allocated)
		found(CHECK_shard_unissued, in, "%s: the gateway spends %lld units, and %lld were issued", name,
			  LL(l->allocated), LL(s == NULL ? 0 : s->allocated));
	else if (l->fence != s->fence || l->boot != s->boot || l->route != s->route)
		found(CHECK_shard_twice, in, "%s: accepted under fence %lld by another boot or route than it was issued to (%lld)",
			  name, LL(l->fence), LL(s->fence));
	if (!adds_up(l->allocated, l->available, l->reserved, l->spent, l->retired, l->excess) ||
		(l->sealed && l->available > 0))
		found(CHECK_shard_equation, in, "%s: %lld are not %lld + %lld + %lld + %lld at the gateway", name,
			  LL(l->allocated), LL(l->available), LL(l->reserved), LL(l->spent), LL(l->retired));
	for (int i = 0; i < t->items; i++)
	{
		const ItemRow *item = &t->item[i];

		if (item->subject != l->subject || item->shard != l->shard)
			continue;
		if (item->state == RESERVED || item->state == STARTED || item->state == USAGE_UNKNOWN)
			reserved += item->reserved;
		if (item->actual >= 0)
			used += item->actual;
		if (item->state == RESERVED && item->expires > l->expires)
			found(CHECK_shard_figures, in, "%s: a hold outlives its shard", name);
	}
	if (reserved != l->reserved || used != (Wide) l->spent + l->excess)
		found(CHECK_shard_figures, in, "%s: %lld reserved and %lld used, and its reservations say %lld and %lld",
			  name, LL(l->reserved), LL((Wide) l->spent + l->excess), LL(reserved), LL(used));
}

/* check_issued: what the ledger knows, and what it took back (G6). */
static void
check_issued(const History *h, const Tables *t, const ShardRow *s)
{
	const Interleaving *in = whose(h, s->subject);
	const LocalShardRow *l = spent_as(t, s->subject, s->shard);
	const char *name = text_of(s->shard);
	Wide		excess = 0;
	Wide		confirmed = 0;
	Wide		reminted = 0;
	Wide		receipted = 0;
	int64_t		sequence = 0;

	if (!adds_up(s->allocated, s->available, s->reserved, s->spent, s->retired, s->excess) ||
		(s->sealed && s->available > 0))
		found(CHECK_shard_equation, in, "%s: %lld are not %lld + %lld + %lld + %lld at the ledger", name,
			  LL(s->allocated), LL(s->available), LL(s->reserved), LL(s->spent), LL(s->retired));
	for (int i = 0; i < t->reports; i++)
	{
		const ReportRow *r = &t->report[i];

		if (r->subject != s->subject || r->shard != s->shard)
			continue;
		excess += r->excess;
		confirmed += r->confirmed;
		reminted += r->reminted;
		sequence = r->sequence > sequence ? r->sequence : sequence;
	}
	if (excess != s->excess)
		found(CHECK_shard_excess, in, "%s: %lld were used above it, and %lld are booked", name,
			  LL(s->excess), LL(excess));
	if (confirmed != s->confirmed || reminted != s->reminted || s->reminted > s->confirmed ||
		s->confirmed > s->retired)
		found(CHECK_minted_twice, in, "%s: %lld of %lld confirmed came back, %lld are retired, and reports say %lld of %lld",
			  name, LL(s->reminted), LL(s->confirmed), LL(s->retired), LL(reminted), LL(confirmed));
	for (int i = 0; i < t->receipts; i++)
	{
		const ReceiptRow *r = &t->receipt[i];
		const ItemRow *item = NULL;

		if (r->subject != s->subject || r->shard != s->shard)
			continue;
		if (r->actual >= 0)
			receipted += r->actual;
		for (int j = 0; j < t->items && item == NULL; j++)
			if (t->item[j].subject == r->subject && t->item[j].id == r->id)
				item = &t->item[j];
		if (t->gateway_read && s->gateway != 0 &&
			(item == NULL || item->shard != r->shard || item->state != r->state || item->actual != r->actual ||
			 item->operation != r->operation || item->sequence != r->sequence))
			found(CHECK_shard_receipt, in, "%s: the receipt of %s is not what its gateway has", name,
				  text_of(r->id));
	}
	if (receipted != s->receipted || sequence != s->sequence)
		found(CHECK_shard_receipt, in, "%s: %lld receipted in %lld reports, and the rows say %lld in %lld",
			  name, LL(s->receipted), LL(s->sequence), LL(receipted), LL(sequence));
	for (int i = 0; i < t->shards; i++)
		if (&t->shard[i] > s && t->shard[i].gateway == s->gateway && s->gateway != 0 &&
			t->shard[i].fence == s->fence)
			found(CHECK_shard_twice, in, "%s: another shard has its fence", name);
	if (!t->gateway_read || s->gateway == 0)
		return;
	if (s->confirmed > 0 && l == NULL)
		found(CHECK_shard_unknown, in, "%s: units came back of a shard that no gateway has", name);
	if (l == NULL)
		return;
	/* Neither what can still be used nor what is not known comes back. */
	if (s->confirmed > 0 &&
		(Wide) s->confirmed > (Wide) l->allocated - l->spent - l->reserved - l->available)
		found(CHECK_shard_unknown, in, "%s: %lld came back, and the gateway has %lld available, %lld reserved, %lld spent of %lld",
			  name, LL(s->confirmed), LL(l->available), LL(l->reserved), LL(l->spent), LL(l->allocated));
	if (s->spent > l->spent || s->retired > l->retired || s->excess > l->excess ||
		s->sequence > l->sequence || (s->sealed && !l->sealed))
		found(CHECK_shard_receipt, in, "%s: the ledger knows of more than its gateway", name);
	for (int i = 0; i < t->local_reports; i++)
	{
		const LocalReportRow *r = &t->local_report[i];

		if (r->subject == s->subject && r->shard == s->shard && r->sequence == s->sequence &&
			(r->available != s->available || r->reserved != s->reserved || r->spent != s->spent ||
			 r->retired != s->retired || r->excess != s->excess || r->sealed != s->sealed))
			found(CHECK_shard_receipt, in, "%s: report %lld is not what its gateway cut", name,
				  LL(r->sequence));
	}
}

void
judge_shards(const History *h, const Tables *t)
{
	for (int i = 0; i < t->local_shards; i++)
		check_local(h, t, &t->local_shard[i]);
	for (int i = 0; i < t->shards; i++)
		check_issued(h, t, &t->shard[i]);
}
