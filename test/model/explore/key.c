/*
 * key.c
 *	  A world as 64 bits, so that it is not explored twice.
 *
 * Field by field, in words of four small figures: padding has no say.  What a
 * figure loses beyond 16 bits no sound world has.
 */
#include "world.h"

typedef struct Words
{
	uint64_t	word[256];
	int			count;
} Words;

static inline void
four(Words *k, int64_t a, int64_t b, int64_t c, int64_t d)
{
	k->word[k->count++] = (uint64_t) (uint16_t) a | (uint64_t) (uint16_t) b << 16 |
		(uint64_t) (uint16_t) c << 32 | (uint64_t) (uint16_t) d << 48;
}

/* bytes feeds what has no padding: arrays of small integers. */
static inline void
bytes(Words *k, const void *from, size_t size)
{
	size_t		words = (size + 7) / 8;

	k->word[k->count + (int) words - 1] = 0;
	memcpy(&k->word[k->count], from, size);
	k->count += (int) words;
}

static void
feed_row(Words *k, const Row *row)
{
	const LLReservation *r = &row->r;

	if (r->state == LL_ABSENT)
	{
		four(k, 0, 0, 0, 0);
		return;
	}
	four(k, r->state, r->reserved_units, r->actual_units, r->excess_units);
	four(k, r->overdraft_units, r->progress_units, r->expires_at - BASE, r->claimed_until - BASE);
	four(k, row->budget + 256 * row->excess_budget, row->asked + 256 * row->operation,
		 row->extended + 2 * row->attested, row->report);
}

static void
feed_budget(Words *k, const LLBudget *b)
{
	four(k, b->generation, b->epoch - BASE, b->opening, b->minted);
	four(k, b->overdraft_issued, b->available, b->reserved, b->spent);
	four(k, b->retired_for_emergency, b->overdraft_repaid, b->burned, b->carried);
	four(k, b->deficit, b->line, b->whole, 0);
}

static void
feed_shard(Words *k, const LLShard *s)
{
	four(k, s->allocated, s->available, s->reserved, s->spent);
	four(k, s->retired, s->excess, s->sealed, 0);
}

static void
feed_issued(Words *k, const Issued *s)
{
	if (!s->there)
		return;
	feed_shard(k, &s->state.last);
	four(k, s->state.line, s->state.receipted, s->state.confirmed, s->state.reminted);
	four(k, s->state.written_off + 2 * s->settled + 4 * s->policy, s->boot, s->reconciled, s->expires_at - BASE);
	bytes(k, s->excess, sizeof(s->excess));
	bytes(k, s->budget, sizeof(s->budget));
}

static void
feed_ledger(Words *k, const Ledger *l)
{
	const LLPair *p = &l->pair;

	feed_budget(k, &p->head);
	four(k, p->older_debt, p->older_reserved, p->older_repaid, p->frozen);
	four(k, p->seen_at - BASE, p->accrued_at - BASE, p->remainder, l->since - BASE);
	four(k, l->recorded, l->granted, l->recorded_budget + 256 * l->grant_stored,
		 l->policies + 16 * l->in_force + 256 * l->closed_count);
	for (int i = 0; i < CLIENTS; i++)
		feed_row(k, &l->row[i]);
	for (int s = 0; s < SHARDS; s++)
		feed_issued(k, &l->shard[s]);
	for (int i = 0; i < l->closed_count; i++)
		feed_budget(k, &l->closed[i]);
}

static void
feed_gateways(Words *k, const World *w)
{
	bytes(k, w->gateway, sizeof(w->gateway));
	for (int i = 0; i < CLIENTS; i++)
		feed_row(k, &w->item[i]);
	for (int s = 0; s < SHARDS; s++)
	{
		const Local *l = &w->local[s];

		if (!l->accepted)
			continue;
		feed_shard(k, &l->shard);
		four(k, l->accepted, l->boot, l->cut, l->seen_at - BASE);
		for (int i = 1; i <= l->cut; i++)
		{
			four(k, l->report[i].available, l->report[i].reserved, l->report[i].spent, l->report[i].retired);
			four(k, l->report[i].excess, l->report[i].receipted, l->report[i].sealed, l->report[i].breach);
		}
	}
}

static inline uint64_t
mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128) a * b;

	return (uint64_t) product ^ (uint64_t) (product >> 64);
}

uint64_t
world_key(const World *w)
{
	Words		k;
	uint64_t	a = UINT64_C(0x9e3779b97f4a7c15);
	uint64_t	b = UINT64_C(0xc2b2ae3d27d4eb4f);

	k.count = 0;
	four(&k, w->clock - BASE, w->latest - BASE, w->locked_at - BASE, w->switched_at - BASE);
	four(&k, w->switched_from - BASE, w->locked_policies, 0, 0);
	bytes(&k, w->left, sizeof(w->left));
	bytes(&k, w->actor, sizeof(w->actor));
	bytes(&k, w->ghost, sizeof(w->ghost));
	four(&k, w->messages, 0, 0, 0);
	bytes(&k, w->message, sizeof(Message) * (size_t) (w->messages + !w->messages));
	feed_ledger(&k, &w->ledger);
	if (setup.amounts.shard1 > 0 || setup.allow.cut > 0)
		feed_gateways(&k, w);
	while (k.count % 4 != 0)
		k.word[k.count++] = 0;
	for (int i = 0; i < k.count; i += 4)
	{
		a = mix(a ^ k.word[i], k.word[i + 1] ^ UINT64_C(0xa0761d6478bd642f)) + (a << 7 | a >> 57);
		b = mix(b ^ k.word[i + 2], k.word[i + 3] ^ UINT64_C(0xe7037ed1a0b428db)) + (b << 9 | b >> 55);
	}
	return mix(a ^ UINT64_C(0x8ebc6af09c88c6e3), b ^ (uint64_t) k.count) | 1;
}
