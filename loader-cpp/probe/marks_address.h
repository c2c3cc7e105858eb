// The address of the marks socket, for a path of any length.
//
// Thread safety: none.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <string>

#include "loader/status.h"

namespace opjoule {

// The kernel takes paths of 107 bytes (unix(7)); a longer one is reached through its folder's
// descriptor, which this object holds open.
class MarksAddress {
 public:
  MarksAddress() = default;
  ~MarksAddress();
  MarksAddress(const MarksAddress&) = delete;
  MarksAddress& operator=(const MarksAddress&) = delete;

  Status set(const std::string& path);
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  static constexpr socklen_t kSize = sizeof(sockaddr_un);

 private:
  sockaddr_un address_{};
  int folder_ = -1;
};

}  // namespace opjoule
