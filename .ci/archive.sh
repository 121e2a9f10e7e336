#!/bin/sh
# archive.sh ARCHIVE OPTIONS OBJECT…: a static library of one object, prepared by objcopy with these OPTIONS. Internal
# names become local, so the library adds tl_* alone to a program. The names tl_* become hidden, so a shared library
# that contains the archive exports none of them; with EXPORT_TL=1 in the environment it exports all.
set -euf
archive=$1 options=$2 object=${OBJ:?}/$(basename "$1" .a)
shift 2
tool() { ${CC:-cc} -print-prog-name="$1"; }
$(tool ld) -r -o "$object.o" "$@"
# tlc_* are visible for the library of the Python package
$(tool objcopy) --localize-hidden --wildcard --localize-symbol='tlc_*' $options "$object.o"
if [ -z "${EXPORT_TL:-}" ]; then
	# the linker gives a symbol the strictest visibility among its definition and its references
	{
		$(tool nm) -g --defined-only "$object.o" | sed 's/.* /.hidden /'
		echo '.section .note.GNU-stack,"",@progbits'
	} > "$object.hidden.S"
	${CC:-cc} -c "$object.hidden.S" -o "$object.hidden.o"
	mv "$object.o" "$object.all.o"
	$(tool ld) -r -o "$object.o" "$object.all.o" "$object.hidden.o"
	rm "$object.all.o"
fi
rm -f "$archive"
$(tool ar) rcs "$archive" "$object.o"
