#include "worker/lease/early_calls.hpp"

#include <boost/asio/post.hpp>
#include <utility>

namespace leasehold {
namespace {

/// The lease in the call's parameters. Errors: NoModelLoaded for a call that must not wait.
Result<LeaseId> lease_of(const std::string& method, const control::Json& params) {
  if (method == wire::LeaseSettle::kMethod) return TRY(wire::LeaseSettle::from_json(params)).lease;
  if (method == wire::LeaseUnmap::kMethod) return TRY(wire::LeaseUnmap::from_json(params)).lease;
  return fail(Errc::NoModelLoaded, "the worker is still loading; retry once it is ready");
}

control::Payload confirmed() {
  return {.body = wire::Empty{}.to_json()};
}

}  // namespace

void EarlyCalls::on_call(const std::string& method, control::Payload params,
                         control::Responder respond) {
  if (method == wire::WorkerPing::kMethod) return respond(confirmed());
  const auto lease = lease_of(method, params.body);
  if (!lease) return respond(std::unexpected(lease.error()));
  waiting_.push_back({*lease, method, std::move(params), std::move(respond)});
  answer();
}

void EarlyCalls::unmapped(LeaseId lease) {
  boost::asio::post(*io_, [this, lease] {
    unmapped_.insert(lease);
    answer();
  });
}

void EarlyCalls::unmap_revoked(Engine& engine,
                               const std::function<void(LeaseId)>& unmap_elsewhere) {
  if (!engine.weights().first_revoked_part()) return;
  for (const LeaseDependency& lease : engine.weights().leases()) {
    // `unmap_lease` returns false once the lease is unmapped; a load calls this function for each
    // piece that it reads.
    if (is_live(lease) || !engine.unmap_lease(id_of(lease))) continue;
    unmap_elsewhere(id_of(lease));
    unmapped(id_of(lease));
  }
}

void EarlyCalls::answer() {
  std::vector<Call> waiting;
  for (Call& call : std::exchange(waiting_, {})) {
    if (unmapped_.contains(call.lease)) {
      call.respond(confirmed());
    } else {
      waiting.push_back(std::move(call));
    }
  }
  waiting_ = std::move(waiting);
}

void EarlyCalls::forward_to(LeaseService& leases) {
  for (Call& call : std::exchange(waiting_, {}))
    leases.on_call(call.method, std::move(call.params), std::move(call.respond));
}

}  // namespace leasehold
