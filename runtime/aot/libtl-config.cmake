# find_package(libtl) defines tl::tl, the library with the compiler, and tl::tlrt, the launcher of kernels compiled ahead of
# time. tl_add_kernels(TARGET NAME FILE OPTION…) defines a library of the files that `tlc build FILE OPTION… -o NAME`
# writes. It is compiled as C, or as C++ in projects without C. FILE and folders of -I are relative to the folder of the
# CMakeLists.txt with the call.
get_filename_component(_tl_lib "${CMAKE_CURRENT_LIST_DIR}/../.." REALPATH)
set(_tl_prefix "${_tl_lib}")
foreach(_tl_up 1 2) # from lib, or from lib/x86_64-linux-gnu
	if(NOT EXISTS "${_tl_prefix}/include/tl.h")
		get_filename_component(_tl_prefix "${_tl_prefix}" DIRECTORY)
	endif()
endforeach()
# global, so that other folders of the project link libraries of kernels
if(NOT TARGET tl::tl)
	add_library(tl::tl SHARED IMPORTED GLOBAL)
	set_target_properties(tl::tl PROPERTIES IMPORTED_LOCATION "${_tl_lib}/libtl.so"
		INTERFACE_INCLUDE_DIRECTORIES "${_tl_prefix}/include")
	add_library(tl::tlrt STATIC IMPORTED GLOBAL)
	set_target_properties(tl::tlrt PROPERTIES IMPORTED_LOCATION "${_tl_lib}/libtlrt.a"
		INTERFACE_INCLUDE_DIRECTORIES "${_tl_prefix}/include" INTERFACE_LINK_LIBRARIES "pthread;dl")
endif()
find_program(TLC tlc HINTS "${_tl_prefix}/bin")

cmake_policy(PUSH)
foreach(_tl_policy CMP0116 CMP0119) # paths in depfiles, and languages of single sources
	if(POLICY ${_tl_policy})
		cmake_policy(SET ${_tl_policy} NEW)
	endif()
endforeach()
function(tl_add_kernels target name file)
	if(NOT TLC)
		message(FATAL_ERROR "tl_add_kernels: tlc is not in PATH; -DTLC=… says where it is")
	endif()
	get_filename_component(file "${file}" ABSOLUTE)
	set(out "${CMAKE_CURRENT_BINARY_DIR}/${name}")
	get_filename_component(folder "${out}" DIRECTORY)
	file(MAKE_DIRECTORY "${folder}")
	set(depfile)
	if(CMAKE_GENERATOR MATCHES "Ninja" OR NOT CMAKE_VERSION VERSION_LESS 3.20)
		set(depfile DEPFILE "${out}.d")
	endif()
	add_custom_command(OUTPUT "${out}.c" "${out}.h"
		COMMAND "${TLC}" build "${file}" ${ARGN} -o "${out}" --depfile "${out}.d"
		DEPENDS "${file}" "${TLC}" WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" ${depfile} VERBATIM)
	get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
	if(NOT "C" IN_LIST languages)
		set_source_files_properties("${out}.c" PROPERTIES LANGUAGE CXX)
	endif()
	add_library(${target} STATIC "${out}.c" "${out}.h")
	target_include_directories(${target} PUBLIC "${CMAKE_CURRENT_BINARY_DIR}")
	target_link_libraries(${target} PUBLIC tl::tlrt)
endfunction()
cmake_policy(POP)
