/*
 * words.c
 *	  Memory that lives as long as one file, and words by number.
 */
#include "auditor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
	BLOCK = 1 << 20
};

typedef struct Block
{
	struct Block *next;
	size_t		used;
	size_t		size;
	char		data[];
} Block;

static Block *blocks;

static const char **word_text;
static int	words = 1;
static int	word_room;
static int *bucket;
static int	buckets;

void *
arena_new(size_t size)
{
	void	   *result;

	size = (size + 15) & ~(size_t) 15;
	if (blocks == NULL || blocks->used + size > blocks->size)
	{
		size_t		room = size > BLOCK ? size : BLOCK;
		Block	   *b = malloc(sizeof(Block) + room);

		if (b == NULL)
		{
			fprintf(stderr, "auditor: out of memory\n");
			exit(2);
		}
		b->next = blocks;
		b->used = 0;
		b->size = room;
		blocks = b;
	}
	result = blocks->data + blocks->used;
	blocks->used += size;
	return memset(result, 0, size);
}

char *
arena_text(const char *text, size_t length)
{
	char	   *copy = arena_new(length + 1);

	memcpy(copy, text, length);
	return copy;
}

void
arena_reset(void)
{
	while (blocks != NULL)
	{
		Block	   *next = blocks->next;

		free(blocks);
		blocks = next;
	}
	words = 1;
	if (bucket != NULL)
		memset(bucket, 0, sizeof(*bucket) * (size_t) buckets);
}

/* grow doubles: what is left behind goes with the arena. */
void *
grow(void *array, int count, size_t size)
{
	void	   *bigger;

	if (count > 0 && (count & (count - 1)) != 0)
		return array;
	bigger = arena_new(size * (size_t) (count == 0 ? 1 : 2 * count));
	if (count > 0)
		memcpy(bigger, array, size * (size_t) count);
	return bigger;
}

static unsigned
hash(const char *text)
{
	unsigned	h = 2166136261u;

	for (; *text != '\0'; text++)
		h = (h ^ (unsigned char) *text) * 16777619u;
	return h;
}

static void
rehash(int count)
{
	free(bucket);
	buckets = count;
	bucket = calloc((size_t) buckets, sizeof(*bucket));
	for (int w = 1; w < words; w++)
	{
		unsigned	i = hash(word_text[w]) & (unsigned) (buckets - 1);

		while (bucket[i] != 0)
			i = (i + 1) & (unsigned) (buckets - 1);
		bucket[i] = w;
	}
}

int
word(const char *text)
{
	unsigned	i;

	if (text == NULL)
		return 0;
	if (2 * words >= buckets)
		rehash(buckets == 0 ? 1024 : 2 * buckets);
	for (i = hash(text) & (unsigned) (buckets - 1); bucket[i] != 0; i = (i + 1) & (unsigned) (buckets - 1))
		if (strcmp(word_text[bucket[i]], text) == 0)
			return bucket[i];
	if (words >= word_room)
	{
		word_room = word_room == 0 ? 1024 : 2 * word_room;
		word_text = realloc(word_text, sizeof(*word_text) * (size_t) word_room);
	}
	word_text[words] = arena_text(text, strlen(text));
	bucket[i] = words;
	return words++;
}

/* A digest is its digits, in whichever of its forms it comes. */
int
word_of_digest(const char *text)
{
	if (text == NULL)
		return 0;
	if (strncmp(text, "\\x", 2) == 0)
		text += 2;
	else if (strncmp(text, "sha256:", 7) == 0)
		text += 7;
	return word(text);
}

const char *
text_of(int w)
{
	return w == 0 ? "NULL" : word_text[w];
}
