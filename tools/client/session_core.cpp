#include "tools/client/session_core.hpp"

#include <boost/asio/post.hpp>
#include <type_traits>
#include <utility>

#include "common/random.hpp"
#include "tools/client/start_without_signals.hpp"

namespace leasehold::api {
namespace {

constexpr Duration kReleaseTimeout = std::chrono::seconds(2);

Lease to_lease(const wire::LeaseAcquired& lease) {
  return {.id = to_string(lease.lease),
          .worker = lease.worker,
          .blocks = lease.blocks,
          .ttl = std::chrono::milliseconds(lease.ttl_ms),
          .text_identity = lease.text_identity ? to_string(*lease.text_identity) : ""};
}

Error busy() {
  return to_api(leasehold::Error{
      Errc::BadRequest,
      "this session runs another text; read it to the end or cancel it, or use a second session"});
}

}  // namespace

SessionCore::SessionCore(client::SessionConfig config)
    : work_(boost::asio::make_work_guard(io_)), config_(std::move(config)) {
  holder_ = client::LeaseHolder::create(io_, timers_, config_.broker_path, {},
                                        client::LeaseHolder::AtSessionEnd::KeepLive);
  thread_ = start_without_signals([this] { io_.run(); });
}

SessionCore::~SessionCore() {
  work_.reset();
  io_.stop();
  thread_.join();
}

/// Runs the action on the thread and waits for it.
template <class Action>
auto SessionCore::on_thread(Action action) {
  std::packaged_task<std::invoke_result_t<Action>()> task(std::move(action));
  auto done = task.get_future();
  boost::asio::post(io_, [task = std::move(task)]() mutable { task(); });
  return done.get();
}

Result<Lease> SessionCore::acquire() {
  if (is_busy()) return busy();
  if (auto held = lease()) return *std::move(held);
  Reply acquired = acquire_once(Replaces::EarlierLease);
  if (!acquired && acquired.error().code == Errc::UnknownLease)  // the broker restarted without it
    acquired = acquire_once(Replaces::Nothing);
  if (!acquired) return to_api(acquired.error());
  return to_lease(*acquired);
}

SessionCore::Reply SessionCore::acquire_once(Replaces replaces) {
  const auto replied = std::make_shared<std::promise<Reply>>();  // the thread may leave it last
  on_thread([&] {
    const auto& earlier = holder_->lease();
    const bool names_earlier = earlier && replaces == Replaces::EarlierLease;
    const wire::LeaseAcquire wanted{
        .tenant = config_.tenant,
        .blocks = config_.blocks,
        .worker = config_.worker,
        .model = config_.model,
        .replaces = names_earlier ? std::optional(earlier->lease) : std::nullopt,
        .api_key = config_.api_key,
        .request_id = RequestId{mint_request_id()}};
    holder_->acquire(wanted, [replied](Reply reply) { replied->set_value(std::move(reply)); });
  });
  return replied->get_future().get();
}

std::optional<Lease> SessionCore::lease() {
  return on_thread([this]() -> std::optional<Lease> {
    const bool is_held = holder_->is_live() || holder_->is_reconnecting();
    if (!is_held || !holder_->lease()) return std::nullopt;
    return to_lease(*holder_->lease());
  });
}

Result<std::shared_ptr<Text>> SessionCore::begin(wire::RequestSubmit request,
                                                 std::optional<TextIdentity> identity) {
  if (is_busy()) return busy();
  text_ = std::make_shared<Text>(request.request_id.value);
  on_thread([&] {
    client::SessionConfig config = config_;
    config.lease = holder_;
    config.request = std::move(request);
    config.text_identity = std::move(identity);
    session_ = client::TenantSession::create(
        io_, timers_, std::move(config),
        [text = text_](const client::SessionEvent& event) { text->take(event); });
    running_ = text_;
    session_->start();
  });
  return text_;
}

void SessionCore::cancel(const std::shared_ptr<Text>& text) {
  boost::asio::post(io_, [this, text] {
    if (text == running_ && !text->has_ended()) session_->cancel();
  });
}

void SessionCore::release() {
  if (is_busy()) {
    cancel(text_);
    (void)text_->result();
  }
  const auto released = std::make_shared<std::promise<void>>();
  on_thread([&] { holder_->release(kReleaseTimeout, [released] { released->set_value(); }); });
  released->get_future().get();
}

}  // namespace leasehold::api
