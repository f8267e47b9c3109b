/// The dependencies of the classes that serve tenants.
///
/// Lifetime: everything in the struct outlives those classes, except the parsers' threads, which
/// end before them.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>

#include "ipc/control/tokens/lease_token.hpp"
#include "ipc/table/table_reader.hpp"
#include "worker/engine/engine_loop.hpp"
#include "worker/kv/eviction_listener.hpp"
#include "worker/lease/broker_link.hpp"
#include "worker/metrics/request_metrics.hpp"
#include "worker/serve/prompt.hpp"
#include "worker/trace/tracing.hpp"

namespace leasehold {

struct ServeDependencies {
  boost::asio::io_context* io = nullptr;
  EngineLoop* loop = nullptr;
  RunningRequests* running_requests = nullptr;
  boost::asio::any_io_executor parser;  ///< Runs one thread.
  /// Runs `work`, which parses a tenant's long line; empty: parsed on the thread of `io`.
  std::function<void(const TenantId&, std::move_only_function<void()> work)> parse_long = {};
  PromptEncoder prompt;
  EmbeddingModel embeddings{};
  BrokerLink* broker = nullptr;
  const TableReader* table = nullptr;
  const Clock* clock = nullptr;
  KvEvictionListener* eviction_listener = nullptr;  ///< Null: no index outside the worker.
  TokenKey token_key{};
  RequestMetrics* metrics = nullptr;  ///< Null: nothing is counted.
  const Tracing* tracing = nullptr;   ///< Null: no spans.
};

}  // namespace leasehold
