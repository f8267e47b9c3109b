#include "worker/program/cell_link.hpp"

#include <boost/asio/post.hpp>
#include <utility>

#include "ipc/control/messages/cell/agent_calls.hpp"
#include "ipc/control/tokens/api_key.hpp"

namespace leasehold {
namespace {

constexpr auto kCellCheckTimeout = std::chrono::seconds(10);

Result<wire::KeyOwner> key_of(Result<control::Payload> reply) {
  return wire::KeyOwner::from_json(TRY(std::move(reply)).body);
}

constexpr std::int64_t kAskAgain_ms = 200;
constexpr std::string_view kNoAgent =
    "the agent of this host's cell does not answer; try again in a moment, or on another host";

std::unexpected<Error> no_agent(std::string detail) {
  return std::unexpected(
      Error{.code = Errc::CellLost, .detail = std::move(detail), .retry_after_ms = kAskAgain_ms});
}

Result<void> done_of(const Result<control::Payload>& reply) {
  if (reply) return {};
  switch (reply.error().code) {
    case Errc::TimedOut:
      return no_agent("the cell has not said in time whether it has this key; try again");
    case Errc::ConnectionLost:
      return no_agent(std::string(kNoAgent));
    default:
      return std::unexpected(reply.error());
  }
}

}  // namespace

void CellLink::ask_broker(const wire::KeyCheck& key, OnChecked done) {
  broker_.call_async(
      std::string(wire::KeyCheck::kMethod), {.body = key.to_json()},
      [done = std::move(done)](Result<control::Payload> reply) mutable {
        done(key_of(std::move(reply)));
      },
      kCellCheckTimeout);
}

void CellLink::check(wire::KeyCheck key, MovedFrom moved_from, OnChecked done) {
  if (agent_.empty()) return ask_broker(key, std::move(done));
  auto decide = [self = shared_from_this(), key, moved_from = std::move(moved_from),
                 done = std::move(done)](Result<wire::KeyOwner> owner) mutable {
    const bool is_unknown = !owner && owner.error().code == Errc::BadToken;
    if (!is_unknown || !is_api_key(key.api_key)) return done(std::move(owner));
    wire::KeyResolve asked{.hash = hash_of_api_key(key.api_key),
                           .moved_from = std::move(moved_from)};
    self->ask_agent(std::move(asked), [self, key = std::move(key),
                                       done = std::move(done)](Result<void> resolved) mutable {
      if (!resolved) return done(std::unexpected(std::move(resolved).error()));
      self->ask_broker(key, std::move(done));
    });
  };
  ask_broker(key, std::move(decide));
}

void CellLink::ask_agent(wire::KeyResolve asked, OnResolved done) {
  boost::asio::post(
      io_, [self = shared_from_this(), asked = std::move(asked), done = std::move(done)]() mutable {
        if (!self->connect()) return done(no_agent(std::string(kNoAgent)));
        self->peer_->call(
            std::string(wire::KeyResolve::kMethod), {.body = asked.to_json()},
            [done = std::move(done)](const Result<control::Payload>& reply) mutable {
              done(done_of(reply));
            },
            kResolveTimeout);
      });
}

void CellLink::want_part(wire::PartWant wanted) {
  if (agent_.empty()) return;
  boost::asio::post(
      io_, [self = shared_from_this(), wanted = std::move(wanted)] { self->send_want(wanted); });
}

void CellLink::send_want(const wire::PartWant& wanted) {
  const TimePoint now = clock_.now();
  std::erase_if(wanted_,
                [&](const auto& each) { return now - each.second >= wire::PartWant::kPause; });
  const bool is_new = wanted_.emplace(std::pair(wanted.tenant, wanted.moved_from), now).second;
  if (!is_new || !connect()) return;
  peer_->notify(std::string(wire::PartWant::kMethod), {.body = wanted.to_json()});
}

Result<void> CellLink::connect() {
  if (peer_ != nullptr) return {};
  peer_ = control::Peer::create(
      TRY(control::connect_to(io_, agent_)),
      {.on_call = [](const std::string&, control::Payload, control::Responder) {},
       .on_notification = [](const std::string&, control::Payload) {},
       .on_closed =
           [weak = weak_from_this()](const Error&) {
             if (const auto owner = weak.lock()) owner->peer_ = nullptr;
           }});
  peer_->start();
  return {};
}

}  // namespace leasehold
