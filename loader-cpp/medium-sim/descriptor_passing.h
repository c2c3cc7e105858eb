// Messages over a socket of the AF_UNIX family that carry a descriptor (unix(7), SCM_RIGHTS).
//
// Thread safety: any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace opjoule {

// One message; fd -1: without a descriptor. False with errno.
bool send_message(int socket, std::string_view text, int fd = -1);
// One message of up to 4096 bytes. False at the end of the other side or with errno. *fd is -1
// where it carries none.
bool receive_message(int socket, std::string* text, int* fd);

}  // namespace opjoule
