/// llama.cpp's programs, in a folder that the user names.
#pragma once

#include <string>
#include <vector>

#include "common/clock.hpp"
#include "common/result.hpp"
#include "common/temporary_directory.hpp"
#include "tests/checks/local_system/program_starter.hpp"

namespace leasehold {

/// Lifetime: its logs end with it. Threads: one.
class PeerPrograms {
 public:
  /// Errors: FileNotFound for a program that is missing or cannot be executed; SystemError.
  static Result<PeerPrograms> open(const std::string& directory,
                                   const std::vector<std::string>& programs);

  const ProgramStarter& starter() const { return starter_; }
  /// An empty folder for what the programs write. It ends with this object.
  const TemporaryDirectory& scratch() const { return scratch_; }

  /// What the program writes to stdout until it ends with 0. Errors: those of Child::start;
  /// ConnectionLost, with the end of its log, for another exit code; TimedOut.
  Result<std::string> output_of(const std::string& program,
                                std::vector<std::string> arguments) const;

  /// What it prints after "version: " when asked for its version. Errors: those of output_of;
  /// MalformedMessage if it prints none.
  Result<std::string> version_of(const std::string& program) const;

 private:
  PeerPrograms(std::string directory, TemporaryDirectory scratch)
      : scratch_(std::move(scratch)), starter_(std::move(directory), scratch_.path()) {}

  TemporaryDirectory scratch_;  // before what has its path
  ProgramStarter starter_;
};

}  // namespace leasehold
