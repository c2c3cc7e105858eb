// What the fuzzers of the firmware have found, and what reaches its parsers' corners.
#include <doctest/doctest.h>

#include "../../../fuzz/firmware/firmware_parsers.cc"
#include "../../../fuzz/replay.h"
// For PlatformIO, which finds the libraries by the includes of this file alone.
#include "bus_transfer.h"
#include "frame_encoder.h"
#include "meter.h"
#include "sampler.h"

using namespace opjoule;

TEST_CASE("the firmware takes what the fuzzers have found") {
  std::string root = __FILE__;
  root = root.substr(0, root.rfind("firmware/test/"));
  for (const fuzz::Parser& parser : fuzz::parsers()) {
    INFO(parser.name);
    CHECK(fuzz::replay(parser, root + "fuzz/corpus") > 0);
  }
}
