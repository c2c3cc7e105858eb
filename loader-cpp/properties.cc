#include "loader/properties.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>

#include "board/input_file.h"

namespace opjoule {
namespace {

constexpr size_t kShown = 60;  // bytes of a wrong line in its message
// No known key comes near this: a longer one is no slip of the fingers, and comparing it takes time
// with its length.
constexpr size_t kLongestKey = 200;
constexpr size_t kLongestFile = size_t{1} << 20;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\f' || c == '\r'; }

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// An odd number of trailing backslashes continues the line, as in java.util.Properties.
bool continues(std::string_view line) {
  size_t backslashes = 0;
  while (backslashes < line.size() && line[line.size() - 1 - backslashes] == '\\') ++backslashes;
  return backslashes % 2 == 1;
}

// Blanks at the end are dropped unless a backslash escapes them.
std::string_view trim_unescaped(std::string_view text) {
  const std::string_view kept = trim(text);
  const size_t end = static_cast<size_t>(kept.data() + kept.size() - text.data());
  return continues(kept) && end < text.size() ? text.substr(end - kept.size(), kept.size() + 1)
                                              : kept;
}

std::string shown(std::string_view text) {
  return std::string(text.substr(0, kShown)) + (text.size() > kShown ? "..." : "");
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string_view trim_front(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  return text;
}

// The next line of `text` from *at on, without its end: \n, \r or both, as in java.util.Properties.
bool next_line(std::string_view text, size_t* at, std::string_view* line) {
  if (*at >= text.size()) return false;
  const size_t end = std::min(text.find_first_of("\r\n", *at), text.size());
  *line = text.substr(*at, end - *at);
  *at = end + (text.substr(end).starts_with("\r\n") ? 2 : 1);
  return true;
}

void append_utf8(uint32_t point, std::string* out) {
  const auto put = [out](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xc0 | point >> 6);
  } else if (point < 0x10000) {
    put(0xe0 | point >> 12);
    put(0x80 | (point >> 6 & 0x3f));
  } else {
    put(0xf0 | point >> 18);
    put(0x80 | (point >> 12 & 0x3f));
    put(0x80 | (point >> 6 & 0x3f));
  }
  put(0x80 | (point & 0x3f));
}

// The four hexadecimal digits at the front of `text`; -1 where there are none.
int32_t take_hex4(std::string_view* text) {
  int32_t value = 0;
  const char* first = text->data();
  if (text->size() < 4 || !std::isxdigit(static_cast<unsigned char>(*first)) ||
      std::from_chars(first, first + 4, value, 16).ptr != first + 4)
    return -1;
  text->remove_prefix(4);
  return value;
}

// The character after \u, in UTF-8; one beyond 16 bits is a pair of escapes. False if it is no
// character, or NUL, which no path or name can contain.
bool unescape_unicode(std::string_view* text, std::string* out) {
  const int32_t first = take_hex4(text);
  if (first <= 0) return false;
  auto point = static_cast<uint32_t>(first);
  if (point >= 0xd800 && point < 0xe000) {
    if (point >= 0xdc00 || !text->starts_with("\\u")) return false;
    text->remove_prefix(2);
    const int32_t second = take_hex4(text);
    if (second < 0xdc00 || second >= 0xe000) return false;
    point = 0x10000 + ((point - 0xd800) << 10) + (static_cast<uint32_t>(second) - 0xdc00);
  }
  append_utf8(point, out);
  return true;
}

// java.util.Properties' escapes. False for a \u without a character.
bool unescape(std::string_view text, std::string* out) {
  while (!text.empty()) {
    const char c = text.front();
    text.remove_prefix(1);
    if (c != '\\' || text.empty()) {
      out->push_back(c);
      continue;
    }
    const char escaped = text.front();
    text.remove_prefix(1);
    constexpr std::string_view kLetters = "tnrf";
    const size_t letter = kLetters.find(escaped);
    if (escaped == 'u') {
      if (!unescape_unicode(&text, out)) return false;
    } else {
      out->push_back(letter == std::string_view::npos ? escaped : "\t\n\r\f"[letter]);
    }
  }
  return true;
}

// Position of the first '=', ':' or blank that no backslash escapes.
size_t find_separator(std::string_view line) {
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\')
      ++i;
    else if (line[i] == '=' || line[i] == ':' || is_space(line[i]))
      return i;
  }
  return std::string_view::npos;
}

// What follows the key: blanks, or '=' or ':' with blanks around it, are no part of the value.
std::string_view value_part(std::string_view text) {
  text = trim_unescaped(text);
  return text.starts_with('=') || text.starts_with(':') ? trim_front(text.substr(1)) : text;
}

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<uint8_t>(text[i]);
    const int length = first < 0x80 ? 1 : std::countl_one(first);
    if ((first >= 0x80 && length < 2) || length > 4 ||
        i + static_cast<size_t>(length) > text.size())
      return false;
    for (int more = 1; more < length; ++more)
      if ((static_cast<uint8_t>(text[i + static_cast<size_t>(more)]) & 0xc0) != 0x80) return false;
    i += static_cast<size_t>(length);
  }
  return true;
}

