/// Looks up the address of the index, with a timeout.
///
/// getaddrinfo(3) may take minutes and cannot be cancelled. So a name is looked up on a thread that
/// is detached: no call and no destructor waits for it. There is one such thread at a time; a call
/// after a timeout waits for the lookup that still runs. An address needs no lookup.
///
/// Threads: the one that runs the executor of `find`.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "worker/index_sync/index_url.hpp"

namespace leasehold {

using Endpoints = std::vector<boost::asio::ip::tcp::endpoint>;

/// May block for long. Errors: ConnectionRefused.
Result<Endpoints> resolve_name(const std::string& host, const std::string& port);

class NameLookup {
 public:
  /// Called on the detached thread, also after the NameLookup is gone.
  using Resolve =
      std::function<Result<Endpoints>(const std::string& host, const std::string& port)>;

  explicit NameLookup(Resolve resolve = resolve_name) : resolve_(std::move(resolve)) {}
  ~NameLookup();
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;

  /// Precondition: one call at a time, with the same URL, which outlives it. Errors: TimedOut,
  /// those of `Resolve`.
  boost::asio::awaitable<Result<Endpoints>> find(const IndexUrl& url,
                                                 std::chrono::milliseconds timeout);

 private:
  struct Lookup;

  Resolve resolve_;
  std::shared_ptr<Lookup> running_;  // null: none
};

}  // namespace leasehold
