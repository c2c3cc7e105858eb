// `loader trace`: the operations of a workload as text, without a database.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "board/exit_code.h"
#include "board/output.h"
#include "board/output_file.h"
#include "board/stop_signal.h"
#include "board/write_all.h"
#include "cli/commands.h"
#include "cli/properties_check.h"
#include "loader/system_error.h"
#include "workload/generator.h"
#include "workload/trace.h"

namespace opjoule {
namespace {

constexpr size_t kWriteBytes = 64 * 1024;

Status write_trace(const WorkloadSettings& settings, OperationSource& source, uint64_t operations,
                   int fd, const std::string& name) {
  std::vector<Operation> batch(16);
  std::string lines;
  Status status;
  for (uint64_t left = operations; left > 0 && !stop_requested();) {
    const std::span<Operation> room(batch.data(), std::min<uint64_t>(batch.size(), left));
    const size_t count = source.next(room, 0, status);
    for (size_t i = 0; i < count; ++i) {
      append_trace(settings, batch[i], lines);
      source.done(batch[i]);
    }
    left -= count;
    if (lines.size() < kWriteBytes && left > 0) continue;
    if (!write_all(fd, lines)) return system_error("trace " + name + ": cannot be written");
    lines.clear();
  }
  return status;
}

// Of the text that values are pieces of; a piece goes on from its end to its beginning.
Status check_text(const WorkloadSettings& settings, const std::string& name) {
  const std::string& text = *settings.value_text;
  const bool has_control = std::ranges::any_of(
      text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
  if (has_control)
    return {StatusCode::kBadInput,
            "valuetext=" + name +
                ": a line of a trace cannot hold its line ends or other control characters; leave "
                "it out"};
  const std::string field = " " + settings.field_prefix;
  const std::string round = text + text.substr(0, field.size());
  for (size_t at = round.find(field); at != std::string::npos; at = round.find(field, at + 1)) {
    const size_t digit = at + field.size();
    if (digit < round.size() && round[digit] >= '0' && round[digit] <= '9')
      return {StatusCode::kBadInput, "valuetext=" + name + ": has '" +
                                         round.substr(at + 1, field.size()) +
                                         "', which in a trace is the name of a field; set "
                                         "fieldnameprefix to a name that is not in it"};
  }
  return Status::ok();
}

Status prepare(const CommandOptions& options, Phase phase, WorkloadSettings* settings) {
  Properties properties;
  Status status = gather_properties(options, &properties);
  if (status.is_ok()) status = check_workload_properties(properties);
  if (status.is_ok()) status = WorkloadSettings::from(properties, phase, 1, settings);
  if (status.is_ok() && settings->value_characters == ValueCharacters::kAny)
    status = {StatusCode::kBadInput,
              "valuecharacters=any: a trace is text, its values have to be printable"};
  if (status.is_ok() && settings->value_text != nullptr)
    status = check_text(*settings, properties.text("valuetext", ""));
  if (status.is_ok() && settings->mix_block_s > 0)
    status = {StatusCode::kBadInput,
              "mixblock.length_s: blocks last for a time, and a trace has none; leave it out"};
  if (status.is_ok() && phase == Phase::kRun && settings->operation_count == 0)
    status = {StatusCode::kBadInput, "property operationcount: a trace needs it"};
  return status;
}

}  // namespace

int trace_command(const CommandOptions& options) {
  const Phase phase = options.phase == "load" ? Phase::kLoad : Phase::kRun;
  WorkloadSettings settings;
  if (Status status = prepare(options, phase, &settings); !status.is_ok())
    return report_failure(status);
  int fd = STDOUT_FILENO;
  if (!options.out.empty()) {
    if (Status opened = open_output("trace", options.out, O_TRUNC, &fd); !opened.is_ok())
      return report_failure(opened);
  }
  KeySpace state(settings);
  Status status;
  if (phase == Phase::kLoad) {
    LoadGenerator generator(state, 0);
    status = write_trace(settings, generator, settings.insert_count, fd, options.out);
  } else {
    RunGenerator generator(state, 0);
    status = write_trace(settings, generator, settings.operation_count, fd, options.out);
  }
  if (!status.is_ok()) return report_failure(status);
  return stop_requested() ? kExitInterrupted : kExitOk;
}

}  // namespace opjoule
