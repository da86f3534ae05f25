# SPDX-License-Identifier: Apache-2.0
# The functions every CMakeLists.txt of this project uses.
#
#   ff_library(NAME SOURCES a.cc... [DEPS lib...] [PRIVATE_DEPS lib...])
#       A static library of one folder. DEPS are part of its interface; PRIVATE_DEPS are used by its sources only.
#       What a folder may depend on is what it links: see ARCHITECTURE.md.
#   ff_binary(NAME SOURCES main.cc... DEPS lib...)
#       A program in build/<preset>/bin.
#   ff_test(NAME SOURCES x_test.cc... DEPS lib... [LABEL unit|bpf|apiserver|cluster] [TIMEOUT seconds])
#       One GoogleTest program; one ctest entry, so that a fixture is set up once.
#   ff_proto(NAME PROTOS x.proto... [GRPC])
#       Generated C++ of .proto files, included as "proto/<path>.pb.h".

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

# What is compiled once is not compiled again in the next clone.
find_program(FF_CCACHE ccache)
if(FF_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=time_macros
      ${FF_CCACHE})
endif()

add_library(ff_options INTERFACE)
target_include_directories(ff_options INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/gen)
target_compile_options(ff_options INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor -Wimplicit-fallthrough -Wno-missing-field-initializers
  -ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -fno-omit-frame-pointer
  $<$<BOOL:${FF_WERROR}>:-Werror>)
target_compile_definitions(ff_options INTERFACE FF_VERSION="${PROJECT_VERSION}")
if(FF_SANITIZE)
  add_compile_options(-fsanitize=${FF_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${FF_SANITIZE})
endif()

function(ff_library NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${NAME} STATIC ${ARG_SOURCES})
  target_link_libraries(${NAME} PUBLIC ff_options ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
endfunction()

function(ff_binary NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${NAME} ${ARG_SOURCES})
  target_link_libraries(${NAME} PRIVATE ff_options ${ARG_DEPS})
endfunction()

function(ff_test NAME)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${NAME} ${ARG_SOURCES})
  target_link_libraries(${NAME} PRIVATE ff_options ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  add_test(NAME ${NAME} COMMAND ${NAME} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${NAME} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
endfunction()

function(ff_proto NAME)
  cmake_parse_arguments(ARG "GRPC" "" "PROTOS" ${ARGN})
  set(out ${CMAKE_BINARY_DIR}/gen)
  file(MAKE_DIRECTORY ${out})
  set(sources "")
  foreach(proto ${ARG_PROTOS})
    cmake_path(RELATIVE_PATH proto BASE_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE rel)
    string(REGEX REPLACE "\\.proto$" "" stem ${rel})
    set(generated ${out}/${stem}.pb.cc ${out}/${stem}.pb.h)
    set(plugin "")
    if(ARG_GRPC)
      list(APPEND generated ${out}/${stem}.grpc.pb.cc ${out}/${stem}.grpc.pb.h)
      set(plugin --grpc_out=${out} --plugin=protoc-gen-grpc=${FF_GRPC_PLUGIN})
    endif()
    add_custom_command(OUTPUT ${generated}
      COMMAND protobuf::protoc -I ${CMAKE_SOURCE_DIR} --cpp_out=${out} ${plugin} ${CMAKE_SOURCE_DIR}/${rel}
      DEPENDS ${CMAKE_SOURCE_DIR}/${rel} COMMENT "protoc ${rel}" VERBATIM)
    list(APPEND sources ${generated})
  endforeach()
  add_library(${NAME} STATIC ${sources})
  target_include_directories(${NAME} SYSTEM PUBLIC ${out})
  target_link_libraries(${NAME} PUBLIC protobuf::libprotobuf $<$<BOOL:${ARG_GRPC}>:PkgConfig::GRPCPP>)
endfunction()
