#include "probe/requests.h"

#include "board/board_counters.h"
#include "board/clock.h"
#include "board/settle.h"
#include "board/stop_signal.h"
#include "probe/board_commands.h"
#include "probe/load_signature.h"
#include "probe/request.h"

namespace opjoule {

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
  Request request;
  if (const Status status = parse_request(line, &request); !status.is_ok())
    return answers_.say_error(line, status.message());
  switch (request.kind) {
    case RequestKind::kPending:
      return answers_.say({{"answer", "pending"}, {"bytes", pending_write_bytes(kernel_files_)}});
    case RequestKind::kFiles:
      return files(line, request.name);
    case RequestKind::kSignature:
      return signature(line, request.bits, request.bit_ms);
    case RequestKind::kSteering:
      return steering(line);
    case RequestKind::kDrain:
      return drain(line, request.limit_s);
  }
}

void Requests::files(const std::string& line, const std::string& name) {
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

void Requests::signature(const std::string& line, const std::string& bits, uint32_t bit_ms) {
  const bool started = playing_.start([this, bits, bit_ms] {
    recorder_.signature_begins();
    const LoadSignature played = play_signature(bits, bit_ms);
    recorder_.signature_ends(played);
    if (stop_requested()) return;  // cut short
    answers_.say({{"answer", "signature"},
                  {"start_ns", played.start_board_ns},
                  {"end_ns", played.end_board_ns},
                  {"bits", bits}});
  });
  if (!started) answers_.say_error(line, "another signature is being played");
}

void Requests::drain(const std::string& line, double limit_s) {
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
