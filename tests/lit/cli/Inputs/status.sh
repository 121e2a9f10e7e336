#!/bin/sh
# status.sh COMMAND…: runs it and says its exit status.
"$@"
echo "status $?"
