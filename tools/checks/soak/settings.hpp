/// What the soak was asked to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace leasehold::soak {

struct Settings {
  std::string bin_dir;  ///< Where leasehold-broker, -worker and -tenant are.
  std::string model_path;
  std::uint64_t seed = 1;
  std::uint32_t kills = 1000;
  std::uint32_t max_minutes = 30;
  std::uint32_t kills_per_round = 50;
  std::uint32_t workers = 2;
  std::uint32_t tenants = 6;
  std::uint32_t max_tokens = 120;
  std::uint32_t slow_motion_us = 20;
  bool store = true;  ///< A service manager keeps descriptors, and the broker has a journal.
  std::optional<std::string> report_path;
};

}  // namespace leasehold::soak
