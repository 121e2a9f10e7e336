#!/bin/sh
# install.sh install|uninstall BUILD VERSION SONAME: the files of make install, and their removal. DESTDIR, PREFIX, LIBDIR,
# ZSH (the folder of functions under share/zsh) and SHARE (files of BUILD/share) are in the environment. Folders that an
# installation makes are listed in share/doc/tlc/folders, so that their removal leaves those that were there before.
set -eu
verb=$1 build=$2 version=$3 soname=$4
root=${DESTDIR:-} doc=$PREFIX/share/doc/tlc
made=
[ "$verb" = uninstall ] || mkdir -p "$root/"

folder() { # folder PATH: with those around it
	[ -d "$root$1" ] && return
	folder "$(dirname "$1")"
	mkdir "$root$1"
	made="$1
$made"
}
place() { # place MODE FROM TO
	if [ "$verb" = install ]; then
		folder "$(dirname "$3")"
		install -m "$1" "$2" "$root$3"
	else
		rm -f "$root$3"
	fi
}
link() { # link TARGET NAME
	if [ "$verb" = install ]; then ln -sf "$1" "$root$2"; else rm -f "$root$2"; fi
}

place 755 "$build/tlc" "$PREFIX/bin/tlc"
for archive in libtl.a libtlrt.a; do
	place 644 "$build/$archive" "$LIBDIR/$archive"
done
place 644 "$build/libtl.so" "$LIBDIR/libtl.so.$version"
link "libtl.so.$version" "$LIBDIR/$soname"
link "$soname" "$LIBDIR/libtl.so"
place 644 runtime/tl.h "$PREFIX/include/tl.h"
place 644 runtime/aot/libtl-config.cmake "$LIBDIR/cmake/libtl/libtl-config.cmake"
for file in cmake/libtl/libtl-config-version.cmake pkgconfig/libtl.pc pkgconfig/libtlrt.pc; do
	place 644 "$build/install/${file##*/}" "$LIBDIR/$file"
done
for file in $SHARE; do
	place 644 "$build/share/$file" "$PREFIX/share/$file"
done
if [ "$verb" = install ]; then
	folder "$doc"
	printf %s "$made" >> "$root$doc/folders"
elif [ -e "$root$doc/folders" ]; then
	# inner folders come first where one installation made them; a second time removes what another one left inside
	folders=$(cat "$root$doc/folders")
	rm "$root$doc/folders"
	for pass in 1 2; do
		printf '%s\n' "$folders" | while IFS= read -r made; do
			rmdir "$root$made" 2> /dev/null || true
		done
	done
fi
