#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

// What simavr allocates for a microcontroller it never gives back.
extern "C" const char* __lsan_default_suppressions() { return "leak:libsimavr"; }
