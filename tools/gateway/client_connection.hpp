/// One connection of a client: reads its requests and answers each.
///
/// Lifetime: within the coroutine that runs it. Threads: one.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <string>

#include "tools/gateway/client_exchange.hpp"
#include "tools/gateway/shared.hpp"

namespace leasehold::gateway {

class ClientConnection {
 public:
  using Id = http::Places::ConnectionId;
  struct Client {
    std::shared_ptr<PumpedStream> stream;
    http::PeerAddress peer;
    Id place = 0;
    std::function<void(Id)> close_other;  ///< Closes a connection that has lost its place.
  };

  ClientConnection(std::shared_ptr<Shared> shared, Client client)
      : shared_(std::move(shared)), client_(std::move(client)) {}

  /// Serves requests until the connection ends.
  boost::asio::awaitable<void> run();

 private:
  boost::asio::awaitable<bool> serve_one();
  boost::asio::awaitable<void> answer(http::Parser& parser, ClientExchange& client);
  boost::asio::awaitable<void> answer_body(ClientExchange& client, std::string body,
                                           TenantId owner);
  boost::asio::awaitable<void> answer_text(ClientExchange& client, std::string body,
                                           TenantId owner);
  boost::asio::awaitable<void> stream_upload(http::Parser& parser, ClientExchange& client);
  boost::asio::awaitable<void> answer_health(ClientExchange& client);
  boost::asio::awaitable<bool> read_body(http::Parser& parser, ClientExchange& client);
  Result<void> take_place(const ClientExchange& client, const TenantId& owner);
  PumpedStream& stream() { return *client_.stream; }

  std::shared_ptr<Shared> shared_;
  Client client_;
  http::ReadBuffer buffer_;
  bool has_known_key_ = false;
};

}  // namespace leasehold::gateway
