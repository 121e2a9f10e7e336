set debuginfod enabled off
set breakpoint pending on
set width 0
break gdb.tl:scale
run
condition 1 program_id[0] == 2
continue
printf "program "
output program_id
printf "\n"
break gdb.tl:17 if program_id[0] == 2 && step > 0
delete 1
continue
printf "offs "
output offs
printf "\nrows "
output rows
printf "\nsquare "
output square
printf "\nlargest %g\nstep %d\ntotal %g\n", largest, step, total
continue
printf "step %d\ntotal %g\n", step, total
delete
continue
