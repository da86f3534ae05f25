# SPDX-License-Identifier: Apache-2.0
#
#   bpf_object(NAME SOURCE x.bpf.c [HEADERS y.h...])
#       Compiles a BPF program (clang, CO-RE) and makes its libbpf skeleton <build>/gen/bpf/x.skel.h, whose struct is
#       x_bpf. NAME is an interface library: link it and include "bpf/x.skel.h". The object is embedded in the skeleton;
#       nothing is installed. Needs no BTF at build time: the types that the program reads are in bpf/vmlinux/.
#
# The multiarch include folder is passed by hand: with -target bpf clang does not know it, and <linux/types.h> needs it.

function(bpf_object NAME)
  cmake_parse_arguments(ARG "" "SOURCE" "HEADERS" ${ARGN})
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    set(arch x86)
  elseif(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
    set(arch arm64)
  else()
    message(FATAL_ERROR "The BPF programs read registers of x86-64 and arm64, not ${CMAKE_SYSTEM_PROCESSOR}")
  endif()
  get_filename_component(source ${ARG_SOURCE} ABSOLUTE)
  get_filename_component(stem ${ARG_SOURCE} NAME)
  string(REGEX REPLACE "\\.bpf\\.c$" "" stem ${stem})
  set(out ${CMAKE_BINARY_DIR}/gen/bpf)
  file(MAKE_DIRECTORY ${out})
  set(multiarch ${CMAKE_SYSROOT}/usr/include/${CMAKE_LIBRARY_ARCHITECTURE})
  add_custom_command(OUTPUT ${out}/${stem}.bpf.o
    COMMAND ${FF_CLANG} -target bpf -O2 -g -D__TARGET_ARCH_${arch} -Wall -Wextra -Werror
            -I ${CMAKE_SOURCE_DIR} -isystem ${multiarch} -ffile-prefix-map=${CMAKE_SOURCE_DIR}=.
            -c ${source} -o ${out}/${stem}.bpf.o
    DEPENDS ${source} ${ARG_HEADERS} COMMENT "clang -target bpf ${stem}.bpf.c" VERBATIM)
  add_custom_command(OUTPUT ${out}/${stem}.skel.h
    COMMAND sh -c "\"$1\" gen skeleton \"$2\" name \"$3\" > \"$4\"" sh
            ${FF_BPFTOOL} ${out}/${stem}.bpf.o ${stem}_bpf ${out}/${stem}.skel.h
    DEPENDS ${out}/${stem}.bpf.o COMMENT "bpftool gen skeleton ${stem}" VERBATIM)
  add_custom_target(${NAME}_skeleton DEPENDS ${out}/${stem}.skel.h)
  add_library(${NAME} INTERFACE)
  add_dependencies(${NAME} ${NAME}_skeleton)
  target_include_directories(${NAME} SYSTEM INTERFACE ${CMAKE_BINARY_DIR}/gen)
  target_link_libraries(${NAME} INTERFACE PkgConfig::LIBBPF)
endfunction()
