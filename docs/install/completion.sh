#!/bin/sh
# completion.sh TLC bash|zsh|fish: the completions of a shell, from what `tlc --help` says.
LC_ALL=C.UTF-8 $1 --help | awk -v shell="$2" -v quote="'" '
	# options: "  --emit KIND,...    text", "  -g X[,Y]   text", "  --help, --version   text"
	/^  -/ {
		line = substr($0, 3)
		gap = match(line, /  +/)
		text = gap ? substr(line, RSTART + RLENGTH) : ""
		head = gap ? substr(line, 1, RSTART - 1) : line
		sub(/[:;,(].*/, "", text)
		gsub(/[\[\]"`$\\]/, "", text)
		gsub(quote, "", text)
		split(head, word, " ")
		for (i = 1; word[i] ~ /^-/; i++) {
			sub(/,$/, "", word[i])
			options[++n] = word[i]
			about[n] = text
		}
		takes[n] = word[i]
		delete word
	}
	/^  tlc [a-z]/ { if (!seen[$2]++) commands = commands " " $2 }
	/^  tlc cache / { parts = $3; gsub(/\|/, " ", parts) }
	/^Passes:/ { passes = "all" }
	passes != "" && /^  [a-z]/ { passes = passes " " $1 }
	# values that follow an option
	function values(option) {
		if (option == "--device") return "cuda cpu cpu:check interp sim sim:75 sim:80 sim:86 sim:87 sim:89 sim:90"
		if (option == "--target") return "cuda:sm_75 cuda:sm_80 cuda:sm_86 cuda:sm_87 cuda:sm_89 cuda:sm_90 cuda:sm_90a cpu"
		if (option == "--emit") return "ast ttir ttgir llir ptx cubin image calls schedule"
		if (option ~ /^--(print|stop|start)-after$/) return passes
		if (option == "--num-warps") return "1 2 4 8 16 32"
		return ""
	}
	function files(option) { return option == "-o" || option == "-I" }
	END {
		if (shell == "bash") {
			print "# bash completion for tlc\n_tlc() {"
			print "\tlocal word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}"
			print "\t# a colon begins a new word: sim:80, cuda:sm_90a"
			print "\t[[ $before == : ]] && before=${COMP_WORDS[COMP_CWORD-3]} word=${COMP_WORDS[COMP_CWORD-2]}:$word"
			print "\t[[ $word == : ]] && word=$before: before=${COMP_WORDS[COMP_CWORD-2]}"
			print "\tCOMPREPLY=()\n\tcase $before in"
			for (i = 1; i <= n; i++)
				if (values(options[i]) != "")
					printf "\t%s) COMPREPLY=($(compgen -W \"%s\" -- \"$word\")) ;;\n", options[i], values(options[i])
				else if (takes[i] != "")
					printf "\t%s) %s ;;\n", options[i], files(options[i]) ? "COMPREPLY=($(compgen -f -- \"$word\"))" : ":"
			printf "\tcache) COMPREPLY=($(compgen -W \"%s\" -- \"$word\")) ;;\n", parts
			printf "\t*)\n\t\tif [[ $word == -* ]]; then\n\t\t\tCOMPREPLY=($(compgen -W \""
			for (i = 1; i <= n; i++)
				printf "%s%s", (i > 1 ? " " : ""), options[i]
			print "\" -- \"$word\"))\n\t\telse"
			print "\t\t\tCOMPREPLY=($(compgen -f -- \"$word\"))"
			printf "\t\t\t[[ $COMP_CWORD == 1 ]] && COMPREPLY+=($(compgen -W \"%s\" -- \"$word\"))\n", substr(commands, 2)
			print "\t\tfi ;;\n\tesac"
			print "\t[[ $word == *:* ]] && COMPREPLY=(\"${COMPREPLY[@]#*:}\")\n\treturn 0\n}"
			print "complete -o filenames -F _tlc tlc"
		} else if (shell == "zsh") {
			print "#compdef tlc\n_arguments -s \\"
			for (i = 1; i <= n; i++) {
				if (values(options[i]) != "") {
					list = values(options[i])
					gsub(/:/, "\\:", list)
					printf "\t%s%s[%s]:%s:(%s)%s \\\n", quote, options[i], about[i], tolower(takes[i]) , list, quote
				} else if (takes[i] != "")
					printf "\t%s%s[%s]:%s:%s%s \\\n", quote, options[i], about[i], "value", files(options[i]) ? "_files" : " ", quote
				else
					printf "\t%s%s[%s]%s \\\n", quote, options[i], about[i], quote
			}
			printf "\t%s1: :_alternative \"commands:command:(%s)\" \"files:file:_files\"%s \\\n", quote, substr(commands, 2), quote
			printf "\t%s*: :_alternative \"parts:part:(%s)\" \"files:file:_files\"%s\n", quote, substr(parts, 1), quote
		} else if (shell == "fish") {
			print "# fish completion for tlc"
			printf "complete -c tlc -n __fish_use_subcommand -a %s%s%s\n", quote, substr(commands, 2), quote
			printf "complete -c tlc -n %s__fish_seen_subcommand_from cache%s -x -a %s%s%s\n", quote, quote, quote, parts, quote
			for (i = 1; i <= n; i++) {
				name = options[i]
				long_ = sub(/^--/, "", name)
				if (!long_)
					sub(/^-/, "", name)
				printf "complete -c tlc -%s %s", long_ ? "l" : "s", name
				if (values(options[i]) != "")
					printf " -x -a %s%s%s", quote, values(options[i]), quote
				else if (takes[i] != "")
					printf " -r%s", files(options[i]) ? "F" : "f"
				printf " -d %s%s%s\n", quote, about[i], quote
			}
		} else {
			print "completion.sh: bash, zsh or fish" > "/dev/stderr"
			exit 2
		}
	}'
