#include "loader/properties.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include "loader/random.h"

namespace opjoule {
namespace {

Status load(Properties& properties, const std::string& text) {
  const std::string path = std::filesystem::temp_directory_path() /
                           ("opjoule-" + std::to_string(getpid()) + ".properties");
  std::ofstream(path) << text;
  const Status status = properties.load_file(path);
  std::remove(path.c_str());
  return status;
}

TEST_CASE("a property file reads as YCSB's do") {
  Properties p;
  REQUIRE(load(p,
               "# comment\n! comment\n\n  recordcount = 1000 "
               "\r\nworkload:site.ycsb.workloads.CoreWorkload\n"
               "readproportion=0.5\\\n   0\nlast=a=b")
              .is_ok());
  CHECK(p.text("recordcount", "") == "1000");
  CHECK(p.text("workload", "") == "site.ycsb.workloads.CoreWorkload");
  CHECK(p.text("readproportion", "") == "0.50");
  CHECK(p.text("last", "") == "a=b");
}

TEST_CASE("escapes and line ends are java.util.Properties' own") {
  Properties p;
  REQUIRE(
      load(p, "table=\\u0075ser\\u00e9\\u20AC\\ud83d\\uDE00\ra\\=b=1\r\ntab=x\\ty\\\\\nodd=\\q\n")
          .is_ok());
  CHECK(p.text("table", "") == "user\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  CHECK(p.text("a=b", "") == "1");
  CHECK(p.text("tab", "") == "x\ty\\");
  CHECK(p.text("odd", "") == "q");
  for (const char* bad :
       {"\\u", "\\u12", "\\u12g4", "\\u+123", "\\u0000", "\\ud83d", "\\ud83d\\u0041", "\\ude00"}) {
    const Status status = load(p, std::string("fine=1\ntable=") + bad + "\n");
    CHECK(status.code() == StatusCode::kBadInput);
    CHECK_MESSAGE(status.message().find("line 2: expected \\u and the four") != std::string::npos,
                  status.message());
  }
}

TEST_CASE(
    "a blank that a backslash escapes belongs to the value or key, others at its end do not") {
  Properties p;
  REQUIRE(load(p, "table=x1\\ \nlast=x2\\  \nfirst=\\ x3 \nkey\\ =x4\neven=x5\\\\ \n").is_ok());
  CHECK(p.text("table", "") == "x1 ");
  CHECK(p.text("last", "") == "x2 ");
  CHECK(p.text("first", "") == " x3");
  CHECK(p.text("key ", "") == "x4");
  CHECK(p.text("even", "") == "x5\\");
}

TEST_CASE("a backslash at the end of a file continues the line with nothing") {
  Properties p;
  REQUIRE(load(p, "table=x1\\").is_ok());
  CHECK(p.text("table", "") == "x1");
}

TEST_CASE("a NUL byte is told with its line") {
  Properties p;
  using namespace std::string_literals;
  const Status status = load(p, "fine=1\ntable=a\0b\n"s);
  CHECK(status.code() == StatusCode::kBadInput);
  CHECK(status.message().find("line 2: expected text without NUL") != std::string::npos);
}

TEST_CASE("a line without a separator is named with its number") {
  Properties p;
  const Status status = load(p, "a=1\n\nnonsense\n");
  CHECK(status.code() == StatusCode::kBadInput);
  CHECK(status.message().find("line 3") != std::string::npos);
  CHECK(status.message().find("'nonsense'") != std::string::npos);
}

TEST_CASE("a missing file is named") {
  Properties p;
  CHECK(p.load_file("/nowhere/a.properties").message().find("/nowhere/a.properties") !=
        std::string::npos);
}

TEST_CASE("a later setting wins") {
  Properties p;
  REQUIRE(p.set("a=1").is_ok());
  REQUIRE(p.set("a=2").is_ok());
  CHECK(p.text("a", "") == "2");
  CHECK(p.set("a").code() == StatusCode::kBadInput);
  CHECK(p.set("=a").code() == StatusCode::kBadInput);
}

TEST_CASE("a wrong value names key, value and what was expected") {
  Properties p;
  p.set("threads", "four");
  p.set("count", "-1");
  p.set("share", "1.5");
  p.set("flag", "yes");
  p.set("order", "sideways");
  p.set("trailing", "12x");
  int64_t integer = 7;
  double real = 0.25;
  bool flag = true;
  std::string word = "hashed";
  CHECK(p.integer("threads", 1, 64, &integer).message() ==
        "property threads=four: expected a whole number from 1 to 64");
  CHECK(p.integer("count", 0, 10, &integer).code() == StatusCode::kBadInput);
  CHECK(p.integer("trailing", 0, 100, &integer).code() == StatusCode::kBadInput);
  CHECK(p.real("share", 0, 1, &real).message() ==
        "property share=1.5: expected a number from 0 to 1");
  CHECK(p.boolean("flag", &flag).message() == "property flag=yes: expected true or false");
  CHECK(p.choice("order", {"hashed", "ordered"}, &word).message() ==
        "property order=sideways: expected one of hashed, ordered");
  CHECK(integer == 7);
  CHECK(real == 0.25);
  CHECK(flag);
  CHECK(word == "hashed");
}

TEST_CASE("a blank separates key and value, as in java.util.Properties") {
  Properties p;
  REQUIRE(load(p, "recordcount 1000\nfieldcount\t=\t3\ntable :  a b\nodd\\ key  = x\n").is_ok());
  CHECK(p.text("recordcount", "") == "1000");
  CHECK(p.text("fieldcount", "") == "3");
  CHECK(p.text("table", "") == "a b");
  CHECK(p.text("odd key", "") == "x");
}

TEST_CASE("a file is UTF-8 with or without a mark, or ISO 8859-1, and UTF-16 is told") {
  for (const char* text : {"\xef\xbb\xbftable=\xc3\xa9\n", "table=\xc3\xa9\n", "table=\xe9\n"}) {
    Properties p;
    REQUIRE(load(p, text).is_ok());
    CHECK(p.text("table", "") == "\xc3\xa9");
  }
  Properties p;
  CHECK(load(p, "\xff\xfet").message().find("found UTF-16") != std::string::npos);
}

TEST_CASE("names of ports of YCSB are taken for the property") {
  Properties p;
  REQUIRE(load(p, "deleteproportion=0.1\nzipfianconstant=0.8\nfield_len_dist=uniform\n").is_ok());
  CHECK(p.text("removeproportion", "") == "0.1");
  CHECK(p.text("truezipfian.theta", "") == "0.8");
  CHECK(p.text("fieldlengthdistribution", "") == "uniform");
  CHECK(p.all().size() == 3);
}

TEST_CASE("a comment behind a value is told for what it is") {
  Properties p;
  p.set("recordcount", "1000 # a thousand");
  int64_t integer = 0;
  CHECK(p.integer("recordcount", 0, 5000, &integer).message() ==
        "property recordcount=1000 # a thousand: expected a whole number from 0 to 5000; a comment "
        "needs a line of its own");
}

TEST_CASE("an unknown key is told with its nearest known name") {
  const std::vector<PropertyRule> rules{{"recordcount", "", ""}, {"readproportion", "", ""}};
  Properties p;
  p.set("recordcount", "1");
  CHECK(p.check_known(rules).is_ok());
  p.set("recordcuont", "1");
  CHECK(p.check_known(rules).message() ==
        "unknown property recordcuont=1: did you mean recordcount?");
}

TEST_CASE("a key that is none's misspelling names no other") {
  const std::vector<PropertyRule> rules{{"operationcount", "", ""}, {"threadcount", "", ""}};
  Properties p;
  p.set("records", "1");
  CHECK(p.check_known(rules).message() ==
        "unknown property records=1; docs/reference/loader.md has a list of all");
  CHECK(p.check_known(rules, {{"records", "", "here it is recordcount"}}).message() ==
        "unknown property records=1: here it is recordcount");
}

// Edits that make one word the other, by the definition: each way to begin is tried.
size_t edits(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return a.size() + b.size();
  if (a.front() == b.front()) return edits(a.substr(1), b.substr(1));
  size_t least =
      1 + std::min({edits(a.substr(1), b), edits(a, b.substr(1)), edits(a.substr(1), b.substr(1))});
  if (a.size() > 1 && b.size() > 1 && a[0] == b[1] && a[1] == b[0])
    least = std::min(least, 1 + edits(a.substr(2), b.substr(2)));
  return least;
}

TEST_CASE("the nearest key has the fewest edits, whichever keys come before it") {
  std::mt19937 random(1);
  const auto word = [&random] {
    std::string letters(1 + random() % 6, 'a');
    for (char& letter : letters) letter = static_cast<char>('a' + random() % 3);
    return letters;
  };
  for (int i = 0; i < 2000; ++i) {
    std::vector<PropertyRule> rules(1 + random() % 6);
    for (PropertyRule& rule : rules) rule.key = word();
    const std::string key = word() + 'z';
    size_t least = SIZE_MAX;
    std::string nearest;
    for (const PropertyRule& rule : rules) {
      const size_t distance = edits(key, rule.key);
      if (distance < least) nearest = rule.key;
      least = std::min(least, distance);
    }
    Properties properties;
    properties.set(key, "1");
    INFO("unknown ", key, ", expected ", nearest);
    const std::string end = least <= 1 + key.size() / 8
                                ? ": did you mean " + nearest + "?"
                                : "; docs/reference/loader.md has a list of all";
    CHECK(properties.check_known(rules).message() == "unknown property " + key + "=1" + end);
  }
}

TEST_CASE("a key that is longer than any known one has no neighbour, and is shown in part") {
  Properties properties;
  properties.set(std::string(100'000, 'k'), std::string(100'000, 'v'));
  const std::string message = properties.check_known({{"recordcount", "", ""}}).message();
  CHECK(message == "unknown property " + std::string(60, 'k') + "...=" + std::string(60, 'v') +
                       "...; docs/reference/loader.md has a list of all");
}

TEST_CASE("whatever a file holds is read as properties or told with its line") {
  constexpr std::string_view kPieces[] = {"a", "=",    ":",    "\\",   "\n", "#",
                                          " ", "\r\n", "\\\n", "\xff", "\0"};
  Random random(1, 0);
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (uint64_t pieces = random.below(40); pieces > 0; --pieces)
      text += kPieces[random.below(std::size(kPieces))];
    Properties p;
    const Status status = load(p, text);
    CHECK((status.is_ok() || status.message().find(", line ") != std::string::npos));
  }
}

}  // namespace
}  // namespace opjoule
