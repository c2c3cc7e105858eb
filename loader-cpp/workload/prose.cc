#include "workload/prose.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string_view>
#include <vector>

#include "loader/random.h"

namespace opjoule {
namespace {

constexpr size_t kGeneratedBytes = size_t{1} << 20;  // more than any compressor here looks back
constexpr size_t kMostFileBytes = size_t{64} << 20;

// Common words first, roughly in the order of their frequency.
constexpr std::string_view kCommon =
    "the of and to a in that it is was he for as with his on be at by i this had not are but from "
    "or "
    "have an they which one you were her all she there would their we him been has when who will "
    "more "
    "no if out so said what up its about into than them can only other new some could time these "
    "two "
    "may then do first any my now such like our over man me even most made after also did many "
    "before "
    "must through back years where much your way well down should because each just those people "
    "too "
    "how little state good very make world still own see men work long get here between both life "
    "being under never day same another know while last might us great old year off come since "
    "against "
    "go came right used take three himself few house use during without again place american "
    "around "
    "however home small found thought went say part once general high upon school every does got "
    "united "
    "left number course war until always away something fact though water less public put thing "
    "almost "
    "hand enough far took head yet government system better set told nothing night end why called "
    "eyes "
    "find going look asked later knew point next city business give group toward young days let "
    "room "
    "within white thus large per given present order second rather sense possible light second "
    "nature "
    "morning letter garden table river answer window mother father brother sister captain horse "
    "evening "
    "doctor country village street winter summer silver beautiful question certainly suddenly "
    "perhaps "
    "remember believe suppose gentleman moment silence forward together nearly indeed already "
    "children "
    "against whether became heart voice felt turned began seemed brought held kept stood heard "
    "best "
    "church matter money power black round along story short sea open town paper book friend woman "
    "family reason truth army king queen ship island forest mountain shadow bridge market corner "
    "strange quiet bright heavy narrow ancient gentle bitter hollow distant sudden familiar "
    "walked looked opened followed answered carried covered gathered promised wandered listened "
    "tomorrow yesterday afternoon midnight breakfast dinner supper candle fire smoke stone iron "
    "glass "
    "wooden velvet leather feather whisper thunder weather harbour lantern compass journey "
    "stranger "
    "neighbour servant soldier merchant farmer teacher prisoner companion";
constexpr std::string_view kStems[] = {
    "appear",   "consider", "measur",    "travel",  "govern", "attend",  "collect",
    "depart",   "direct",   "establish", "express", "form",   "govern",  "imagin",
    "invent",   "judg",     "land",      "mark",    "observ", "perform", "press",
    "question", "record",   "regard",    "relat",   "report", "search",  "settl",
    "suffer",   "support",  "transport", "visit",   "wonder", "yield"};
constexpr std::string_view kEndings[] = {"ed",    "ing",  "s",   "ment", "er",  "able",
                                         "ation", "less", "ful", "ance", "ive", "ly"};

std::vector<std::string> vocabulary() {
  std::vector<std::string> words;
  for (size_t at = 0; at < kCommon.size();) {
    const size_t end = std::min(kCommon.find(' ', at), kCommon.size());
    words.emplace_back(kCommon.substr(at, end - at));
    at = end + 1;
  }
  for (const std::string_view ending : kEndings)
    for (const std::string_view stem : kStems)
      words.push_back(std::string(stem) + std::string(ending));
  return words;
}

// Draws words by the Zipf-Mandelbrot law, 1 / (rank + 2.7): Mandelbrot, "An informational theory of
// the statistical structure of language", 1953.
class WordDrawer {
 public:
  explicit WordDrawer(Random& random) : random_(random), words_(vocabulary()) {
    double sum = 0;
    for (size_t rank = 1; rank <= words_.size(); ++rank) {
      sum += 1 / (static_cast<double>(rank) + 2.7);
      cumulative_.push_back(sum);
    }
  }
  const std::string& draw() {
    constexpr double kSteps = 1ull << 32;
    const double at =
        static_cast<double>(random_.below(uint64_t{1} << 32)) / kSteps * cumulative_.back();
    const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), at);
    return words_[std::min<size_t>(static_cast<size_t>(found - cumulative_.begin()),
                                   words_.size() - 1)];
  }

 private:
  Random& random_;
  std::vector<std::string> words_;
  std::vector<double> cumulative_;
};

}  // namespace

std::string make_prose(uint64_t seed, size_t size) {
  Random random(seed ^ 0x70726f7365, 0);
  WordDrawer words(random);
  std::string text;
  text.reserve(size + 256);
  while (text.size() < size) {
    const uint64_t sentence = 5 + random.below(26);
    for (uint64_t i = 0; i < sentence; ++i) {
      const size_t start = text.size();
      text += words.draw();
      if (i == 0 && text[start] >= 'a') text[start] = static_cast<char>(text[start] - 'a' + 'A');
      const bool last = i + 1 == sentence;
      if (!last && random.below(12) == 0) text += ',';
      text += last ? '.' : (random.below(12) == 0 ? '\n' : ' ');
    }
    text += random.below(6) == 0 ? "\n\n" : " ";
  }
  text.resize(size);
  return text;
}

Status read_value_text(const std::string& name, uint64_t seed, std::string* out) {
  if (name == "generated") {
    *out = make_prose(seed, kGeneratedBytes);
    return Status::ok();
  }
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(name.c_str(), "rb"), &std::fclose);
  if (file == nullptr)
    return {StatusCode::kBadInput,
            "property valuetext=" + name + ": no file that can be read; give one, or generated"};
  out->resize(kMostFileBytes + 1);
  out->resize(std::fread(out->data(), 1, out->size(), file.get()));
  out->shrink_to_fit();
  if (out->empty() || out->size() > kMostFileBytes)
    return {StatusCode::kBadInput,
            "property valuetext=" + name + ": expected a file of 1 B to 64 MiB"};
  return Status::ok();
}

}  // namespace opjoule
