set debuginfod enabled off
set breakpoint pending on
set width 0
tbreak gdb-lines.tl:calls
run
next
next
next
print a
next
step
info locals
next
info locals
backtrace 2
finish
next
print a
print s
next
print s
continue
