/* tokens FOLDER: the tokens of standard input by the vocabulary in the folder. Fails where they do not make the input.
 */
#include "examples/gpt/gpt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	size_t len, n, at = 0;
	char *text = read_file("/dev/stdin", &len);
	struct tokenizer *t = tokenizer_open(argc > 1 ? argv[1] : NULL);
	uint32_t *tokens = tokenizer_encode(t, text, len, &n);
	for (size_t i = 0; i < n; i++) {
		size_t bytes;
		const char *token = tokenizer_decode(t, tokens[i], &bytes);
		if (bytes > len - at || memcmp(text + at, token, bytes))
			break;
		at += bytes;
		printf("%u\n", tokens[i]);
	}
	free(text);
	free(tokens);
	tokenizer_close(t);
	return at != len;
}
