#include "tools/cell/broker_side.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/co_spawn.hpp>
#include <utility>

#include "ipc/control/messages/cell/cell.hpp"
#include "ipc/http/http_await.hpp"
#include "tools/cell/decide/broker_part.hpp"
#include "tools/cell/rethrow.hpp"

namespace leasehold::cell {
namespace {

using boost::asio::awaitable;

constexpr Duration kRetry = std::chrono::milliseconds(100);

}  // namespace

/// With strict moves a text waits until the limits have room, whatever host it was on.
template <class Call>
Call BrokerSide::allowed(Call call) const {
  if (moves_ == MovePolicy::Strict) call.moved_from.reset();
  return call;
}

BrokerSide::BrokerSide(boost::asio::io_context& io, const Clock& clock, etcd::Client& etcd,
                       const Options& options, std::function<void()> on_new_models)
    : io_(io),
      clock_(clock),
      options_(options),
      broker_(io, options.broker_socket,
              [this](const std::string& method, const wire::Json& params) {
                tenants_.notified(method, params);
              }),
      tenants_(io, clock, etcd, broker_, options.address.cell),
      state_(io, broker_, std::move(on_new_models)),
      keys_(
          io, [this](const wire::KeyResolve& asked) { return tenants_.resolve(allowed(asked)); },
          [this](const wire::PartWant& wanted) { tenants_.wants_more(allowed(wanted)); }) {}

Result<void> BrokerSide::start() {
  if (!options_.socket.empty()) TRY(keys_.listen(options_.socket));
  unanswered_since_ = clock_.now();
  tenants_.start(options_.host);
  boost::asio::co_spawn(io_, keep_connected(), kRethrow);
  return {};
}

/// The ceiling is sent first: the broker takes no part of an incarnation that it does not know.
void BrokerSide::set_membership(std::optional<PartOwner> owner, TimePoint ceiling) {
  owner_ = std::move(owner);
  ceiling_ = ceiling;
  send_ceiling();
  tenants_.set_owner(owner_, ceiling_);
}

bool BrokerSide::is_lost_for(Duration time) const {
  return unanswered_since_ && clock_.now() - *unanswered_since_ >= time;
}

void BrokerSide::send_ceiling() {
  if (!unanswered_since_) unanswered_since_ = clock_.now();
  if (!broker_.is_connected()) return;
  const wire::CellCeiling message{.incarnation = owner_ ? number_of(owner_->incarnation) : 0,
                                  .ceiling_boottime_ns = owner_ ? ceiling_.boottime_ns : 0};
  broker_.send(std::string(wire::CellCeiling::kMethod), message.to_json(),
               [this](Result<control::Payload> reply) {
                 if (reply) unanswered_since_.reset();
                 // A lost connection is reported where it ends.
                 if (!reply && reply.error().code != Errc::ConnectionLost)
                   report_lost(reply.error());
               });
}

awaitable<Result<void>> BrokerSide::attach() {
  const auto connected = broker_.connect();
  if (!connected) co_return connected;
  const wire::CellAttach message{.cell = options_.address.cell};
  const auto attached = co_await broker_.call(message);
  if (!attached) co_return std::unexpected(attached.error());
  co_return Result<void>();
}

/// Whether the broker answers. It changes nothing there.
awaitable<void> BrokerSide::probe() {
  if (!broker_.connect()) co_return;
  const auto answered = co_await broker_.call("status", wire::Json::object());
  if (answered) unanswered_since_.reset();
  broker_.close();
}

/// An agent without a membership may be the second one of its name, so it does not attach: leases
/// end at the ceiling that the broker has.
awaitable<void> BrokerSide::keep_connected() {
  boost::asio::steady_timer pause(io_);
  while (true) {
    pause.expires_after(kRetry);
    (void)co_await pause.async_wait(http::kAwait);
    if (!owner_) {
      if (unanswered_since_) co_await probe();
      continue;
    }
    const auto attached = co_await attach();
    if (attached) {
      lost_.reset();
      spdlog::info("broker attached socket={}", options_.broker_socket);
      send_ceiling();
      tenants_.broker_attached();
      state_.ask();
      co_await broker_.until_closed();
      report_lost({Errc::ConnectionLost, "the broker has ended the connection"});
    } else {
      report_lost(attached.error());
      broker_.close();
    }
  }
}

/// Once for each reason, not for each attempt.
void BrokerSide::report_lost(const Error& error) {
  if (std::exchange(lost_, error.code) == error.code) return;
  spdlog::warn("broker lost code={} reason=\"{}\"; leases of the cell's tenants end at the ceiling",
               name(error.code), error.detail);
}

}  // namespace leasehold::cell
