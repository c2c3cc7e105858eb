#include "board/clock.h"
#include "board/system_sampler.h"

namespace opjoule {

SystemProbe::SystemProbe(const std::string& database_path) : board_(database_path) {}

SystemSample SystemProbe::read() {
  SystemSample sample;
  // These two belong to one moment: reading /proc takes longer than all the rest.
  sample.process_cpu_s = threads_.process_cpu_s();
  sample.board_ns = board_ns();
  const BoardCounters board = board_.read();
  sample.cpu_busy_s = board.cpu_busy_s;
  sample.device_read_bytes = board.device_read_bytes;
  sample.device_written_bytes = board.device_written_bytes;
  sample.dirty_bytes = board.dirty_bytes;
  const std::string_view io = io_.read();
  const uint64_t written = number_after(io, "\nwrite_bytes:");
  const uint64_t cancelled = number_after(io, "cancelled_write_bytes:");
  sample.process_read_bytes = number_after(io, "\nread_bytes:");
  sample.process_written_bytes = written > cancelled ? written - cancelled : 0;
  const std::string_view status = status_.read();
  sample.rss_bytes = number_after(status, "VmRSS:") * 1024;
  sample.rss_anon_bytes = number_after(status, "RssAnon:") * 1024;
  return sample;
}

}  // namespace opjoule
