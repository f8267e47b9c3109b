/// Figures about requests from the metrics page of a worker (`leasehold-worker --metrics`). The
/// broker does not know them.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/control/transport/peer.hpp"
#include "ipc/http/http_address.hpp"

namespace leasehold::monitor {

/// The buckets of a histogram as Prometheus writes them: `counts[i]` samples took at most
/// `bounds_s[i]` seconds. The last bound is infinite.
struct LatencyBuckets {
  std::vector<double> bounds_s;
  std::vector<std::uint64_t> counts;
};

/// Counts are since the worker's start.
struct WorkerFigures {
  std::string worker;
  std::string model;
  std::uint64_t running = 0;
  std::uint64_t waiting = 0;
  LatencyBuckets first_token;
  LatencyBuckets inter_token;
  std::map<std::string, std::uint64_t> refused;  ///< By error code.
  std::uint64_t refused_keys = 0;

  /// The infinite bound is null.
  control::Json to_json() const;
};

/// Pure. Ignores metrics that it does not know. Errors: MalformedMessage for a page that is not of
/// a worker, or with a number or bucket that cannot be read.
Result<WorkerFigures> worker_figures(std::string_view page);

/// Requests `/metrics` from this address, and waits at most one second. Errors: ConnectionRefused,
/// FileNotFound, ConnectionLost, TimedOut, MessageTooLarge (a page of more than 1 MiB),
/// MalformedMessage (not HTTP, or a status other than 200), SystemError.
Result<std::string> fetch_metrics(const http::Address& address);

}  // namespace leasehold::monitor
