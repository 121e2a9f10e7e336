set debuginfod enabled off
set breakpoint pending on
set width 0
tbreak gdb-lines.tl:straight
run
info locals
next
next
next
next
next
print b
print c
next
next
next
info locals
tbreak gdb-lines.tl:7 if program_id[0] == 1
continue
next
next
next
next
next
next
next
next
print program_id
continue
