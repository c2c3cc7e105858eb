// The main() of every test suite. Optimising it under the sanitizers took more time than the tests.
#pragma GCC optimize("O0")
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
