// Places of the fields in message configure, as result bad_value names them.
#ifndef OPJOULE_SENSOR_CONFIGURE_FIELDS_H_
#define OPJOULE_SENSOR_CONFIGURE_FIELDS_H_

#include <stdint.h>

namespace opjoule {
namespace configure_field {

constexpr uint16_t kMode = 1;
constexpr uint16_t kShuntAdc = 2;
constexpr uint16_t kBusAdc = 3;
constexpr uint16_t kRange = 4;
constexpr uint16_t kSamplesPerFrame = 5;
constexpr uint16_t kBusEvery = 6;

}  // namespace configure_field
}  // namespace opjoule

#endif  // OPJOULE_SENSOR_CONFIGURE_FIELDS_H_
