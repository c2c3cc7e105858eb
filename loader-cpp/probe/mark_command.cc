// `probe mark`: marks from shells and files.
#include <cstdlib>

#include "board/clock.h"
#include "board/exit_code.h"
#include "board/input_file.h"
#include "board/output.h"
#include "probe/commands.h"
#include "probe/mark.h"
#include "probe/marks_client.h"

namespace opjoule {
namespace {

constexpr double kTakenLimitS = 60;
constexpr size_t kMarksFileBytesMax = size_t{1} << 30;

// The lines as they are sent, each checked.
Status check_lines(std::string_view text, const std::string& where, std::string* out,
                   uint64_t* count) {
  uint64_t number = 0;
  for (size_t at = 0; at < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (line.empty()) continue;
    Mark mark;
    Status status = parse_mark(line, board_ns(), &mark);
    if (line.size() > kMarkBytesMax) status = {StatusCode::kBadInput, "more than 4096 bytes"};
    if (!status.is_ok())
      return {status.code(),
              where + (where.empty() ? "" : " line " + std::to_string(number + 1) + ": ") +
                  status.message()};
    if (mark.kind == MarkKind::kSync) continue;
    out->append(line).push_back('\n');
    ++*count;
  }
  return Status::ok();
}

Status send_marks(const MarkOptions& options, const std::string& socket) {
  std::string text;
  for (const std::string& word : options.words) text += (text.empty() ? "" : " ") + word;
  if (!options.file.empty())
    if (Status status = read_input("marks file ", options.file == "-" ? "/dev/stdin" : options.file,
                                   kMarksFileBytesMax, &text);
        !status.is_ok())
      return status;
  if (options.words.empty() == options.file.empty())
    return {StatusCode::kBadInput,
            "mark: give one mark, as in probe mark phase begin load, or "
            "--file FILE"};
  std::string lines;
  uint64_t count = 0;
  uint64_t taken = 0;
  if (Status status = check_lines(text, options.file, &lines, &count); !status.is_ok())
    return status;
  if (socket.empty()) return Status::ok();
  std::unique_ptr<MarksClient> client;
  Status status = MarksClient::connect(socket, &client);
  if (status.is_ok()) status = client->send(lines);
  if (status.is_ok()) status = client->sync(kTakenLimitS, &taken);
  if (status.is_ok() && taken != count)
    status = {StatusCode::kIo, "marks socket " + socket + ": the probe took " +
                                   std::to_string(taken) + " of " + std::to_string(count) +
                                   " marks; it says why"};
  return status;
}

}  // namespace

int mark_command(const MarkOptions& options) {
  const char* given = std::getenv("OPJOULE_MARKS");
  const std::string socket = options.socket.empty() && given != nullptr ? given : options.socket;
  const Status status = send_marks(options, socket);
  return status.is_ok() ? kExitOk : report_failure(status, kProbe);
}

}  // namespace opjoule
