#include "sensors/sample_count.h"

#include <nlohmann/json.hpp>

namespace opjoule::rig {

nlohmann::ordered_json SampleCount::to_json() const {
  return {{"conversions", conversions_},
          {"reads", reads_},
          {"missed", missed_},
          {"read_twice", read_twice_},
          {"discarded", discarded_}};
}

}  // namespace opjoule::rig
