#pragma once

#include <cstddef>
#include <cstdint>

namespace opjoule::fuzz {

void take_properties(const uint8_t* data, size_t size);
void take_histogram(const uint8_t* data, size_t size);
void take_trace(const uint8_t* data, size_t size);
void take_operation_log(const uint8_t* data, size_t size);
// Of the probe: probe_parsers.cc.
void take_marks(const uint8_t* data, size_t size);
void take_requests(const uint8_t* data, size_t size);

}  // namespace opjoule::fuzz
