// What the fuzzers feed: each parser by its name, with bytes that nobody has checked.
//
// One program holds the parsers of one part (loader and probe, or firmware). libfuzzer.cc drives
// one of them with clang's libFuzzer; replay.h feeds the corpus to all of them in ./test.
#ifndef OPJOULE_FUZZ_PARSERS_H_
#define OPJOULE_FUZZ_PARSERS_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace opjoule {
namespace fuzz {

struct Parser {
  const char* name;  // of its corpus's folder, too
  void (*take)(const uint8_t* data, size_t size);
};

// The parsers of this program.
const std::vector<Parser>& parsers();

// Ends the process where `holds` is false: the fuzzer keeps the input that led here.
inline void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

// Takes numbers off the front of an input; 0 once it is used up.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), left_(size) {}
  bool empty() const { return left_ == 0; }
  uint8_t byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }
  uint64_t number(int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value |= uint64_t{byte()} << (8 * i);
    return value;
  }

 private:
  const uint8_t* data_;
  size_t left_;
};

}  // namespace fuzz
}  // namespace opjoule

#endif  // OPJOULE_FUZZ_PARSERS_H_
