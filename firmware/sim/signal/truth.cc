#include "signal/truth.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "errors.h"

namespace opjoule::rig {

std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

std::string json_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    char escaped[8];
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string json_array(const std::vector<std::string>& items) {
  std::string out = "[";
  for (const auto& item : items) out += (out.size() > 1 ? ", " : "") + item;
  return out + "]";
}

void Truth::edge(double profile_s) {
  const double energy_j = profile_.until(profile_s).energy_j;
  if (last_edge_s_)
    intervals_.push_back(
        {*last_edge_s_ - offset_s_, profile_s - offset_s_, energy_j - last_edge_j_});
  last_edge_s_ = profile_s;
  last_edge_j_ = energy_j;
}

std::string Truth::to_json(double end_s) const {
  const Integrals total = profile_.until(end_s) - origin_;
  std::string json = "{\n  \"schema\": {\"name\": \"rig-sim-truth\", \"version\": 1},\n";
  json += "  \"duration_s\": " + json_number(end_s - offset_s_) + ",\n";
  json += "  \"total_j\": " + json_number(total.energy_j) + ",\n";
  json += "  \"total_c\": " + json_number(total.charge_c) + ",\n  \"intervals\": [";
  const char* separator = "\n";
  for (const auto& interval : intervals_) {
    json += separator + std::string("    {\"start_s\": ") + json_number(interval.start_s) +
            ", \"end_s\": " + json_number(interval.end_s) +
            ", \"energy_j\": " + json_number(interval.energy_j) + "}";
    separator = ",\n";
  }
  json += "]";
  for (const auto& [name, value] : extras_) json += ",\n  " + json_string(name) + ": " + value;
  return json + "\n}\n";
}

void Truth::write(const std::string& path, double end_s) const {
  const std::string partial = path + ".partial";
  {
    std::ofstream file(partial);
    file << to_json(end_s);
    file.close();
    if (!file) throw RigError("cannot write " + partial + ": check that its directory exists", 1);
  }
  if (std::rename(partial.c_str(), path.c_str()) != 0)
    throw RigError("cannot rename " + partial + " to " + path, 1);
}

}  // namespace opjoule::rig
