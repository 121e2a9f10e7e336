#!/bin/sh
# At the top level git keeps the folders and pages of the project, and dot-files, alone.
set -eu
git rev-parse --git-dir > /dev/null 2>&1 || exit 0
other=$(git ls-files | sed 's|/.*||' | sort -u | grep -vxE 'Makefile|README\.md|LICENSE|compiler|runtime|lang|examples|tests|docs|\..*' || true)
[ -z "$other" ] && echo "the top level holds the project alone" && exit
echo "not for the top level: $other"
exit 1
