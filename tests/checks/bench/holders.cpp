#include "tests/checks/bench/holders.hpp"

#include <boost/asio/io_context.hpp>
#include <set>

#include "common/random.hpp"
#include "ipc/control/messages.hpp"
#include "ipc/control/peer.hpp"

namespace leasehold::bench {
namespace {

/// Runs on the caller's thread, inside `run`. Implements hold_leases and cycle_leases.
class Holder {
 public:
  explicit Holder(const HolderConfig& config) : config_(config) {}

  static Result<std::unique_ptr<Holder>> connect(const HolderConfig& config) {
    auto holder = std::make_unique<Holder>(config);
    control::Peer::Handlers handlers;
    handlers.on_closed = [self = holder.get()](const Error& why) { self->stop(why); };
    holder->peer_ = control::Peer::create(
        TRY(control::connect_to(holder->io_, config.broker_socket)), std::move(handlers));
    holder->peer_->start();
    return holder;
  }

  /// `release`: releases each lease before it acquires the next one.
  Result<void> run(bool release) {
    to_start_ = config_.count;
    to_finish_ = config_.count;
    release_ = release;
    for (std::uint32_t i = 0; i < config_.in_flight && to_start_ > 0; ++i) acquire();
    io_.run();
    if (error_) return std::unexpected(*error_);
    return {};
  }

  std::vector<LeaseId> held() const { return {held_.begin(), held_.end()}; }

 private:
  void acquire() {
    --to_start_;
    const wire::LeaseAcquire ask{.tenant = {config_.tenant}, .request_id = {mint_request_id()}};
    peer_->call(std::string(ask.kMethod), {.body = ask.to_json()},
                [this](Result<control::Payload> reply) {
                  if (!reply) return stop(reply.error());
                  const auto acquired = wire::LeaseAcquired::from_json(reply->body);
                  if (!acquired) return stop(acquired.error());
                  if (release_) return release(acquired->lease);
                  held_.insert(acquired->lease);
                  finished();
                });
  }
  void release(LeaseId lease) {
    const wire::LeaseRelease ask{.lease = lease, .request_id = {mint_request_id()}};
    peer_->call(std::string(ask.kMethod), {.body = ask.to_json()},
                [this](Result<control::Payload> reply) {
                  if (!reply) return stop(reply.error());
                  finished();
                });
  }
  void finished() {
    if (--to_finish_ == 0) return io_.stop();
    if (to_start_ > 0) acquire();
  }
  void stop(const Error& why) {
    error_ = why;
    io_.stop();
  }

  HolderConfig config_;
  boost::asio::io_context io_;
  std::shared_ptr<control::Peer> peer_;
  std::uint32_t to_start_ = 0;
  std::uint32_t to_finish_ = 0;
  bool release_ = false;
  std::set<LeaseId> held_;
  std::optional<Error> error_;
};

}  // namespace

Result<void> hold_leases(const HolderConfig& config, const OnLeasesHeld& on_held) {
  const auto holder = TRY(Holder::connect(config));
  TRY(holder->run(false));
  return on_held(holder->held());
}

Result<void> cycle_leases(const HolderConfig& config) {
  const auto holder = TRY(Holder::connect(config));
  return holder->run(true);
}

}  // namespace leasehold::bench
