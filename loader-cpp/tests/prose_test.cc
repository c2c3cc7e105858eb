#include "workload/prose.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <vector>

#include "workload/values.h"

namespace opjoule {
namespace {

double compressed_share(const std::string& text, size_t block) {
  uLong compressed = 0;
  for (size_t at = 0; at < text.size(); at += block) {
    const size_t part = std::min(block, text.size() - at);
    std::vector<Bytef> out(compressBound(part));
    uLongf size = out.size();
    compress2(out.data(), &size, reinterpret_cast<const Bytef*>(text.data() + at), part, 6);
    compressed += size;
  }
  return static_cast<double>(compressed) / static_cast<double>(text.size());
}

// The figures of English are in docs/reference/loader.md, with their sources.
TEST_CASE("prose compresses as English does, and has its letters and words") {
  const std::string text = make_prose(1, 152'089);
  const double share = compressed_share(text, text.size());
  CAPTURE(share);
  CHECK(share > 0.31);
  CHECK(share < 0.42);
  size_t letters = 0;
  size_t words = 0;
  size_t e = 0;
  bool inside = false;
  for (const char c : text) {
    const bool is_letter = std::isalpha(static_cast<unsigned char>(c)) != 0;
    letters += is_letter;
    e += c == 'e' || c == 'E';
    words += is_letter && !inside;
    inside = is_letter;
  }
  const double word_letters = static_cast<double>(letters) / static_cast<double>(words);
  const double e_share = static_cast<double>(e) / static_cast<double>(letters);
  CAPTURE(word_letters);
  CAPTURE(e_share);
  CHECK(word_letters > 4.0);
  CHECK(word_letters < 5.3);
  CHECK(e_share > 0.11);
  CHECK(e_share < 0.15);
}

TEST_CASE("the same seed gives the same prose, another one another") {
  CHECK(make_prose(7, 10'000) == make_prose(7, 10'000));
  CHECK(make_prose(7, 10'000) != make_prose(8, 10'000));
  CHECK(make_prose(7, 100) == make_prose(7, 10'000).substr(0, 100));
}

TEST_CASE("values are pieces of the text, and begin again at its end") {
  const auto text = std::make_shared<const std::string>("0123456789");
  ValueBytes bytes(1, 0, ValueCharacters::kPrintable, 1, text);
  CHECK(bytes.compressible());
  std::set<char> begins;
  for (int i = 0; i < 500; ++i) {
    std::string value(25, '\0');
    bytes.fill(value);
    begins.insert(value[0]);
    for (size_t at = 1; at < value.size(); ++at)
      REQUIRE(value[at] == (value[at - 1] == '9' ? '0' : value[at - 1] + 1));
  }
  CHECK(begins.size() == 10);
}

TEST_CASE("a text is generated or read from a file; a file that cannot be is named") {
  std::string text;
  REQUIRE(read_value_text("generated", 3, &text).is_ok());
  CHECK(text == make_prose(3, text.size()));
  const std::string path =
      (std::filesystem::temp_directory_path() / ("prose-test-" + std::to_string(std::rand())))
          .string();
  std::ofstream(path) << "a book";
  REQUIRE(read_value_text(path, 3, &text).is_ok());
  CHECK(text == "a book");
  std::ofstream(path, std::ios::trunc).close();
  const Status empty = read_value_text(path, 3, &text);
  CHECK(empty.code() == StatusCode::kBadInput);
  std::filesystem::remove(path);
  const Status missing = read_value_text(path, 3, &text);
  CHECK(missing.code() == StatusCode::kBadInput);
  CHECK(missing.message().find(path) != std::string::npos);
}

}  // namespace
}  // namespace opjoule
