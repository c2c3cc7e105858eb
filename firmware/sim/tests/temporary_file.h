// A file that lives as long as a test.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace opjoule::rig {

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    char name[] = "/tmp/rig-sim-test-XXXXXX";
    const int fd = mkstemp(name);
    path_ = name;
    std::ofstream(path_) << content;
    if (fd >= 0) ::close(fd);
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace opjoule::rig
