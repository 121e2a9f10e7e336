# find_package(libtl): tl::tl, the library with the compiler; tl::tlrt, the launcher of kernels compiled ahead of time;
# tl_add_kernels(TARGET NAME FILE OPTION…): a library of what `tlc build FILE OPTION… -o NAME` makes.
get_filename_component(_tl_lib "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
get_filename_component(_tl_prefix "${_tl_lib}/.." ABSOLUTE)
if(NOT EXISTS "${_tl_prefix}/include/tl.h") # lib/x86_64-linux-gnu, as Debian has it
	get_filename_component(_tl_prefix "${_tl_prefix}/.." ABSOLUTE)
endif()
find_package(Threads REQUIRED)
if(NOT TARGET tl::tl)
	add_library(tl::tl SHARED IMPORTED)
	set_target_properties(tl::tl PROPERTIES IMPORTED_LOCATION "${_tl_lib}/libtl.so"
		INTERFACE_INCLUDE_DIRECTORIES "${_tl_prefix}/include")
	add_library(tl::tlrt STATIC IMPORTED)
	set_target_properties(tl::tlrt PROPERTIES IMPORTED_LOCATION "${_tl_lib}/libtlrt.a"
		INTERFACE_INCLUDE_DIRECTORIES "${_tl_prefix}/include"
		INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS}")
endif()
find_program(TLC tlc HINTS "${_tl_prefix}/bin")

function(tl_add_kernels target name file)
	set(out "${CMAKE_CURRENT_BINARY_DIR}/${name}")
	add_custom_command(OUTPUT "${out}.h" "${out}.c" COMMAND "${TLC}" build "${file}" ${ARGN} -o "${out}"
		DEPENDS "${file}" VERBATIM)
	add_library(${target} STATIC "${out}.c" "${out}.h")
	target_include_directories(${target} PUBLIC "${CMAKE_CURRENT_BINARY_DIR}")
	target_link_libraries(${target} PUBLIC tl::tlrt)
endfunction()
