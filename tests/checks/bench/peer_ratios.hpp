/// Our speed and llama.cpp's on the same files, with the same threads, in the same minutes.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace leasehold::bench {

struct PeerRatiosConfig {
  std::string peer_dir;                  ///< Directory of llama-bench and llama-batched-bench.
  std::vector<std::string> model_paths;  ///< Files with different names.
  std::vector<std::uint32_t> threads = {1};
  std::uint32_t prompt_tokens = 512;
  std::uint32_t decoded_tokens = 16;  ///< Per sequence.
  std::uint32_t rounds = 5;           ///< Each measures our engine, then the peer's.
};

/// {"peer": {"version", "rounds", "prompt_tokens", FILE: {"format", "1_threads": {"ours", "peer",
/// "ratio"}, …}, …}}. FILE is the name of the file without its extension, with _ for a dot. "ours"
/// and "peer" have the figures of engine_figures.hpp: medians over the rounds; "ratio" has ours
/// divided by the peer's. Times are wall-clock times. Errors: FileNotFound if one of the peer's
/// programs is missing; ConnectionLost, with the end of its log, if one fails; TimedOut if one
/// takes more than ten minutes; MalformedMessage for output that cannot be read; BadRequest for two
/// files of one name; those of loading.
Result<nlohmann::json> measure_peer_ratios(const PeerRatiosConfig& config);

/// The report as a table.
std::string peer_ratios_text(const nlohmann::json& report);

}  // namespace leasehold::bench
