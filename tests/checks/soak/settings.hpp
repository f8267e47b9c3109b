/// Command-line settings of the soak.
#pragma once

#include <cstdint>
#include <string>

namespace leasehold::soak {

struct Settings {
  std::string bin_dir;  ///< Directory of leasehold-broker, -worker and -tenant.
  std::string model_path;
  std::uint64_t seed = 1;
  std::uint32_t kills = 1000;
  std::uint32_t max_minutes = 30;
  std::uint32_t least_disturbed_texts = 0;
  std::uint32_t kills_per_round = 50;
  std::uint32_t workers = 2;
  std::uint32_t tenants = 6;
  std::uint32_t max_tokens = 120;
  std::uint32_t slow_motion_us = 20;
  bool store = true;    ///< Keep the broker's descriptors, and give it a journal.
  std::string out_dir;  ///< For the reports; empty: none are written.
};

}  // namespace leasehold::soak
