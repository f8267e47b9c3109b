/// The requests that wait for the parser's thread.
///
/// The parser takes one request of each tenant at a time, so a slow request delays neither other
/// tenants' requests nor other calls. Tenants share the memory for waiting requests
/// (common/fair_shares.hpp).
///
/// Lifetime: see ServeDependencies.
/// Threads: that of the tenants' sockets.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "common/fair_shares.hpp"
#include "worker/serve/dependencies.hpp"
#include "worker/serve/request_parser.hpp"

namespace leasehold {

class ParserQueue {
 public:
  using OnParsed = std::function<void(IncomingRequest incoming, Result<void> parsed)>;

  /// Calls `on_parsed` once for each request that is not dropped, with the error of
  /// RequestParser::parse.
  ParserQueue(const ServeDependencies& dependencies, OnParsed on_parsed);

  /// Errors: QueueFull when too many bytes of the tenant's requests wait.
  Result<void> check_capacity(const TenantId& tenant) const;
  void add(IncomingRequest incoming);
  /// Drops the waiting requests of a connection of the tenant. Returns those that the parser would
  /// have parsed.
  std::vector<RequestId> drop(const TenantId& tenant, std::uint64_t connection);
  /// Drops all waiting requests, except those that only join a stream.
  void drop_all();

 private:
  /// A tenant's requests at the parser.
  struct Queue {
    std::deque<IncomingRequest> waiting;
    bool is_parsing = false;
  };
  void parse_next(const TenantId& tenant);

  boost::asio::io_context* io_;
  boost::asio::any_io_executor thread_;
  OnParsed on_parsed_;
  RequestParser parser_;              // used only on the parser's thread
  std::map<TenantId, Queue> queues_;  // no entry is empty
  FairShares<TenantId> waiting_bytes_;
};

}  // namespace leasehold
