/// Measures what the HTTP server costs compared with the tenants' socket, in one run on one system.
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
  std::uint32_t requests = 500;  ///< Requests for one token, on both paths in alternation.
  std::uint32_t streams = 64;    ///< Concurrent streams of the throughput measurement.
  /// Rounds of the throughput measurement, on both paths in alternation.
  std::uint32_t rounds = 5;
  Duration window = std::chrono::seconds(4);
  std::uint32_t revocations = 100;  ///< Revocations, on both paths in alternation.
};

/// {"http": {"latency_us": {"socket": {…}, "http": {…}, "added_p50"}, "throughput": {"streams",
/// "socket_tokens_per_s", "http_tokens_per_s", "loss_percent", "undisturbed_loss_percent",
/// "socket_cpu_us_per_token", "http_cpu_us_per_token"}, "revoke_us": {"socket": {…}, "http": {…},
/// "added_p50"}}}.
///
/// Latency is the time from sending a request for one token until its end was read. Both paths open
/// a connection to the worker for each request; the HTTP client keeps its connection to the HTTP
/// server. Throughput and the CPU time of the worker's process are separate medians over the
/// rounds. HTTP keeps the other core busier, so on a shared machine more of the other programs'
/// work moves to the core that computes. undisturbed_loss_percent therefore excludes the time in
/// which the worker's main thread waited for a core.
///
/// A revocation lasts from the call to the broker until the client has read the typed end, or the
/// event with the error. All clients run on one thread. Errors: those of System::start;
/// TimedOut; SystemError when the worker has exited.
Result<nlohmann::json> measure_http(const HttpBenchConfig& config);

}  // namespace leasehold::bench