// The text in UTF-8 without a byte order mark; what is no UTF-8 is ISO 8859-1, as Java reads it.
std::string decoded(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (is_utf8(text)) return std::string(text);
  std::string out;
  for (const char c : text) append_utf8(static_cast<uint8_t>(c), &out);
  return out;
}

// Edits (insert, delete, replace, swap of neighbours) that make one text the other; `most` if they
// are as many or more.
size_t edit_distance(std::string_view a, std::string_view b, size_t most) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  size_t least_before = 0;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t least = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1,
                             cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      least = std::min(least, cost[i][j]);
    }
    if (std::min(least, least_before) >= most) return most;  // no later row is below these two
    least_before = least;
  }
  return std::min(cost[a.size()][b.size()], most);
}

// Edits up to which a key counts as a misspelling of another.
size_t most_slips(const std::string& key) { return 1 + key.size() / 8; }

// The rule of which the key is a misspelling, if there is one; for an engine's key, among those of
// that engine.
const PropertyRule* nearest_rule(const std::string& key, const std::vector<PropertyRule>& rules) {
  if (key.size() > kLongestKey) return nullptr;
  const std::string family = lower(key.substr(0, key.find('.') + 1));
  const auto is_kin = [&family](const PropertyRule& rule) { return rule.key.starts_with(family); };
  const bool has_kin = std::any_of(rules.begin(), rules.end(), is_kin);
  const std::string lower_key = lower(key);
  const PropertyRule* nearest = nullptr;
  size_t least = most_slips(key) + 1;
  for (const PropertyRule& rule : rules) {
    if (has_kin && !is_kin(rule)) continue;
    const auto [shorter, longer] = std::minmax({key.size(), rule.key.size()});
    if (longer - shorter >= least) continue;  // a lower bound of the distance
    const size_t distance = edit_distance(lower_key, lower(rule.key), least);
    if (distance >= least) continue;
    least = distance;
    nearest = &rule;
  }
  return nearest;
}

Status bad_value(std::string_view key, std::string_view value, const std::string& expected) {
  const bool has_comment = value.find_first_of("#!;/") != std::string_view::npos;
  return {StatusCode::kBadInput, "property " + std::string(key) + "=" + shown(value) +
                                     ": expected " + expected +
                                     (has_comment ? "; a comment needs a line of its own" : "")};
}

std::string number_text(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

}  // namespace

Status Properties::load_file(const std::string& path) {
  std::string text;
  if (Status status = read_input("workload file ", path, kLongestFile, &text); !status.is_ok())
    return status;
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    return {StatusCode::kBadInput,
            "workload file " + path + ", line 1: expected UTF-8, found UTF-16; save it as UTF-8"};
  text = decoded(text);
  size_t at = 0;
  size_t line_number = 0;
  for (std::string_view line; next_line(text, &at, &line);) {
    const size_t first_line = ++line_number;
    std::string logical(trim_front(line));
    if (logical.empty() || logical[0] == '#' || logical[0] == '!') continue;
    while (continues(logical)) {
      logical.pop_back();
      if (!next_line(text, &at, &line)) break;
      ++line_number;
      logical.append(trim_front(line));
    }
    const auto bad_line = [&](const std::string& expected) {
      return Status(StatusCode::kBadInput, "workload file " + path + ", line " +
                                               std::to_string(first_line) + ": expected " +
                                               expected + ", found '" + shown(logical) + "'");
    };
    if (logical.find('\0') != std::string::npos) return bad_line("text without NUL");
    const size_t separator = find_separator(logical);
    if (separator == std::string::npos || trim(logical.substr(0, separator)).empty())
      return bad_line("key=value");
    const std::string_view whole(logical);
    std::string key;
    std::string value;
    if (!unescape(trim_unescaped(whole.substr(0, separator)), &key) ||
        !unescape(value_part(whole.substr(separator)), &value))
      return bad_line("\\u and the four hexadecimal digits of a character");
    set(key, value);
  }
  return Status::ok();
}

