#include "tools/gateway/gateway.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/co_spawn.hpp>
#include <map>
#include <optional>
#include <utility>

#include "common/metrics/exposition.hpp"
#include "ipc/http/http_listener.hpp"
#include "ipc/http/page_server.hpp"
#include "tools/gateway/cell/cell_hosts.hpp"
#include "tools/gateway/client_connection.hpp"

namespace leasehold::gateway {

namespace asio = boost::asio;
using asio::awaitable;
using ConnectionId = http::Places::ConnectionId;

namespace {

constexpr mode_t kSocketMode = 0666;  // open to all users: hosts check the key of each request

}  // namespace

struct Gateway::State : std::enable_shared_from_this<State> {
  void add(http::Listener::Socket socket, const http::PeerAddress& peer);
  awaitable<void> serve(http::Stream stream, http::PeerAddress peer, ConnectionId id);
  void close(ConnectionId id);
  void follow_cell();

  std::unique_ptr<Hosts> hosts;
  std::unique_ptr<CellHosts> cell;  // null: the hosts are a list
  std::shared_ptr<Shared> shared;
  std::optional<http::TlsServer> tls;
  std::unique_ptr<http::Listener> listener;
  std::unique_ptr<http::PageServer> metrics;
  std::map<ConnectionId, std::weak_ptr<PumpedStream>> connections;
  ConnectionId last_id = 0;

  /// Counts a connection while this object exists.
  struct Kept {
    std::shared_ptr<State> state;
    ConnectionId id;
    ~Kept() {
      state->shared->places.closed(id);
      state->connections.erase(id);
      --state->shared->metrics.connections;
    }
  };
};

void Gateway::State::follow_cell() {
  const Options& options = shared->options;
  cell = std::make_unique<CellHosts>(
      *options.cell, CellHosts::Dependencies{.io = shared->io,
                                             .clock = shared->clock,
                                             .hosts = *hosts,
                                             .metrics = shared->metrics.cell.emplace(),
                                             .allows_plaintext = options.plaintext_hosts});
}

void Gateway::State::close(ConnectionId id) {
  const auto found = connections.find(id);
  if (found == connections.end()) return;
  if (const auto stream = found->second.lock()) stream->close();
}

void Gateway::State::add(http::Listener::Socket socket, const http::PeerAddress& peer) {
  const ConnectionId id = ++last_id;
  const auto admitted = shared->places.connected(id, http::source_of(peer));
  if (admitted.displaced) close(*admitted.displaced);
  if (!admitted.accepted) return;
  asio::co_spawn(shared->io, serve(http::Stream(std::move(socket)), peer, id),
                 [id](const std::exception_ptr& failed) {
                   if (failed) spdlog::error("HTTP connection failed id={}", id);
                 });
}

awaitable<void> Gateway::State::serve(http::Stream stream, http::PeerAddress peer,
                                      ConnectionId id) {
  ++shared->metrics.connections;
  const Kept kept{.state = shared_from_this(), .id = id};
  std::unique_ptr<http::ByteStream> bytes;
  if (tls) {
    auto encrypted = co_await tls->accept(std::move(stream));
    if (!encrypted) {
      spdlog::debug("TLS handshake failed client={} reason=\"{}\"", peer, encrypted.error().detail);
      co_return;
    }
    bytes = *std::move(encrypted);
  } else {
    bytes = std::make_unique<http::PlainStream<http::Stream>>(std::move(stream));
  }
  ClientConnection::Client client{
      .stream = std::make_shared<PumpedStream>(shared->io, std::move(bytes)),
      .peer = std::move(peer),
      .place = id,
      .close_other = [this](ConnectionId other) { close(other); }};
  connections[id] = client.stream;
  client.stream->start();
  ClientConnection connection(shared, std::move(client));
  co_await connection.run();
}

Result<std::unique_ptr<Gateway>> Gateway::create(asio::io_context& io, const Clock& clock,
                                                 const Options& options) {
  auto state = std::make_shared<State>();
  http::TlsClient host_tls = TRY(http::TlsClient::load(options.host_ca, "--host-ca"));
  state->hosts = options.cell ? Hosts::of_cell(io, clock, std::move(host_tls))
                              : TRY(Hosts::create(io, clock, options.hosts, std::move(host_tls)));
  state->shared = std::shared_ptr<Shared>(new Shared{io, clock, options, *state->hosts});
  if (options.cell) state->follow_cell();
  if (options.certificate) {
    const auto& [certificate, key] = *options.certificate;
    state->tls.emplace(TRY(http::TlsServer::load(certificate, key)));
  }
  state->listener = TRY(http::Listener::create(io, options.listen, kSocketMode));
  if (options.metrics) {
    const auto page = [shared = state->shared] {
      return http::Answer{.body = shared->metrics.page(shared->hosts, shared->clock.now()),
                          .content_type = std::string(metrics::exposition_content_type())};
    };
    state->metrics = TRY(http::PageServer::create(
        io, *options.metrics, {{.path = "/metrics", .make = page}}, options.metrics_hosts));
  }
  return std::unique_ptr<Gateway>(new Gateway(std::move(state)));
}

Gateway::~Gateway() {
  state_->listener.reset();  // handlers that never ran may keep the state
  state_->metrics.reset();
}

std::string Gateway::listens_on() const {
  return state_->listener->listens_on();
}

std::string Gateway::metrics_on() const {
  return state_->metrics ? state_->metrics->listens_on() : std::string();
}

void Gateway::serve() {
  state_->hosts->start();
  if (state_->cell) state_->cell->start();
  if (state_->metrics) state_->metrics->serve();
  state_->listener->serve(
      [state = state_](http::Listener::Socket socket, const http::PeerAddress& peer) {
        state->add(std::move(socket), peer);
      });
}

/// Options has no other invalid list, so that the last step does not fail.
Result<void> Gateway::reload(const std::vector<HostAddress>& hosts) {
  if (hosts.empty() && !state_->cell) {
    return fail(Errc::BadRequest,
                "the hosts were a list and are now those of a cell; restart the gateway");
  }
  http::TlsClient host_tls =
      TRY(http::TlsClient::load(state_->shared->options.host_ca, "--host-ca"));
  if (state_->tls) TRY(state_->tls->reload());
  state_->hosts->set_tls(std::move(host_tls));
  return state_->cell ? Result<void>() : state_->hosts->set_list(hosts);
}

void Gateway::drain() {
  state_->shared->is_draining = true;
  state_->listener->close();
}

std::uint32_t Gateway::answering() const {
  return state_->shared->answering;
}

void Gateway::cut() {
  state_->shared->is_cut = true;
  for (const auto& [id, connection] : state_->connections)
    if (const auto stream = connection.lock()) stream->cut();
}

}  // namespace leasehold::gateway
