/// Runs one of our programs to its end.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/machine/child_process.hpp"
#include "tests/support/test_paths.hpp"

namespace leasehold {

/// An environment variable for programs that are started while this object lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    const char* const before = ::getenv(name);
    if (before != nullptr) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

struct ProgramRun {
  std::string errors_path =
      std::filesystem::temp_directory_path() / ("leasehold-run-" + std::to_string(::getpid()));
  Child child;
  std::string output;

  ProgramRun(const std::string& program, std::vector<std::string> arguments)
      : child(start(program, std::move(arguments))) {}
  ~ProgramRun() { std::filesystem::remove(errors_path); }

  /// Calls `meanwhile` until the program ends, then returns its exit code. Fails the test after
  /// `timeout`.
  int finish(
      const std::function<void()>& meanwhile = [] {},
      std::chrono::seconds timeout = std::chrono::minutes(2)) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    std::optional<int> status;
    while (!status) {
      status = child.status();
      read_output();
      meanwhile();
      pollfd entry{child.pidfd().get(), POLLIN, 0};
      if (!status) ::poll(&entry, 1, 5);
      if (std::chrono::steady_clock::now() > deadline) FAIL("the program does not end: " << output);
    }
    return *status;
  }

  /// As a reader that ends before the program.
  void close_output() {
    const UniqueFd empty(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ::dup2(empty.get(), child.output().get());
  }

  std::string errors() const { return file_bytes(errors_path); }

 private:
  Child start(const std::string& program, std::vector<std::string> arguments) {
    std::filesystem::remove(errors_path);
    arguments.insert(arguments.begin(), program_path(program));
    auto started =
        Child::start({.argv = std::move(arguments), .log_path = errors_path, .read_output = true});
    INFO((started ? "" : started.error().detail));
    REQUIRE(started);
    return *std::move(started);
  }

  void read_output() {
    char bytes[4096];
    for (ssize_t got = 1; got > 0;) {
      got = ::read(child.output().get(), bytes, sizeof(bytes));
      if (got > 0) output.append(bytes, static_cast<std::size_t>(got));
    }
  }
};

struct ProgramEnd {
  int exit_code;
  std::string output, errors;
};

inline ProgramEnd run_to_end(const std::string& program, std::vector<std::string> arguments) {
  ProgramRun run(program, std::move(arguments));
  const int exit_code = run.finish();
  return {exit_code, run.output, run.errors()};
}

}  // namespace leasehold
