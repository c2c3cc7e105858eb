// One listener of a seccomp filter: receives the calls that its programs make, and answers them.
//
// Thread safety: answer() from any thread, the rest belongs to one.
#pragma once

#include <linux/seccomp.h>

#include <cstdint>

namespace opjoule {

class Listener {
 public:
  // Takes the descriptor.
  explicit Listener(int fd);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // The next call that waits; false where there is none. Its caller may end at any moment.
  bool receive(seccomp_notif* out) const;
  // False where the caller no longer waits.
  [[nodiscard]] bool valid(uint64_t id) const;
  // The call gives `value`, or fails with `error_number` where that is not 0.
  void answer(uint64_t id, int64_t value, int error_number) const;
  // The kernel makes the call as if nobody had trapped it.
  void let_run(uint64_t id) const;
  // The call gives a descriptor: a copy of `fd`, with the number `number`. False with errno where
  // the caller cannot have it.
  [[nodiscard]] bool answer_descriptor(uint64_t id, int fd, int number, bool close_on_exec) const;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  const int fd_;
};

}  // namespace opjoule
