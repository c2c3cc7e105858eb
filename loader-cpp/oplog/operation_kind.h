// The kinds of operations, by the numbers that the operation log gives them.
#pragma once

#include <cstdint>
#include <string_view>

namespace opjoule {

enum class OperationKind : uint8_t {
  kRead = 0,
  kUpdate = 1,
  kInsert = 2,
  kReadModifyWrite = 3,
  kScan = 4,
  kRemove = 5,
};
inline constexpr int kOperationKinds = 6;

constexpr std::string_view kind_name(OperationKind kind) {
  constexpr std::string_view kNames[] = {"read", "update", "insert", "read-modify-write",
                                         "scan", "remove"};
  return kNames[static_cast<int>(kind)];
}

}  // namespace opjoule
