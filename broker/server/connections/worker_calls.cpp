#include "broker/server/connections/worker_calls.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/steady_timer.hpp>
#include <memory>

#include "broker/supervise/ack_observer.hpp"

namespace leasehold {

/// After the timeout, `on_reply` receives TimedOut. It runs again if the worker replies later,
/// because that reply may report a change of state.
template <class Message>
void WorkerCalls::call(AttachmentId worker, const Message& message, OnReply on_reply,
                       std::vector<UniqueFd> fds) {
  WorkerLink* link = dependencies_.links.find(worker);
  // Without a connection there is nothing to send; the worker's exit or resume resolves the call.
  if (link == nullptr || link->peer == nullptr) return;
  const auto handler = std::make_shared<OnReply>(std::move(on_reply));
  const auto timeout = std::make_shared<boost::asio::steady_timer>(dependencies_.io);
  if (Message::kReplyTimeout == wire::ReplyTimeout::Call) {
    timeout->expires_after(dependencies_.timeout);
    timeout->async_wait([handler](const boost::system::error_code& error) {
      if (!error) (*handler)(fail(Errc::TimedOut, "the worker does not reply; see its log"));
    });
  }
  link->peer->call(std::string(Message::kMethod), {message.to_json(), std::move(fds)},
                   [handler, timeout](Result<control::Payload> reply) {
                     timeout->cancel();
                     (*handler)(std::move(reply));
                   });
}

void WorkerCalls::perform(const effect::SendQuota& effect) {
  call(effect.worker, effect.quota,
       [tenant = effect.quota.tenant](const Result<control::Payload>& reply) {
         if (reply || reply.error().code == Errc::ConnectionLost) return;
         spdlog::warn("a worker did not accept a quota tenant={} error={} detail=\"{}\"",
                      tenant.value, name(reply.error().code), reply.error().detail);
       });
}

void WorkerCalls::perform(const effect::SendSampling& effect) {
  call(effect.worker, effect.sampling, [](const Result<control::Payload>& reply) {
    if (reply || reply.error().code == Errc::ConnectionLost) return;
    spdlog::warn("a worker does not sample steps error={} detail=\"{}\"", name(reply.error().code),
                 reply.error().detail);
  });
}

/// A worker of an earlier version answers UnknownMethod, and its `/health` omits the admission.
void WorkerCalls::perform(const effect::SendAdmission& effect) {
  call(effect.worker, effect.admission, [](const auto&) {});
}

void WorkerCalls::perform(const effect::SendAsleep& effect) {
  call(effect.worker, effect.order, [](const auto&) {});
}

void WorkerCalls::perform(const effect::SendSettle& effect) {
  const wire::LeaseSettle settle{.lease = effect.lease};
  call(effect.worker, settle, [this, lease = effect.lease](const Result<control::Payload>& reply) {
    dependencies_.post(SettleAnswered{lease, AckObserver::observe(lease, reply), error_of(reply)});
  });
}

/// An error reply counts as an answer, except ConnectionLost, which the worker did not send.
void WorkerCalls::perform(const effect::SendPing& effect) {
  const wire::WorkerPing ping;
  call(effect.worker, ping, [this, worker = effect.worker](const Result<control::Payload>& reply) {
    if (!reply && reply.error().code == Errc::ConnectionLost) return;
    dependencies_.post(PingAnswered{worker});
  });
}

void WorkerCalls::perform(const effect::SendReclaim& effect) {
  const wire::LeaseReclaim reclaim{
      .lease = effect.lease, .count = effect.count, .pool = effect.pool};
  call(effect.worker, reclaim,
       [this, lease = effect.lease, call = effect.call,
        pool = effect.pool](Result<control::Payload> reply) {
         const auto extents = [&]() -> Result<std::vector<ExtentId>> {
           const control::Payload payload = TRY(std::move(reply));
           return TRY(wire::ExtentsReclaimed::from_json(payload.body)).extents;
         };
         dependencies_.post(ReclaimAnswered{lease, call, extents(), pool});
       });
}

void WorkerCalls::perform(const effect::SendFill& effect) {
  call(effect.worker, effect.fill,
       [this, lease = effect.fill.lease](Result<control::Payload> reply) {
         const auto filled = [&]() -> Result<wire::PrefixFilled> {
           const control::Payload payload = TRY(std::move(reply));
           return wire::PrefixFilled::from_json(payload.body);
         };
         dependencies_.post(FillAnswered{lease, filled()});
       });
}

void WorkerCalls::perform(const effect::SendAdapterOrder& effect) {
  const auto on_reply = [this, call = effect.call](const Result<control::Payload>& reply) {
    dependencies_.post(AdapterOrderAnswered{call, error_of(reply)});
  };
  std::visit([&](const auto& order) { call(effect.worker, order, on_reply); }, effect.order);
}

void WorkerCalls::perform(const effect::NotifyAdapters& effect) {
  const WorkerLink* link = dependencies_.links.find(effect.worker);
  if (link == nullptr || link->peer == nullptr) return;
  std::visit(
      [&](const auto& notice) {
        link->peer->notify(std::string(notice.kMethod), {.body = notice.to_json()});
      },
      effect.notice);
}

void WorkerCalls::grant(const effect::SendGrant& effect, std::vector<UniqueFd> memory) {
  auto on_reply = [this, lease = effect.grant.lease,
                   extents = effect.grant.extents](const Result<control::Payload>& reply) {
    dependencies_.post(GrantAnswered{lease, extents, error_of(reply), true});
  };
  call(effect.worker, effect.grant, std::move(on_reply), std::move(memory));
}

void WorkerCalls::unmap(const effect::SendUnmap& effect) {
  const wire::LeaseUnmap unmap{.lease = effect.lease};
  call(effect.worker, unmap, [this, lease = effect.lease](const Result<control::Payload>& reply) {
    dependencies_.post(UnmapAnswered{lease, error_of(reply)});
  });
}

void WorkerCalls::drain(const effect::SetDrainDeadline& effect) {
  const wire::LeaseDraining draining{.lease = effect.lease};
  call(effect.worker, draining, [](const auto&) {});
}

}  // namespace leasehold
