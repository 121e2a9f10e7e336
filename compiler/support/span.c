#include "support/span.h"

size_t span_outside(const char *s, const char *ends)
{
	size_t i = 0;
	int depth = 0, angles = 0; /* the > of ":>" is not a bracket */
	for (char quote = 0; s[i] && (quote || depth || angles || !strchr(ends, s[i])); i++) {
		if (quote && s[i] == '\\' && s[i + 1])
			i++;
		else if (quote)
			quote = s[i] == quote ? 0 : quote;
		else if (s[i] == '"' || s[i] == '\'')
			quote = s[i];
		depth += quote ? 0 : !!strchr("([", s[i]) - !!strchr(")]", s[i]);
		angles += quote ? 0 : (s[i] == '<') - (s[i] == '>' && angles);
	}
	return i;
}

bool next_argument(struct arena *a, const char **list, struct argument_span *out)
{
	const char *s = *list;
	size_t len = span_outside(s, ","), name = span_outside(s, "=,");
	*list += len + (s[len] == ',');
	*list += strspn(*list, " ");
	*out = (struct argument_span){.text = arena_str(a, s, len)};
	if (s[name] == '=') {
		out->name = arena_str(a, s, name);
		out->value = out->text + name + 1;
	}
	return *s;
}
