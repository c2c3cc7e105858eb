#include "probe/request.h"

#include <charconv>
#include <sstream>
#include <vector>

#include "probe/load_signature.h"

namespace opjoule {
namespace {

constexpr uint32_t kBitMsMax = 10000;
constexpr double kDrainLimitMaxS = 86400;
constexpr size_t kFileNameMax = 200;

Status expected(std::string what) { return {StatusCode::kBadInput, std::move(what)}; }

bool is_file_name(const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-';
  };
  if (name.empty() || name.size() > kFileNameMax || name.front() == '.') return false;
  for (const char c : name)
    if (!allowed(c)) return false;
  return true;
}

template <typename Number>
bool parse_whole(const std::string& word, Number* out) {
  const char* end = word.data() + word.size();
  const auto parsed = std::from_chars(word.data(), end, *out);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

Status parse_files(const std::string& name, Request* out) {
  if (!is_file_name(name)) return expected("the name is not 1 to 200 letters, digits, '.' or '-'");
  out->kind = RequestKind::kFiles;
  out->name = name;
  return Status::ok();
}

Status parse_signature(const std::string& bits, const std::string& bit_ms, Request* out) {
  if (!is_signature(bits) || !parse_whole(bit_ms, &out->bit_ms) || out->bit_ms < 1 ||
      out->bit_ms > kBitMsMax)
    return expected("expected 1 to 65535 zeros and ones, and 1 to 10000 ms");
  out->kind = RequestKind::kSignature;
  out->bits = bits;
  return Status::ok();
}

Status parse_drain(const std::string& limit, Request* out) {
  if (!parse_whole(limit, &out->limit_s) || !(out->limit_s >= 0 && out->limit_s <= kDrainLimitMaxS))
    return expected("expected 0 to 86400 seconds");
  out->kind = RequestKind::kDrain;
  return Status::ok();
}

}  // namespace

Status parse_request(const std::string& line, Request* out) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  const size_t count = words.size();
  const std::string verb = count == 0 ? "" : words[0];
  if (verb == "files" && count == 2) return parse_files(words[1], out);
  if (verb == "signature" && count == 3) return parse_signature(words[1], words[2], out);
  if (verb == "drain" && count == 2) return parse_drain(words[1], out);
  if (verb == "pending" && count == 1)
    out->kind = RequestKind::kPending;
  else if (verb == "steering" && count == 1)
    out->kind = RequestKind::kSteering;
  else
    return expected(
        "there are clock, pending, files NAME, signature BITS BIT_MS, steering, drain LIMIT_S");
  return Status::ok();
}

}  // namespace opjoule
