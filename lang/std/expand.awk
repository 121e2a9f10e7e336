# Prints a library file. The lines between `# FOR NAME IN WORD…` and `# END` are printed once for each word, with the
# word in place of NAME.
/^# FOR / { name = $3; words = substr($0, index($0, " IN ") + 4); text = ""; repeats = 1; next }
/^# END$/ && repeats {
	repeats = 0
	n = split(words, word, " ")
	for (i = 1; i <= n; i++) {
		copy = text
		gsub(name, word[i], copy)
		printf "%s%s", (i == 1 ? "" : "\n"), copy
	}
	next
}
repeats { text = text $0 "\n"; next }
{ print }
END {
	if (repeats) {
		print FILENAME ": # FOR without # END" > "/dev/stderr"
		exit 1
	}
}
