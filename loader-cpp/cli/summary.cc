#include "cli/summary.h"

#include <nlohmann/json.hpp>

namespace opjoule {
namespace {

using Json = nlohmann::ordered_json;

std::string code_name(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kNotFound:
      return "not_found";
    case StatusCode::kExists:
      return "exists";
    case StatusCode::kBusy:
      return "busy";
    case StatusCode::kBadInput:
      return "bad_input";
    case StatusCode::kMismatch:
      return "mismatch";
    case StatusCode::kNoSpace:
      return "no_space";
    case StatusCode::kIo:
      return "io";
    case StatusCode::kCorrupt:
      return "corrupt";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kIncomplete:
      return "incomplete";
    case StatusCode::kInterrupted:
      return "interrupted";
  }
  return "unknown";
}

Json latency_json(const LatencyHistogram& latency) {
  return {{"mean", latency.mean_ns() * 1e-9},
          {"min", latency.quantile_ns(0) * 1e-9},
          {"p50", latency.quantile_ns(0.50) * 1e-9},
          {"p95", latency.quantile_ns(0.95) * 1e-9},
          {"p99", latency.quantile_ns(0.99) * 1e-9},
          {"max", static_cast<double>(latency.maximum_ns()) * 1e-9}};
}

Json kind_json(const KindResults& kind, bool not_found_expected) {
  Json json;
  json["count"] = kind.succeeded + kind.not_found + kind.failed;
  json["errors"] = kind.failed + (not_found_expected ? 0 : kind.not_found);
  json["not_found"] = kind.not_found;
  json["bytes"] = kind.bytes;
  json["latency_s"] = kind.latency.count() > 0 ? latency_json(kind.latency) : Json(nullptr);
  if (kind.intended_latency.count() > 0)
    json["intended_latency_s"] = latency_json(kind.intended_latency);
  return json;
}

Json by_kind_json(const PhaseResults& results, bool not_found_expected) {
  Json json = Json::object();
  for (int i = 0; i < kOperationKinds; ++i) {
    const KindResults& kind = results.by_kind[i];
    if (kind.succeeded + kind.not_found + kind.failed > 0)
      json[kind_name(static_cast<OperationKind>(i))] = kind_json(kind, not_found_expected);
  }
  return json;
}

// Every property that has an effect, as given or by default.
Json workload_json(const Summary& summary) {
  Json json = Json::object();
  for (const PropertyRule& rule : workload_rules())
    json[rule.key] = summary.properties->text(rule.key, rule.default_value);
  if (!summary.properties->has("insertroom.operations")) json.erase("insertroom.operations");
  json["threadcount"] = std::to_string(summary.settings->threads);
  json["insertcount"] = std::to_string(summary.settings->insert_count);
  json["seed"] = std::to_string(static_cast<int64_t>(summary.settings->seed));
  return json;
}

}  // namespace

std::string ignored_json(const std::vector<std::string>& keys) {
  return Json{{"ignored", keys}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string summary_json(const Summary& summary) {
  const PhaseResults& results = summary.results;
  const uint64_t operations = results.operations();
  uint64_t bytes = 0;
  for (const KindResults& kind : results.by_kind) bytes += kind.bytes;
  Json json;
  json["command"] = summary.command;
  json["database"] = summary.engine;
  json["database_version"] = summary.engine_version;
  json["loader_version"] = OPJOULE_VERSION;
  json["operations"] = operations;
  json["duration_s"] = summary.duration_s;
  json["cpu_s"] = summary.cpu_s;
  json["throughput_per_s"] =
      summary.duration_s > 0 ? static_cast<double>(operations) / summary.duration_s : 0.0;
  json["bytes"] = bytes;
  json["errors"] = results.errors(summary.not_found_expected);
  Json by_code = Json::object();
  for (const auto& [code, count] : results.failures) by_code[code_name(code)] = count;
  json["errors_by_code"] = by_code;
  json["by_kind"] = by_kind_json(results, summary.not_found_expected);
  json["retries"] = {{"busy", results.retries.busy},
                     {"stall", results.retries.stall},
                     {"timeout", results.retries.timeout},
                     {"insert", results.insert_retries}};
  json["interrupted"] = summary.interrupted;
  json["out_of_time"] = summary.out_of_time;
  json["replayed"] = summary.replayed;
  if (summary.mix_blocks > 0) json["mix_blocks"] = summary.mix_blocks;
  json["failure"] = summary.failure.empty() ? Json(nullptr) : Json(summary.failure);
  json["settled"] = summary.settle_asked ? Json(summary.settled) : Json(nullptr);
  json["settle_s"] = summary.settle_s;
  json["opening_settled"] = summary.opening_settled;
  json["threads"] = summary.settings->threads;
  json["seed"] = static_cast<int64_t>(summary.settings->seed);
  json["settings"] = summary.engine_settings;
  json["workload"] = workload_json(summary);
  json["ignored"] = summary.ignored;
  json["peak_memory_bytes"] = summary.peak_memory_bytes;
  json["memory_bytes"] = summary.memory_at_end.resident_bytes;
  json["anonymous_memory_bytes"] = summary.memory_at_end.anonymous_bytes;
  json["database_bytes"] = summary.database_bytes;
  if (summary.resumed)
    json["resumed"] = {{"records_before", summary.rows_before},
                       {"records_after", summary.rows_after}};
  if (summary.settings->value_digest) json["value_digest"] = results.value_digest;
  if (results.skipped_lines > 0) json["skipped_trace_lines"] = results.skipped_lines;
  json["dropped_events"] = summary.dropped_events;
  return Json{{"summary", json}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace opjoule
