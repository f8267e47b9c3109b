/// Time from the SIGKILL of a worker to the next token of each of its texts, either with a
/// successor that adopts their memory or after a cold start.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/checks/bench/system.hpp"

namespace leasehold::bench {

struct DeathsConfig {
  std::string bin_dir;
  std::string model_path;
  std::string arithmetic = "int8";
  std::uint32_t threads = 1;
  std::uint32_t texts = 8;  ///< Each text belongs to another tenant.
  std::uint32_t prompt_tokens = 512;
  std::uint32_t rounds = 5;
  std::uint32_t slow_motion_us = 0;
};

/// The system in which deaths and rebinds are measured.
SystemConfig system_config(const DeathsConfig& config);

struct AdoptedDeaths {
  std::vector<double> kill_to_token_ms;  ///< One value per text and death.
  std::vector<double> first_text_ms, last_text_ms;
  /// "1 death seen" … in order; the stages of one death add up to the time of its first text.
  std::map<std::string, std::vector<double>> stages_ms;
};
/// Errors: SystemError unless each text was adopted; those of RebindingText and System.
Result<AdoptedDeaths> measure_adopted_deaths(const DeathsConfig& config);

/// kill_to_token_ms with a client that has the default delays between retries.
Result<std::vector<double>> measure_default_client_ms(const DeathsConfig& config);

struct ColdDeaths {
  std::vector<double> kill_to_ready_ms;  ///< The broker lists the worker as ready.
  std::vector<double> kill_to_token_ms;  ///< Prompt and tokens are computed again.
};
/// Kills broker and worker in each round.
Result<ColdDeaths> measure_cold_deaths(const DeathsConfig& config);

}  // namespace leasehold::bench