Status Properties::set(std::string_view assignment) {
  const size_t separator = assignment.find('=');
  if (separator == std::string_view::npos || trim(assignment.substr(0, separator)).empty())
    return {StatusCode::kBadInput,
            "-p " + std::string(assignment) + ": expected key=value, as in -p recordcount=1000"};
  set(trim(assignment.substr(0, separator)), trim(assignment.substr(separator + 1)));
  return Status::ok();
}

void Properties::set(std::string_view key, std::string_view value) {
  constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
      {"deleteproportion", "removeproportion"},  {"field_len_dist", "fieldlengthdistribution"},
      {"zipfian.constant", "truezipfian.theta"}, {"zipfian.exponent", "truezipfian.theta"},
      {"zipfian.theta", "truezipfian.theta"},    {"zipfian_const", "truezipfian.theta"},
      {"zipfian_constant", "truezipfian.theta"}, {"zipfian_theta", "truezipfian.theta"},
      {"zipfianconstant", "truezipfian.theta"},  {"zipfianexponent", "truezipfian.theta"},
  };
  for (const auto& [other, name] : kOtherNames)
    if (key == other) key = name;
  values_.insert_or_assign(std::string(key), std::string(value));
}

bool Properties::has(std::string_view key) const { return values_.find(key) != values_.end(); }

std::string Properties::text(std::string_view key, std::string_view fallback) const {
  const auto found = values_.find(key);
  return found == values_.end() ? std::string(fallback) : found->second;
}

Status Properties::integer(std::string_view key, int64_t minimum, int64_t maximum,
                           int64_t* out) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return Status::ok();
  const std::string& text = found->second;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < minimum ||
      value > maximum)
    return bad_value(
        key, text,
        "a whole number from " + std::to_string(minimum) + " to " + std::to_string(maximum));
  *out = value;
  return Status::ok();
}

Status Properties::real(std::string_view key, double minimum, double maximum, double* out) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return Status::ok();
  const std::string& text = found->second;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() ||
      !(value >= minimum && value <= maximum))
    return bad_value(key, text,
                     "a number from " + number_text(minimum) + " to " + number_text(maximum));
  *out = value;
  return Status::ok();
}

Status Properties::boolean(std::string_view key, bool* out) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return Status::ok();
  const std::string value = lower(found->second);
  if (value != "true" && value != "false") return bad_value(key, found->second, "true or false");
  *out = value == "true";
  return Status::ok();
}

Status Properties::choice(std::string_view key, const std::vector<std::string>& allowed,
                          std::string* out) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return Status::ok();
  std::string expected;
  for (const std::string& candidate : allowed) {
    if (candidate == found->second) {
      *out = candidate;
      return Status::ok();
    }
    expected += (expected.empty() ? "" : ", ") + candidate;
  }
  return bad_value(key, found->second, "one of " + expected);
}

Status Properties::check_known(const std::vector<PropertyRule>& rules,
                               const std::vector<PropertyRule>& translations) const {
  for (const auto& [key, value] : values_) {
    const auto is_it = [&wanted = key](const PropertyRule& rule) { return rule.key == wanted; };
    if (std::any_of(rules.begin(), rules.end(), is_it)) continue;
    std::string message = "unknown property " + shown(key) + "=" + shown(value);
    const auto is_told = [&wanted = key](const PropertyRule& rule) { return rule.key == wanted; };
    const auto told = std::find_if(translations.begin(), translations.end(), is_told);
    if (told != translations.end())
      message += ": " + told->help;
    else if (const PropertyRule* nearest = nearest_rule(key, rules); nearest != nullptr)
      message += ": did you mean " + nearest->key + "?";
    else
      message += "; docs/reference/loader.md has a list of all";
    return {StatusCode::kBadInput, message};
  }
  return Status::ok();
}

}  // namespace opjoule
