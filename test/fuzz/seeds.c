/*
 * Writes the seeds into a folder, a file each.
 */
#include "seeds.h"

int
main(int argc, char **argv)
{
	for (int i = 0; argc == 2 && i < SEED_COUNT; i++)
	{
		char		bytes[SEED_MAX];
		char		path[4096];
		size_t		length = seed(i, bytes);
		FILE	   *out;

		snprintf(path, sizeof(path), "%s/seed-%d", argv[1], i);
		out = fopen(path, "w");
		if (out == NULL || fwrite(bytes, 1, length, out) != length || fclose(out) != 0)
			return 1;
	}
	return argc != 2;
}
