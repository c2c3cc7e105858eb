// Feeds a parser every input of its corpus: the regression test of what the fuzzers have found.
#ifndef OPJOULE_FUZZ_REPLAY_H_
#define OPJOULE_FUZZ_REPLAY_H_

#include <fstream>
#include <string>

#include "parsers.h"

namespace opjoule {
namespace fuzz {

// How many inputs were fed from CORPUS/NAME.hex: one a line, in hexadecimal; '#' begins a comment.
inline int replay(const Parser& parser, const std::string& corpus) {
  std::ifstream file(corpus + "/" + parser.name + ".hex");
  int inputs = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    // Of exactly this size, so that a sanitizer sees a read past its end.
    std::vector<uint8_t> input;
    for (size_t i = 0; i + 1 < line.size(); i += 2)
      input.push_back(static_cast<uint8_t>(std::stoi(line.substr(i, 2), nullptr, 16)));
    parser.take(input.data(), input.size());
    ++inputs;
  }
  return inputs;
}

}  // namespace fuzz
}  // namespace opjoule

#endif  // OPJOULE_FUZZ_REPLAY_H_
