/// Runs llama.cpp's programs from a folder that the user names.
#pragma once

#include <string>
#include <vector>

#include "common/clock.hpp"
#include "common/machine/temporary_directory.hpp"
#include "common/result.hpp"
#include "tests/checks/local_system/program_starter.hpp"

namespace leasehold {

/// Lifetime: the destructor removes the logs. Threads: one.
class PeerPrograms {
 public:
  /// Errors: FileNotFound for a program that is missing or cannot be executed; SystemError.
  static Result<PeerPrograms> open(const std::string& directory,
                                   const std::vector<std::string>& programs);

  /// An empty folder for output of the programs. The destructor removes it.
  const TemporaryDirectory& scratch() const { return scratch_; }

  /// Runs the program and returns its stdout. Errors: those of Child::start; ConnectionLost, with
  /// the end of its log, for an exit code other than 0; TimedOut.
  Result<std::string> output_of(const std::string& program,
                                std::vector<std::string> arguments) const;

  /// Returns what the program prints after "version: ". Errors: those of output_of;
  /// MalformedMessage if it prints no version.
  Result<std::string> version_of(const std::string& program) const;

 private:
  PeerPrograms(std::string directory, TemporaryDirectory scratch)
      : scratch_(std::move(scratch)), starter_(std::move(directory), scratch_.path()) {}

  TemporaryDirectory scratch_;  // declared before the member that uses its path
  ProgramStarter starter_;
};

}  // namespace leasehold
