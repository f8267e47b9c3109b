#include "tools/cell/key_server.hpp"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "ipc/http/http_await.hpp"
#include "tools/cell/rethrow.hpp"

namespace leasehold::cell {
namespace {

using boost::asio::awaitable;

constexpr mode_t kMode = 0660;

}  // namespace

Result<void> KeyServer::listen(const std::string& path) {
  acceptor_ = std::make_unique<Acceptor>(TRY(control::listen_on(io_, path, kMode)));
  boost::asio::co_spawn(io_, accept(), kRethrow);
  return {};
}

/// Without descriptors for a connection it tries again.
awaitable<void> KeyServer::accept() {
  boost::asio::steady_timer pause(io_);
  while (true) {
    auto [error, socket] = co_await acceptor_->async_accept(http::kAwait);
    if (error == boost::asio::error::operation_aborted) co_return;
    if (!error) {
      add(std::move(socket));
      continue;
    }
    pause.expires_after(std::chrono::milliseconds(100));
    (void)co_await pause.async_wait(http::kAwait);
  }
}

void KeyServer::add(control::Socket socket) {
  std::erase_if(peers_, [](const auto& peer) { return peer.expired(); });
  if (peers_.size() >= kMaxConnections) return;
  const auto peer = control::Peer::create(
      std::move(socket),
      {.on_call = [this](
                      const std::string& method, control::Payload params,
                      control::Responder respond) { answer(method, params, std::move(respond)); },
       .on_notification = [this](const std::string& method,
                                 const control::Payload& params) { note(method, params); },
       .on_closed = [](const Error&) {}},
      {.max_line_bytes = 4 << 10, .max_fds = 0});
  peers_.push_back(peer);
  peer->start();
}

void KeyServer::answer(const std::string& method, const control::Payload& params,
                       control::Responder respond) {
  if (method != wire::KeyResolve::kMethod) {
    return respond(fail(Errc::UnknownMethod, fmt::format("the agent of a cell answers {} only",
                                                         wire::KeyResolve::kMethod)));
  }
  auto asked = wire::KeyResolve::from_json(params.body);
  if (!asked) return respond(std::unexpected(asked.error()));
  if (calls_ >= kMaxCalls)
    return respond(fail(Errc::QueueFull, "the agent looks for too many keys; try again"));
  ++calls_;  // here, because the coroutine may begin after further calls
  boost::asio::co_spawn(io_, resolve(*std::move(asked), std::move(respond)), kRethrow);
}

/// A notification has no reply, so one that is wrong is dropped.
void KeyServer::note(const std::string& method, const control::Payload& params) {
  if (method != wire::PartWant::kMethod) return;
  if (const auto wanted = wire::PartWant::from_json(params.body)) want_(*wanted);
}

awaitable<void> KeyServer::resolve(wire::KeyResolve asked, control::Responder respond) {
  const auto done = co_await resolve_(std::move(asked));
  --calls_;
  if (done) {
    respond(control::Payload());
  } else {
    respond(std::unexpected(done.error()));
  }
}

}  // namespace leasehold::cell
