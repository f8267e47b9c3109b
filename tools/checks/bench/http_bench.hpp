/// What the HTTP server costs beside the tenants' own socket, in one run on one system.
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
  std::uint32_t requests = 500;  ///< Of one token, on each path in turn.
  std::uint32_t streams = 64;    ///< Of the throughput.
  std::uint32_t rounds = 5;      ///< Of the throughput; both paths in turn.
  Duration window = std::chrono::seconds(4);
  std::uint32_t revocations = 100;  ///< On each path in turn.
};

/// {"http": {"latency_us": {"socket": {…}, "http": {…}, "added_p50"}, "throughput": {"streams",
/// "socket_tokens_per_s", "http_tokens_per_s", "loss_percent", "undisturbed_loss_percent",
/// "socket_cpu_us_per_token", "http_cpu_us_per_token"}, "revoke_us": {"socket": {…}, "http": {…},
/// "added_p50"}}}.
///
/// Latency is from sending a request for one token until its end was read. Both paths open a
/// connection to the worker for each request; the HTTP client keeps its own. Throughput and the CPU
/// time of the worker's process are medians of the rounds, each by itself. HTTP keeps the other
/// core busier, so on a shared machine more of the neighbours' work comes to the core that
/// computes: undisturbed_loss_percent leaves out the time in which the worker's main thread waited
/// for it.
///
/// A revocation is from the call to the broker until the client has read the typed end, or the
/// event with the error. All clients run on one thread. Errors: those of System::start;
/// TimedOut; SystemError when the worker has exited.
Result<nlohmann::json> measure_http(const HttpBenchConfig& config);

}  // namespace leasehold::bench
