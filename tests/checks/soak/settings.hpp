/// Command-line settings of the soak.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::soak {

/// Settings of every kind of soak.
struct Settings {
  std::string bin_dir;  ///< Directory of leasehold-broker, -worker, -tenant and -attacker.
  std::string model_path;
  std::uint64_t seed = 1;
  std::uint32_t max_tokens = 0;  ///< Length of each text.
  std::uint32_t slow_motion_us = 20;
  std::uint32_t seconds = 0;  ///< How long to attack, or to disturb two models.
  std::string out_dir;        ///< Directory for the reports; empty: write none.

  // Settings of the random kills.
  std::uint32_t kills = 1000;
  std::uint32_t max_minutes = 30;
  std::uint32_t least_disturbed_texts = 0;
  std::uint32_t kills_per_round = 50;
  std::uint32_t workers = 2;
  std::uint32_t tenants = 6;
  bool store = true;  ///< Keep the broker's descriptors, and give it a journal.
};

inline constexpr const char* kHostileWorker = "w0";  ///< The only worker of a hostile run.

/// With --hostile.
struct HostileSettings : Settings {
  std::uint32_t window_seconds = 10;  ///< Length of the longest window of attack.
  std::uint32_t honest = 8;           ///< Tenants whose texts are compared.
  std::uint32_t attackers = 8;        ///< Tenants that attack.
  std::uint32_t strangers = 2;        ///< Attackers without a lease.
  std::vector<std::string> without;   ///< Attacks to omit.
};

}  // namespace leasehold::soak
