/// The server of a gateway: accepts clients and keeps its hosts in sight.
///
/// Lifetime: `io`, `clock` and `options` outlive it, and `io` has stopped before it ends. Threads:
/// the one that runs `io`, except `create`.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "common/clock.hpp"
#include "tools/gateway/options.hpp"

namespace leasehold::gateway {

class Gateway {
 public:
  /// Listens at once; connections wait in the backlog until `serve`. Errors: those of
  /// http::Listener, http::TlsServer and http::TlsClient.
  static Result<std::unique_ptr<Gateway>> create(boost::asio::io_context& io, const Clock& clock,
                                                 const Options& options);
  ~Gateway();

  std::string listens_on() const;
  /// Where the metrics are; empty: nowhere.
  std::string metrics_on() const;
  void serve();
  /// Reads the certificate and the authorities of hosts again, and makes these the hosts, unless
  /// the hosts are those of a cell. Errors: those of http::TlsClient::load, http::TlsServer::reload
  /// and Hosts::set_list; after an error all three are those of before.
  Result<void> reload(const std::vector<HostAddress>& hosts);
  /// Accepts no more connections. Running texts continue.
  void drain();
  /// Requests that were read, and are not answered yet.
  std::uint32_t answering() const;
  /// Ends them with an error. Precondition: it drains.
  void cut();

 private:
  struct State;
  explicit Gateway(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace leasehold::gateway
