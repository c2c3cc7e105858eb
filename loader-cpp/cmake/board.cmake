# Toolchain of a board's static loader: headers and the engines' archives come from a sysroot of Debian packages for that
# board. Set by loader-cpp/board-builds: OPJOULE_TRIPLE (aarch64-linux-gnu), OPJOULE_SYSROOT, OPJOULE_COMPILER_PREFIX (may
# be empty), and OPJOULE_C_LIBRARY, a folder of the C library's headers for a compiler that has them in /usr/include.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES
     OPJOULE_TRIPLE OPJOULE_SYSROOT OPJOULE_COMPILER_PREFIX OPJOULE_C_LIBRARY)
string(REGEX REPLACE "-.*" "" CMAKE_SYSTEM_PROCESSOR ${OPJOULE_TRIPLE})
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER ${OPJOULE_COMPILER_PREFIX}gcc)
set(CMAKE_CXX_COMPILER ${OPJOULE_COMPILER_PREFIX}g++)
set(CMAKE_LIBRARY_ARCHITECTURE ${OPJOULE_TRIPLE})

# The C library stays the compiler's own; off_t has 64 bits on every board. -isysroot puts the sysroot in place of this
# computer's /usr/include and /usr/local/include, whose libraries may have other versions.
set(headers "${OPJOULE_SYSROOT}/usr/include")
set(includes "-isystem \"${headers}\" -isystem \"${headers}/${OPJOULE_TRIPLE}\" -isysroot \"${OPJOULE_SYSROOT}\"")
if(OPJOULE_C_LIBRARY)
  string(APPEND includes " -fno-canonical-system-headers")  # lists of headers name the folder's links
  string(APPEND includes " -idirafter \"${OPJOULE_C_LIBRARY}/${OPJOULE_TRIPLE}\" -idirafter \"${OPJOULE_C_LIBRARY}\"")
endif()
set(widths "-D_FILE_OFFSET_BITS=64")
if(OPJOULE_TRIPLE MATCHES "^arm-")
  # The engines' archives are of Debian 12, whose times have 32 bits. Debian 13's compiler has 64 unless told otherwise.
  string(APPEND widths " -U_TIME_BITS -D_TIME_BITS=32")
  set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,--wrap=readdir")  # databases/shared/readdir_32bit.cc says why
endif()
set(CMAKE_C_FLAGS_INIT "${includes} ${widths}")
set(CMAKE_CXX_FLAGS_INIT "${includes} ${widths}")

set(CMAKE_FIND_ROOT_PATH ${OPJOULE_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${OPJOULE_SYSROOT}/usr/lib/${OPJOULE_TRIPLE}/pkgconfig)
