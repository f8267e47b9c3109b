/// Compares a broker and a worker with llama.cpp's server, as a client of each sees them over HTTP,
/// with the same file and the same prompts.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace leasehold::bench {

struct PeerServeConfig {
  std::string bin_dir;   ///< Directory of leasehold-broker and leasehold-worker.
  std::string peer_dir;  ///< Directory of llama-server.
  std::string model_path;
  std::vector<std::uint32_t> streams = {1, 8, 32};
  std::uint32_t prompt_tokens = 64;
  std::uint32_t generated_tokens = 64;  ///< Per stream, at least 2.
  std::uint32_t rounds = 3;             ///< Each measures our server, then the peer's.
  std::uint32_t threads = 0;  ///< Compute threads of both servers; 0: the default of each.
};

/// {"peer_serve": {"version", "rounds", "prompt_tokens", "generated_tokens", "1_streams":
/// {"peer_command", "worker_options", "ours", "peer", "ratio"}, …}}. "ours" and "peer" have the
/// figures of completion_round.hpp and "cpu_ms_per_token": CPU time of a server per generated
/// token, prompts included; other programs on the machine affect it little. The figures are medians
/// over the rounds; "ratio" has ours divided by the peer's.
///
/// For each number of streams both servers are started with capacity for just that number, and each
/// answers one request that does not count. Both stay up while the other one serves. Errors: those
/// of PeerPrograms, System::start, PeerServer::start and run_round.
Result<nlohmann::json> measure_peer_serve(const PeerServeConfig& config);

/// The report as a table.
std::string peer_serve_text(const nlohmann::json& report);

}  // namespace leasehold::bench
