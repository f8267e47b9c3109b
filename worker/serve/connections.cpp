#include "worker/serve/connections.hpp"

namespace leasehold {
namespace {

constexpr mode_t kSocketMode = 0666;  // a valid token, not the file mode, lets a tenant in
constexpr std::size_t kMaxConnections = 512;
constexpr auto kAcceptPause = std::chrono::milliseconds(100);
/// No method of a worker takes descriptors from a tenant.
constexpr control::Limits kTenantLimits{.max_fds = 0};

}  // namespace

struct TenantConnections::Open {
  std::uint64_t id = 0;
  std::shared_ptr<control::Peer> peer;
};

Result<TenantConnections::Acceptor> TenantConnections::listen(boost::asio::io_context& io,
                                                              const std::string& path) {
  return control::listen_on(io, path, kSocketMode);
}

void TenantConnections::serve(Acceptor acceptor) {
  acceptor_.emplace(std::move(acceptor));
  accept_next();
}

void TenantConnections::close_all() {
  for (const auto& [id, open] : open_) open->peer->close();
}

void TenantConnections::accept_next() {
  acceptor_->async_accept([this](const boost::system::error_code& error, control::Socket socket) {
    if (error == boost::asio::error::operation_aborted) return;
    if (error) return accept_later();
    if (open_.size() < kMaxConnections) add(std::move(socket));
    accept_next();
  });
}

/// The process is probably out of descriptors; accepting again at once would fail again.
void TenantConnections::accept_later() {
  accept_timer_.expires_after(kAcceptPause);
  accept_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && acceptor_) accept_next();  // not after stop_accepting
  });
}

void TenantConnections::add(control::Socket socket) {
  auto added = std::make_shared<Open>(Open{.id = ++last_id_, .peer = {}});
  const std::weak_ptr<Open> weak = added;  // a peer may outlive this object
  const auto on_call = [this, weak](const std::string& method, control::Payload params,
                                    control::Responder respond) {
    const auto open = weak.lock();
    if (!open) return;
    handlers_.on_call({open->id, open->peer}, method, std::move(params), std::move(respond));
  };
  const auto on_closed = [this, weak](const Error&) {
    const auto open = weak.lock();
    if (!open) return;
    handlers_.on_closed({open->id, open->peer});
    open_.erase(open->id);
  };
  added->peer = control::Peer::create(
      std::move(socket), {.on_call = on_call, .on_notification = {}, .on_closed = on_closed},
      kTenantLimits);
  open_.emplace(added->id, added);
  added->peer->start();
}

}  // namespace leasehold
