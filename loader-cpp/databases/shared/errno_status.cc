#include "databases/shared/errno_status.h"

#include <cstring>

namespace opjoule {

Status errno_status(std::string_view what, std::string_view path, int error_number) {
  const bool full = error_number == ENOSPC || error_number == EDQUOT;
  return {
      full ? StatusCode::kNoSpace : StatusCode::kIo,
      "cannot " + std::string(what) + " " + std::string(path) + ": " + std::strerror(error_number)};
}

Status io_status(std::string_view engine, std::string_view engine_words) {
  const bool full = engine_words.find(std::strerror(ENOSPC)) != std::string_view::npos ||
                    engine_words.find(std::strerror(EDQUOT)) != std::string_view::npos;
  return {full ? StatusCode::kNoSpace : StatusCode::kIo,
          std::string(engine) + ": " + std::string(engine_words)};
}

}  // namespace opjoule
