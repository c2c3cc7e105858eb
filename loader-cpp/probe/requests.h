// The requests of the host to `probe serve`, except the clock: carried out one after the other on a
// thread, long ones on threads of their own, so that the clock is answered meanwhile.
//
// Thread safety: any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "probe/answers.h"
#include "probe/recorder.h"

namespace opjoule {

class Requests {
 public:
  // storage: the folder to write back; empty for none. kernel_files: as of BoardCounterFiles. The
  // others outlive this object.
  Requests(std::string storage, std::string kernel_files, Recorder& recorder, Answers& answers);
  ~Requests();
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  // A line without its newline; returns at once.
  void take(std::string line);
  // Carries out what was taken; long requests are given up once a stop is requested. Called once.
  void stop();

 private:
  // A long request; one of each kind at a time.
  class Background {
   public:
    template <typename Work>
    bool start(Work work);
    void join();

   private:
    std::mutex mutex_;
    bool busy_ = false;
    std::thread thread_;
  };

  void loop();
  void answer(const std::string& line);
  void files(const std::string& line, const std::string& name);
  void steering(const std::string& line);
  void signature(const std::string& line, const std::string& bits, uint32_t bit_ms);
  void drain(const std::string& line, double limit_s);

  const std::string storage_;
  const std::string kernel_files_;
  Recorder& recorder_;
  Answers& answers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::string> lines_;
  bool stopping_ = false;
  Background playing_;
  Background draining_;
  std::thread thread_;
};

}  // namespace opjoule
