#include "worker/engine/adapter_waits.hpp"

#include <fmt/format.h>

#include <utility>

#include "common/counted.hpp"
#include "common/fair_shares.hpp"
#include "worker/schedule/adapter_version.hpp"
#include "worker/schedule/queue_full.hpp"

namespace leasehold {

void AdapterWaits::wait(PromptRequest request, OnLoaded on_loaded) {
  if (service_ == nullptr) {
    return on_loaded(fail(
        Errc::UnknownAdapter,
        fmt::format("adapter {} is unknown; this worker loads no adapters", request.adapter.name)));
  }
  if (const auto room = check_room(request); !room) return on_loaded(std::unexpected(room.error()));
  const TenantId tenant = request.tenant;
  const std::string name = request.adapter.name;
  const std::uint64_t number = ++last_number_;
  waiting_.emplace(number, Waiting{std::move(request), std::move(on_loaded)});
  service_->use(tenant, name,
                [this, number](Result<AdapterUse> use) { loaded(number, std::move(use)); });
}

Result<void> AdapterWaits::check_room(const PromptRequest& request) const {
  std::size_t of_lease = 0;
  std::size_t of_tenant = 0;
  for (const auto& [number, waiting] : waiting_) {
    of_lease += waiting.request.lease == request.lease ? 1 : 0;
    of_tenant += waiting.request.tenant == request.tenant ? 1 : 0;
  }
  const SchedulerLimits& limits = deps_.scheduler->fit().limits();
  if (of_lease >= limits.max_waiting_per_lease) {
    return fail(Errc::QuotaConcurrent,
                fmt::format("lease {} has {} waiting for adapters; retry when one ends",
                            to_string(request.lease), counted(of_lease, "request")));
  }
  const Tenancies& queued = deps_.scheduler->tenancies();
  const ResourceShare share{.held = of_tenant + queued.waiting_of(request.tenant),
                            .taken = waiting_.size() + queued.waiting_count(),
                            .capacity = limits.max_waiting};
  if (may_take_more(share)) return {};
  return queue_full(request.tenant, share);
}

/// Does nothing for a request that no longer waits.
void AdapterWaits::loaded(std::uint64_t number, Result<AdapterUse> use) {
  auto found = waiting_.extract(number);
  if (!found) return;
  auto& [request, on_loaded] = found.mapped();
  if (!use) return on_loaded(std::unexpected(use.error()));
  if (const auto checked = check_version(request.adapter, **use); !checked)
    return on_loaded(std::unexpected(checked.error()));
  request.adapter.use = *use;
  request.adapter.share =
      static_cast<double>((*use)->size_bytes) / static_cast<double>(deps_.weights->size_bytes());
  on_loaded(std::move(request));
}

bool AdapterWaits::cancel(const RequestId& engine_request_id) {
  const std::size_t before = waiting_.size();
  refuse_if([&](const PromptRequest& request) -> std::optional<Error> {
    if (request.engine_request_id != engine_request_id) return std::nullopt;
    return Error{Errc::RequestCancelled,
                 fmt::format("the request was cancelled while adapter {} was being loaded",
                             request.adapter.name)};
  });
  return waiting_.size() < before;
}

void AdapterWaits::refuse_ended() {
  if (waiting_.empty()) return;
  refuse_if([&](const PromptRequest& request) -> std::optional<Error> {
    if (const auto usable = deps_.leases->check_usable(request.lease); !usable)
      return usable.error();
    if (!request.deadline || deps_.clock->now() < *request.deadline) return std::nullopt;
    return Error{Errc::TimedOut,
                 fmt::format("the request's deadline passed while adapter {} was being loaded",
                             request.adapter.name)};
  });
}

void AdapterWaits::refuse_all(const Error& error) {
  refuse_if([&](const PromptRequest&) { return std::optional(error); });
}

void AdapterWaits::refuse_if(
    const std::function<std::optional<Error>(const PromptRequest& request)>& why_refused) {
  std::vector<std::pair<OnLoaded, Error>> refused;
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    const auto here = waiting++;
    std::optional<Error> why = why_refused(here->second.request);
    if (!why) continue;
    refused.emplace_back(std::move(here->second.on_loaded), *std::move(why));
    waiting_.erase(here);
  }
  for (auto& [on_loaded, why] : refused) on_loaded(std::unexpected(std::move(why)));
}

}  // namespace leasehold
