# SPDX-License-Identifier: Apache-2.0
# Cross build for arm64 with Debian's g++-aarch64-linux-gnu:
#   tools/arm64-sysroot build/arm64-sysroot
#   cmake --preset arm64
# What runs while building (protoc, clang, bpftool, node) is this machine's; libraries and headers are the sysroot's.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
get_filename_component(CMAKE_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../build/arm64-sysroot ABSOLUTE)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
find_program(FF_QEMU qemu-aarch64-static)
if(FF_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${FF_QEMU} -L ${CMAKE_SYSROOT})
endif()
