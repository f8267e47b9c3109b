/// Time from the SIGKILL of a worker to the next token of its text: with a successor that adopts
/// the memory, and after a cold start.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/checks/bench/system.hpp"

namespace leasehold::bench {

struct DeathsConfig {
  std::string bin_dir;
  std::string model_path;
  std::string arithmetic = "int8";
  std::uint32_t threads = 1;
  std::uint32_t prompt_tokens = 1024;
  std::uint32_t rounds = 5;
};

/// The system that measures deaths and rebinds.
SystemConfig system_config(const DeathsConfig& config);

struct AdoptedDeaths {
  std::vector<double> kill_to_token_ms;
  /// "1 death seen" … in order; the stages of one death add up to its time.
  std::map<std::string, std::vector<double>> stages_ms;
};
/// Errors: SystemError if a text was not adopted; those of RebindingText and System.
Result<AdoptedDeaths> measure_adopted_deaths(const DeathsConfig& config);

/// The same with a client that waits as long as clients do by default.
Result<std::vector<double>> measure_default_client_ms(const DeathsConfig& config);

struct ColdDeaths {
  std::vector<double> kill_to_ready_ms;  ///< The broker lists the worker as ready.
  std::vector<double> kill_to_token_ms;  ///< Prompt and tokens were computed again.
};
/// Kills broker and worker.
Result<ColdDeaths> measure_cold_deaths(const DeathsConfig& config);

}  // namespace leasehold::bench
