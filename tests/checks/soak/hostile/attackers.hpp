/// The processes of one window: attackers, or the same number of processes that only use a core.
#pragma once

#include <string>
#include <vector>

#include "tests/checks/local_system/program_starter.hpp"
#include "tests/checks/soak/hostile/host.hpp"
#include "tests/checks/soak/hostile/record.hpp"
#include "tests/checks/soak/settings.hpp"

namespace leasehold::soak {

std::string hostile_tenant_name(std::uint32_t index);

/// Paths in the directory of the run: the socket of the worker's HTTP server, and the file with an
/// attacker's API key.
std::string http_socket_of(const ProgramStarter& programs);
std::string api_key_file_of(const ProgramStarter& programs, std::uint32_t index);

/// The names of all attacks that the run makes.
std::vector<std::string> expected_attacks(const HostileSettings& settings, const Users& users);

/// Lifetime: the destructor ends the processes. Threads: one.
class Attackers {
 public:
  /// Errors of both: those of ProgramStarter.
  static Result<Attackers> attack(const HostileSettings& settings, const ProgramStarter& programs,
                                  const Users& users, Duration duration);
  static Result<Attackers> burn(const HostileSettings& settings, const ProgramStarter& programs,
                                double cores, Duration duration);

  /// Reads reports and adds them to the outcomes. True once all processes have ended.
  /// Errors: MalformedMessage for an attacker that ended without a report, SystemError.
  Result<bool> collect(attack::Outcomes& outcomes);
  /// CPU time of all processes whose reports were collected.
  double cpu_s() const { return cpu_s_; }

 private:
  struct Process {
    Child child;
    std::string output;
    bool is_over = false;
  };

  std::vector<Process> processes_;
  double cpu_s_ = 0;
};

}  // namespace leasehold::soak
