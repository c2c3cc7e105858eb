# What a hostile input meets in a program with a defect: an address that it cannot know, a guarded return address, copies that know
# the size of their target, and tables that cannot be written. host/tests/repository/test_supply_chain.py reads the programs.
# Source: OpenSSF, Compiler Options Hardening Guide for C and C++.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(static_link -static)
if(NOT OPJOULE_SANITIZE)
  add_compile_options(-fPIE -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  add_link_options(LINKER:-z,relro,-z,now,-z,noexecstack)
  # A static program at an address of its own needs the C library's rcrt1.o, which not every toolchain has; on 32-bit boards it
  # was not tried.
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS -fPIE)
  set(CMAKE_REQUIRED_LINK_OPTIONS -static-pie)
  check_cxx_source_compiles("int main() { return 0; }" OPJOULE_HAS_STATIC_PIE)
  unset(CMAKE_REQUIRED_FLAGS)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
  if(OPJOULE_STATIC AND OPJOULE_HAS_STATIC_PIE AND CMAKE_SIZEOF_VOID_P EQUAL 8)
    set(static_link -static-pie)
  elseif(OPJOULE_STATIC)
    message(STATUS "No static-pie with this toolchain: programs lie at a fixed address")
  else()
    add_link_options(-pie)
  endif()
endif()
