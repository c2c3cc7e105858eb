// The entry points of clang's libFuzzer; OPJOULE_PARSER names the parser that is fed.
// Source: https://llvm.org/docs/LibFuzzer.html, "Fuzz Target" and "Startup initialization".
#include <cstring>

#include "parsers.h"

namespace {
const opjoule::fuzz::Parser* chosen = nullptr;
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* wanted = std::getenv("OPJOULE_PARSER");
  for (const opjoule::fuzz::Parser& parser : opjoule::fuzz::parsers())
    if (wanted != nullptr && std::strcmp(parser.name, wanted) == 0) chosen = &parser;
  if (chosen != nullptr) return 0;
  std::fputs("OPJOULE_PARSER must be one of:", stderr);
  for (const opjoule::fuzz::Parser& parser : opjoule::fuzz::parsers())
    std::fprintf(stderr, " %s", parser.name);
  std::fputs("\n", stderr);
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  chosen->take(data, size);
  return 0;
}
