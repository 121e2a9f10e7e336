#include "support/suggest.h"

/* Edit distance: insertions, deletions, replacements, and swaps of adjacent characters. limit + 1 if above the
 * limit. */
static u32 edit_distance(const char *a, const char *b, u32 limit)
{
	u32 n = (u32)strlen(a), m = (u32)strlen(b), rows[3][64];
	if (n >= 63 || m >= 63 || (n > m ? n - m : m - n) > limit)
		return limit + 1;
	for (u32 i = 0; i <= n; i++) {
		u32 *row = rows[i % 3], *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];
		for (u32 j = 0; j <= m; j++) {
			if (!i || !j) {
				row[j] = i + j;
				continue;
			}
			row[j] = MIN(MIN(up[j], row[j - 1]) + 1, up[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = MIN(row[j], up2[j - 2] + 1);
		}
	}
	return rows[n % 3][m];
}

const char *did_you_mean(const char *name, const char *const *candidates, u32 n)
{
	const char *best = NULL;
	u32 len = (u32)strlen(name), limit = MAX(len / 3, 1u), least = limit + 1;
	for (u32 i = 0; i < n; i++) {
		u32 d = edit_distance(name, candidates[i], limit);
		if (d < least && d > 0 && d < len) {
			least = d;
			best = candidates[i];
		}
	}
	return best;
}
