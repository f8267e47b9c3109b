#include "worker/program/cell_keys.hpp"

#include <boost/asio/post.hpp>
#include <utility>

#include "ipc/control/messages/cell/key_resolve.hpp"
#include "ipc/control/tokens/api_key.hpp"

namespace leasehold {
namespace {

constexpr auto kCellCheckTimeout = std::chrono::seconds(10);
/// The agent asks etcd a few times and other hosts for a part, for two seconds at most.
constexpr auto kResolveTimeout = std::chrono::seconds(3);

Result<wire::KeyOwner> key_of(Result<control::Payload> reply) {
  return wire::KeyOwner::from_json(TRY(std::move(reply)).body);
}

std::unexpected<Error> no_agent() {
  return fail(Errc::CellLost,
              "the agent of this host's cell does not answer; try again in a moment, or on another "
              "host");
}

Result<void> done_of(const Result<control::Payload>& reply) {
  if (reply) return {};
  const Errc code = reply.error().code;
  if (code == Errc::TimedOut || code == Errc::ConnectionLost) return no_agent();
  return std::unexpected(reply.error());
}

}  // namespace

void CellKeys::ask_broker(const std::string& api_key, OnChecked done) {
  broker_.call_async(
      std::string(wire::KeyCheck::kMethod), {.body = wire::KeyCheck{.api_key = api_key}.to_json()},
      [done = std::move(done)](Result<control::Payload> reply) mutable {
        done(key_of(std::move(reply)));
      },
      kCellCheckTimeout);
}

void CellKeys::check(std::string api_key, OnChecked done) {
  if (agent_.empty()) return ask_broker(api_key, std::move(done));
  auto decide = [self = shared_from_this(), api_key,
                 done = std::move(done)](Result<wire::KeyOwner> owner) mutable {
    const bool is_unknown = !owner && owner.error().code == Errc::BadToken;
    if (!is_unknown || !is_api_key(api_key)) return done(std::move(owner));
    std::string hash = hash_of_api_key(api_key);
    self->ask_agent(std::move(hash), [self, api_key = std::move(api_key),
                                      done = std::move(done)](Result<void> resolved) mutable {
      if (!resolved) return done(std::unexpected(std::move(resolved).error()));
      self->ask_broker(api_key, std::move(done));
    });
  };
  ask_broker(api_key, std::move(decide));
}

void CellKeys::ask_agent(std::string hash, OnResolved done) {
  boost::asio::post(
      io_, [self = shared_from_this(), hash = std::move(hash), done = std::move(done)]() mutable {
        if (self->peer_ == nullptr) {
          auto socket = control::connect_to(self->io_, self->agent_);
          if (!socket) return done(no_agent());
          self->peer_ = control::Peer::create(
              *std::move(socket),
              {.on_call = [](const std::string&, control::Payload, control::Responder) {},
               .on_notification = [](const std::string&, control::Payload) {},
               .on_closed =
                   [weak = std::weak_ptr(self)](const Error&) {
                     if (const auto owner = weak.lock()) owner->peer_ = nullptr;
                   }});
          self->peer_->start();
        }
        const wire::KeyResolve message{.hash = std::move(hash)};
        self->peer_->call(
            std::string(wire::KeyResolve::kMethod), {.body = message.to_json()},
            [done = std::move(done)](const Result<control::Payload>& reply) mutable {
              done(done_of(reply));
            },
            kResolveTimeout);
      });
}

}  // namespace leasehold
