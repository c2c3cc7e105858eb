// Loader and probe as programs of their own, for tests of their lines, files and exit codes.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace opjoule {

using Json = nlohmann::json;
using Arguments = std::vector<std::string>;

// A program started by its constructor, its output (stdout and stderr) read line by line.
class Program {
 public:
  Program(const std::string& binary, std::vector<std::string> arguments) {
    int in[2];
    int out[2];
    REQUIRE(pipe2(in, O_CLOEXEC) == 0);
    REQUIRE(pipe2(out, O_CLOEXEC) == 0);
    arguments.insert(arguments.begin(), binary);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      dup2(out[1], STDERR_FILENO);
      execv(argv[0], argv.data());
      _exit(99);
    }
    close(in[0]);
    close(out[1]);
    in_ = in[1];
    out_ = fdopen(out[0], "r");
  }
  ~Program() {
    if (!code_.has_value()) exit_code();
    fclose(out_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  void write(const std::string& text) const {
    REQUIRE(::write(in_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  void end_input() {
    if (in_ >= 0) close(in_);
    in_ = -1;
  }
  std::optional<std::string> line() {
    std::string text;
    for (int c = fgetc(out_); c != EOF; c = fgetc(out_)) {
      if (c == '\n') return text;
      text.push_back(static_cast<char>(c));
    }
    if (text.empty()) return std::nullopt;
    return text;
  }
  std::vector<std::string> lines() {
    std::vector<std::string> all;
    while (auto next = line()) all.push_back(*next);
    return all;
  }
  void send_signal(int number) const { kill(pid_, number); }
  void interrupt() const { send_signal(SIGINT); }
  // Ends its input and waits for it.
  int exit_code() {
    end_input();
    return wait();
  }
  // Waits for it while its input stays open.
  int wait() {
    if (!code_.has_value()) {
      lines();
      int status = 0;
      waitpid(pid_, &status, 0);
      code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
    return *code_;
  }

 private:
  pid_t pid_ = 0;
  int in_ = -1;
  FILE* out_ = nullptr;
  std::optional<int> code_;
};

class Loader : public Program {
 public:
  explicit Loader(std::vector<std::string> arguments, const std::string& input = "")
      : Program(OPJOULE_LOADER_BINARY, std::move(arguments)) {
    if (!input.empty()) write(input);
    end_input();
  }
};

// A folder of the test's own, removed with it.
class Folder {
 public:
  explicit Folder(const std::filesystem::path& place = std::filesystem::temp_directory_path())
      : path_(place / ("opjoule-cli-" + std::to_string(getpid()))) {
    std::filesystem::create_directory(path_);
  }
  ~Folder() {
    std::error_code left;  // a test that failed may have left a mount in it
    std::filesystem::remove_all(path_, left);
  }
  std::string operator/(const std::string& name) const { return path_ / name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return path_ / name;
  }
  std::vector<std::string> lines(const std::string& name) const {
    std::ifstream in(path_ / name);
    std::vector<std::string> all;
    for (std::string text; std::getline(in, text);) all.push_back(text);
    return all;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace opjoule
