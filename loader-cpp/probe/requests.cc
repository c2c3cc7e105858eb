#include "probe/requests.h"

#include <charconv>
#include <cmath>
#include <sstream>
#include <vector>

#include "board/board_counters.h"
#include "board/clock.h"
#include "board/settle.h"
#include "board/stop_signal.h"
#include "probe/board_commands.h"
#include "probe/load_signature.h"

namespace opjoule {
namespace {

constexpr uint32_t kBitMsMax = 10000;
constexpr double kDrainLimitMaxS = 86400;
constexpr size_t kNameMax = 200;

bool is_file_name(const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-';
  };
  if (name.empty() || name.size() > kNameMax || name.front() == '.') return false;
  for (const char c : name)
    if (!allowed(c)) return false;
  return true;
}

template <typename Number>
bool parse(const std::string& word, Number* out) {
  const char* end = word.data() + word.size();
  const auto parsed = std::from_chars(word.data(), end, *out);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

}  // namespace

template <typename Work>
bool Requests::Background::start(Work work) {
  {
    const std::lock_guard lock(mutex_);
    if (busy_) return false;
    busy_ = true;
  }
  join();
  thread_ = std::thread([this, work = std::move(work)] {
    work();
    const std::lock_guard lock(mutex_);
    busy_ = false;
  });
  return true;
}

void Requests::Background::join() {
  if (thread_.joinable()) thread_.join();
}

Requests::Requests(std::string storage, std::string kernel_files, Recorder& recorder,
                   Answers& answers)
    : storage_(std::move(storage)),
      kernel_files_(std::move(kernel_files)),
      recorder_(recorder),
      answers_(answers),
      thread_([this] { loop(); }) {}

Requests::~Requests() {
  if (thread_.joinable()) stop();
}

void Requests::take(std::string line) {
  const std::lock_guard lock(mutex_);
  lines_.push_back(std::move(line));
  wake_.notify_one();
}

void Requests::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !lines_.empty(); });
    if (lines_.empty()) return;
    const std::string line = std::move(lines_.front());
    lines_.pop_front();
    lock.unlock();
    answer(line);
    lock.lock();
  }
}

void Requests::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
  playing_.join();
  draining_.join();
}

void Requests::answer(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  const size_t count = words.size();
  const std::string request = count == 0 ? "" : words[0];
  if (request == "pending" && count == 1)
    answers_.say({{"answer", "pending"}, {"bytes", pending_write_bytes(kernel_files_)}});
  else if (request == "files" && count == 2)
    files(line, words[1]);
  else if (request == "signature" && count == 3)
    signature(line, words[1], words[2]);
  else if (request == "steering" && count == 1)
    steering(line);
  else if (request == "drain" && count == 2)
    drain(line, words[1]);
  else
    answers_.say_error(line,
                       "there are clock, pending, files NAME, signature BITS BIT_MS, steering, "
                       "drain LIMIT_S");
}

void Requests::files(const std::string& line, const std::string& name) {
  if (!is_file_name(name))
    return answers_.say_error(line, "the name is not 1 to 200 letters, digits, '.' or '-'");
  if (const Status status = recorder_.files(name); !status.is_ok())
    return answers_.say_error(line, status.message());
  answers_.say({{"answer", "files"}, {"name", name}});
}

void Requests::steering(const std::string& line) {
  std::string json;
  if (const Status status = clock_steering(&json); !status.is_ok())
    return answers_.say_error(line, status.message());
  answers_.say({{"answer", "steering"}, {"adjtimex", Json::parse(json)}});
}

void Requests::signature(const std::string& line, const std::string& bits,
                         const std::string& bit_ms) {
  uint32_t length_ms = 0;
  if (!is_signature(bits) || !parse(bit_ms, &length_ms) || length_ms < 1 || length_ms > kBitMsMax)
    return answers_.say_error(line, "expected 1 to 65535 zeros and ones, and 1 to 10000 ms");
  const bool started = playing_.start([this, bits, length_ms] {
    recorder_.signature_begins();
    const LoadSignature played = play_signature(bits, length_ms);
    recorder_.signature_ends(played);
    if (stop_requested()) return;  // cut short
    answers_.say({{"answer", "signature"},
                  {"start_ns", played.start_board_ns},
                  {"end_ns", played.end_board_ns},
                  {"bits", bits}});
  });
  if (!started) answers_.say_error(line, "another signature is being played");
}

void Requests::drain(const std::string& line, const std::string& limit) {
  double limit_s = 0;
  if (!parse(limit, &limit_s) || !(limit_s >= 0 && limit_s <= kDrainLimitMaxS))
    return answers_.say_error(line, "expected 0 to 86400 seconds");
  if (storage_.empty())
    return answers_.say_error(line, "the probe was started without --path: nothing to write back");
  const bool started = draining_.start([this, line, limit_s] {
    const int64_t start_ns = board_ns();
    bool written_back = false;
    const Status status = write_back(storage_, limit_s, &written_back);
    if (!status.is_ok()) return answers_.say_error(line, status.message());
    answers_.say({{"answer", "drain"},
                  {"written_back", written_back},
                  {"start_ns", start_ns},
                  {"end_ns", board_ns()}});
  });
  if (!started) answers_.say_error(line, "another drain is under way");
}

}  // namespace opjoule
