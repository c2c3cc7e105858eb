#include "fuzz/parsers.h"

#include "fuzz/loader/loader_parsers.h"

namespace opjoule::fuzz {

const std::vector<Parser>& parsers() {
  static const std::vector<Parser> all = {
      {"properties", take_properties}, {"histogram", take_histogram},
      {"trace", take_trace},           {"operation-log", take_operation_log},
      {"marks", take_marks},           {"requests", take_requests}};
  return all;
}

}  // namespace opjoule::fuzz
