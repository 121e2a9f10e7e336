set debuginfod enabled off
set breakpoint pending on
set width 0
tbreak gdb-lines.tl:loops
run
next
print total
next
print total
print step
next
print step
print a
next
next
print step
next
next
next
next
print total
next
next
next
next
next
next
next
next
next
print k
continue
