// A holder that makes no calls learns of its revocation.
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <optional>

#include "ipc/client/lease_holder.hpp"
#include "tests/process/broker/fake_worker.hpp"

using namespace leasehold;

namespace {

/// A holder that runs the client library and keeps the notice.
struct IdleHolder {
  explicit IdleHolder(const std::string& broker_socket)
      : holder(client::LeaseHolder::create(
            io, timers, broker_socket,
            {.on_lost = [](const Error& error) { FAIL(error.detail); },
             .on_revoked = [this](const wire::LeaseRevoked& revoked) { notice = revoked; }})) {}

  LeaseId acquire() {
    std::optional<Result<wire::LeaseAcquired>> acquired;
    holder->acquire({.tenant = {"a"}, .request_id = next_request_id()},
                    [&](Result<wire::LeaseAcquired> result) { acquired = std::move(result); });
    run_until([&] { return acquired.has_value(); });
    return acquired->value().lease;
  }
  void run_until(const std::function<bool()>& wanted) {
    io.restart();
    while (!wanted()) {
      if (io.run_one_for(std::chrono::seconds(20)) == 0) FAIL("no event within 20 s");
    }
  }

  boost::asio::io_context io{1};
  client::AsioTimers timers{io};
  std::optional<wire::LeaseRevoked> notice;
  std::shared_ptr<client::LeaseHolder> holder;
};

}  // namespace

TEST_CASE_METHOD(
    BrokerWithWorker,
    "broker: an idle holder gets a notice of its revocation, and a query confirms it") {
  IdleHolder idle(broker.socket());
  const LeaseId lease = idle.acquire();
  worker.begin_unit();  // the lease cannot be fenced yet

  broker.revoke(client, lease).value();
  idle.run_until([&] { return idle.notice.has_value(); });

  CHECK(idle.notice->lease == lease);
  CHECK(idle.notice->scope == wire::LeaseScope::Tenant);
  CHECK(idle.notice->reason == RevokeReason::Operator);
  const auto reply = client.call(std::string(wire::LeaseQuery::kMethod),
                                 {.body = wire::LeaseQuery{.lease = lease}.to_json()});
  const auto status = wire::LeaseStatus::from_json(reply.value().body).value();
  CHECK(status.state == LeaseState::Revoked);
  CHECK(status.reason == RevokeReason::Operator);
  worker.end_unit();
}
