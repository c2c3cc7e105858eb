// What the fuzzers of loader and probe have found, and what reaches their parsers' corners.
#include <doctest/doctest.h>

#include "fuzz/parsers.h"
#include "fuzz/replay.h"

namespace opjoule {
namespace {

TEST_CASE("every parser takes what the fuzzers have found") {
  for (const fuzz::Parser& parser : fuzz::parsers()) {
    INFO(parser.name);
    CHECK(fuzz::replay(parser, OPJOULE_SOURCE_ROOT "/fuzz/corpus") > 0);
  }
}

}  // namespace
}  // namespace opjoule
