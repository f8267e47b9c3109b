/// Looks up the address of a server, with a timeout.
///
/// getaddrinfo(3) may take minutes and cannot be cancelled, so it runs on a detached thread, for
/// which no destructor and no call beyond its timeout waits. There is at most one such thread at a
/// time; a call after a timeout waits for the lookup that still runs. A numeric address needs no
/// lookup.
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
#include "ipc/http/http_url.hpp"

namespace leasehold::http {

using Endpoints = std::vector<boost::asio::ip::tcp::endpoint>;

/// Resolves a name with getaddrinfo; may block for minutes. Errors: ConnectionRefused.
Result<Endpoints> resolve_name(const std::string& host, const std::string& port);

class NameLookup {
 public:
  /// Called on the detached thread, possibly after the NameLookup is destroyed.
  using Resolve =
      std::function<Result<Endpoints>(const std::string& host, const std::string& port)>;

  explicit NameLookup(Resolve resolve = resolve_name) : resolve_(std::move(resolve)) {}
  ~NameLookup();
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;

  /// Precondition: one call at a time, always with the same URL, which outlives the NameLookup.
  /// Errors: TimedOut, those of `Resolve`.
  boost::asio::awaitable<Result<Endpoints>> find(const Url& url, std::chrono::milliseconds timeout);

 private:
  struct Lookup;

  Resolve resolve_;
  std::shared_ptr<Lookup> running_;  // null: none
};

}  // namespace leasehold::http
