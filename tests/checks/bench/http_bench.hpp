/// The cost of the HTTP server compared with the tenants' own socket, measured in one run on one
/// system.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/clock.hpp"
#include "common/result.hpp"

namespace leasehold::bench {

struct HttpBenchConfig {
  std::string bin_dir;  ///< Directory of leasehold-broker and leasehold-worker.
  std::string model_path;
  std::string simd;              ///< Of the worker; empty: the fastest path of this CPU.
  std::uint32_t requests = 500;  ///< Requests of one token on each path, alternately.
  /// Streams of the throughput measurement. They leave some of a worker's 64 places to the batch.
  std::uint32_t streams = 56;
  std::uint32_t rounds = 5;  ///< Rounds of the throughput measurement; all paths alternate.
  Duration window = std::chrono::seconds(4);
  std::uint32_t revocations = 100;  ///< Revocations on each path, alternately.
};

/// {"http": {"latency_us": {"socket": {…}, "http": {…}, "added_p50"}, "throughput": {"streams",
/// "socket_tokens_per_s", "http_tokens_per_s", "traced_tokens_per_s", "loss_percent",
/// "undisturbed_loss_percent", "traced_loss_percent", "traced_undisturbed_loss_percent",
/// "batch_tokens_per_s", "batch_loss_percent", "batch_lines_per_round",
/// "socket_cpu_us_per_token", "http_cpu_us_per_token", "engine_tokens_per_s", "share_of_engine"},
/// "revoke_us": {"socket": {…}, "http": {…},
/// "added_p50"}}}.
///
/// Latency is the time from sending a request for one token until its end was read. On the socket
/// path each request opens a connection to the worker; the HTTP client keeps its connection.
/// Throughput and the CPU time of the worker's process are medians over the rounds, each figure
/// separately. HTTP keeps the other core busier, so on a shared machine more of the other programs'
/// work moves to the core that computes: undisturbed_loss_percent excludes the time in which the
/// worker's main thread waited for a core.
///
/// "engine" is the forward pass alone, in this process and with as many texts and threads
/// (decode_rate). share_of_engine is the part of its rate that arrives at HTTP clients, also
/// without the time in which the worker's main thread waited for a core.
///
/// "traced" is HTTP with a sampled trace of each request, sent to a collector that reads nothing;
/// its losses are those against "http".
///
/// "batch" is HTTP beside a batch of 10 000 lines of another tenant, which a quarter of the rounds
/// have; its loss is that against "http".
///
/// A revocation takes from the call to the broker until the client has read the typed end, or the
/// event with the error. All clients run on one thread. Errors: those of System::start; TimedOut;
/// SystemError when the worker has exited.
Result<nlohmann::json> measure_http(const HttpBenchConfig& config);

}  // namespace leasehold::bench
