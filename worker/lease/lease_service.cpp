#include "worker/lease/lease_service.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>

#include "common/fault_point.hpp"
#include "common/random.hpp"
#include "ipc/control/messages/limits.hpp"

namespace leasehold {
namespace {

using control::Json;
using control::Payload;
using control::Responder;

constexpr std::size_t kExtentsPerRedelivery = 60;

Result<std::vector<LeasedMapping>> map_all(const RegionMapper& regions,
                                           const wire::LeaseGrant& grant,
                                           std::vector<UniqueFd> fds) {
  std::vector<LeasedMapping> mapped;
  for (std::size_t i = 0; i < fds.size(); ++i) {
    auto extent = regions.map(std::move(fds[i]), grant.extent_size_bytes, MapAccess::ReadWrite);
    if (!extent) {
      return fail(extent.error().code,
                  fmt::format("extent {}: {}", grant.extents[i].value, extent.error().detail));
    }
    mapped.push_back(*std::move(extent));
  }
  return mapped;
}

void log_adopted(const wire::LeaseGrant& grant, const Engine::Adopted& adopted) {
  spdlog::info("memory adopted lease={} from={} records={} blocks={} dropped={}",
               to_string(grant.lease), to_string(*grant.adopted_from), adopted.records,
               adopted.blocks, adopted.dropped.size());
  if (adopted.dropped.empty()) return;
  const Error& first = adopted.dropped.front();
  spdlog::warn("sequence records dropped lease={} count={} error={} first=\"{}\"",
               to_string(grant.lease), adopted.dropped.size(), name(first.code), first.detail);
}

Payload empty_payload() {
  return {.body = wire::Empty{}.to_json()};
}

}  // namespace

void LeaseService::on_call(const std::string& method, Payload params, Responder respond) {
  const auto handle = [&]() -> Result<void> {
    if (method == wire::LeaseGrant::kMethod) return grant(std::move(params), respond);
    if (method == wire::TenantQuota::kMethod) return set_quota(params.body, respond);
    if (method == wire::LeaseUnmap::kMethod) return unmap(params.body, respond);
    if (method == wire::LeaseSettle::kMethod) return settle(params.body, respond);
    if (method == wire::LeaseReclaim::kMethod) return reclaim(params.body, respond);
    if (method == wire::PrefixFill::kMethod) return fills_.fill(params.body, respond);
    const bool is_drain = method == wire::LeaseDraining::kMethod;
    if (!is_drain && method != wire::WorkerPing::kMethod)
      return fail(Errc::UnknownMethod, fmt::format("a worker has no method '{}'", method));
    // The loop checks for drained leases after each command.
    if (is_drain) deps_.loop->wake_for_requests();
    respond(empty_payload());
    return {};
  };
  if (const auto handled = handle(); !handled) respond(std::unexpected(handled.error()));
}

Result<void> LeaseService::set_quota(const Json& body, Responder& respond) {
  const wire::TenantQuota quota = TRY(wire::TenantQuota::from_json(body));
  deps_.loop->post([quota](Engine& engine) { engine.submissions().set_quota(quota); });
  respond(empty_payload());
  return {};
}

void LeaseService::report_usage(const std::vector<wire::TenantUsage>& usage) {
  for (const wire::TenantUsage& each : usage) deps_.broker->report_usage(each);
}

Result<void> LeaseService::grant(Payload params, Responder& respond) {
  wire::LeaseGrant grant = TRY(wire::LeaseGrant::from_json(params.body));
  const bool first = is_first(grant);
  // The engine runs its commands in order, so requests that follow the answer run after the memory
  // is installed. A lease's first grant can therefore be answered before the step ends. A growth
  // grant is answered once installed, because the scheduler asks for growth as long as it lacks the
  // memory.
  const Answers answers =
      first && !grant.adopted_from ? Answers::OnceMapped : Answers::OnceInstalled;
  const bool may_stay_idle = first && deps_.first_regions != nullptr &&
                             grant.scope == wire::LeaseScope::Tenant &&
                             grant.pool == wire::MemoryPool::Kv;
  const RegionMapper& mapper = may_stay_idle ? *deps_.first_regions : mapper_of(grant.pool);
  TRY(keep_extent_fds(grant, params.fds));
  InFlight& in_flight =
      grants_in_flight_.try_emplace(grant.lease, InFlight{0, answers}).first->second;
  ++in_flight.count;
  boost::asio::post(
      deps_.mapper, [this, answers, &mapper, grant = std::move(grant), fds = std::move(params.fds),
                     respond = std::move(respond)]() mutable {
        auto mapped = map_all(mapper, grant, std::move(fds));
        fault_point(FaultSite::WorkerExtentsMapped);
        boost::asio::post(
            *deps_.io, [this, answers, grant = std::move(grant), mapped = std::move(mapped),
                        respond = std::move(respond)]() mutable {
              on_mapped({std::move(grant), answers}, std::move(mapped), std::move(respond));
            });
      });
  return {};
}

/// True for a grant that belongs to the acquire of its lease, of one message or several.
bool LeaseService::is_first(const wire::LeaseGrant& grant) const {
  const auto in_flight = grants_in_flight_.find(grant.lease);
  return in_flight == grants_in_flight_.end() ? !extent_fds_.contains(grant.lease)
                                              : in_flight->second.answers == Answers::OnceMapped;
}

const RegionMapper& LeaseService::mapper_of(wire::MemoryPool pool) const {
  return pool == wire::MemoryPool::Swap ? *deps_.swap_regions : *deps_.regions;
}

/// Runs before mapping, so that a broker that restarts meanwhile also gets these extents back.
Result<void> LeaseService::keep_extent_fds(const wire::LeaseGrant& grant,
                                           const std::vector<UniqueFd>& fds) {
  if (fds.size() != grant.extents.size()) {
    return fail(Errc::BadRequest, fmt::format("the grant names {} extents and has {} descriptors",
                                              grant.extents.size(), fds.size()));
  }
  std::vector<UniqueFd> kept;
  for (const UniqueFd& fd : fds) kept.push_back(TRY(fd.duplicate()));
  for (std::size_t i = 0; i < kept.size(); ++i) {
    extent_fds_[grant.lease][grant.extents[i]] = std::move(kept[i]);
  }
  return {};
}

void LeaseService::on_mapped(MappedGrant granted, Result<std::vector<LeasedMapping>> done,
                             Responder responder) {
  if (!done) {
    for (const ExtentId extent : granted.grant.extents)
      extent_fds_[granted.grant.lease].erase(extent);
    grant_installed(granted.grant.lease);
    return responder(std::unexpected(done.error()));
  }
  Responder early;
  if (granted.answers == Answers::OnceMapped) early = std::exchange(responder, nullptr);
  deps_.loop->post([this, grant = std::move(granted.grant), mapped = *std::move(done),
                    respond = std::move(responder)](Engine& engine) mutable {
    if (grant.scope == wire::LeaseScope::Adapter) {
      install_adapter(engine, grant, std::move(mapped));
    } else {
      install(engine, grant, std::move(mapped));
    }
    boost::asio::post(*deps_.io, [this, lease = grant.lease] { grant_installed(lease); });
    if (respond) answer(std::move(respond), empty_payload());
  });
  if (early) early(empty_payload());
}

void LeaseService::install(Engine& engine, const wire::LeaseGrant& grant,
                           std::vector<LeasedMapping> mapped) {
  if (!engine.scheduler().tenancies().contains(grant.lease)) {
    engine.add_lease({.lease = grant.lease,
                      .tenant = grant.tenant,
                      .api_key = grant.api_key.value_or(ApiKeyId{}),
                      .is_shared = grant.scope == wire::LeaseScope::Shared,
                      .is_scavenger = grant.scavenger});
  }
  for (std::size_t i = 0; i < mapped.size(); ++i) {
    engine.add_extent(grant.lease, grant.extents[i], std::move(mapped[i]), grant.pool);
  }
  if (grant.adopted_from) log_adopted(grant, engine.adopt(grant.lease));
}

void LeaseService::install_adapter(Engine& engine, const wire::LeaseGrant& grant,
                                   std::vector<LeasedMapping> mapped) {
  // A repeated grant must not move the memory, because matrices may lie in it.
  for (std::size_t i = 0; i < mapped.size(); ++i)
    if (!engine.memory().has(grant.lease, grant.extents[i]))
      engine.memory().add(grant.lease, grant.extents[i], std::move(mapped[i]));
  if (deps_.on_adapter_granted) deps_.on_adapter_granted(grant);
}

void LeaseService::grant_installed(LeaseId lease) {
  const auto found = grants_in_flight_.find(lease);
  if (--found->second.count == 0) grants_in_flight_.erase(found);
  if (!grants_in_flight_.empty() || !when_installed_) return;
  std::exchange(when_installed_, nullptr)();
}

void LeaseService::when_installed(std::move_only_function<void()> then) {
  when_installed_ = nullptr;
  if (grants_in_flight_.empty()) return then();
  when_installed_ = std::move(then);
}

/// Answers after the end of the last launch, because the broker relies on the answer for the fence.
Result<void> LeaseService::settle(const Json& body, Responder& respond) {
  const wire::LeaseSettle request = TRY(wire::LeaseSettle::from_json(body));
  if (deps_.table->word_of(request.lease).state() == LeaseState::Live) {
    return fail(Errc::IllegalTransition,
                fmt::format("lease {} is live; revoke it first", to_string(request.lease)));
  }
  auto settled = [this, respond = std::move(respond)]() mutable {
    answer(std::move(respond), empty_payload());
  };
  if (deps_.when_settled) {
    // Only granted leases hold KV memory; all others are engine leases for weights.
    const bool is_kv = extent_fds_.contains(request.lease);
    deps_.when_settled(is_kv ? SettleScope::TenantMemory : SettleScope::Everything,
                       std::move(settled));
  } else {
    deps_.loop->post([settled = std::move(settled)](Engine&) mutable { settled(); });
  }
  return {};
}

Result<void> LeaseService::unmap(const Json& body, Responder& respond) {
  const wire::LeaseUnmap request = TRY(wire::LeaseUnmap::from_json(body));
  if (deps_.table->word_of(request.lease).state() != LeaseState::Fenced) {
    return fail(Errc::IllegalTransition, fmt::format("lease {} is not fenced; its memory stays "
                                                     "mapped",
                                                     to_string(request.lease)));
  }
  {
    const std::scoped_lock lock(mutex_);
    growth_calls_.forget(request.lease);
  }
  if (deps_.on_fenced) deps_.on_fenced(request.lease);
  if (!grants_in_flight_.contains(request.lease)) {
    unmap_fenced(request.lease, std::move(respond));
    return {};
  }
  // Runs after the mapper has finished a grant in progress.
  boost::asio::post(
      deps_.mapper, [this, lease = request.lease, respond = std::move(respond)]() mutable {
        boost::asio::post(*deps_.io, [this, lease, respond = std::move(respond)]() mutable {
          unmap_fenced(lease, std::move(respond));
        });
      });
  return {};
}

/// May unmap during a step, because no unit touches this memory after the fence.
void LeaseService::unmap_fenced(LeaseId lease, Responder respond) {
  if (grants_in_flight_.contains(lease)) return unmap_between_steps(lease, std::move(respond));
  boost::asio::post(deps_.unmapper, [this, lease, respond = std::move(respond)]() mutable {
    const bool unmapped = deps_.engine->unmap_lease(lease);
    if (unmapped) fault_point(FaultSite::WorkerExtentsUnmapped);
    boost::asio::post(*deps_.io, [this, lease, unmapped, respond = std::move(respond)]() mutable {
      if (!unmapped) return unmap_between_steps(lease, std::move(respond));
      extent_fds_.erase(lease);
      respond(empty_payload());
      deps_.loop->post([lease](Engine& engine) { engine.drop_lease(lease); });
    });
  });
}

/// Used for memory that the engine has not installed yet or is still loading.
void LeaseService::unmap_between_steps(LeaseId lease, Responder respond) {
  deps_.loop->post([this, lease, respond = std::move(respond)](Engine& engine) mutable {
    engine.drop_lease(lease);
    fault_point(FaultSite::WorkerExtentsUnmapped);
    boost::asio::post(*deps_.io, [this, lease, respond = std::move(respond)]() mutable {
      extent_fds_.erase(lease);
      respond(empty_payload());
    });
  });
}

Result<void> LeaseService::reclaim(const Json& body, Responder& respond) {
  const wire::LeaseReclaim request = TRY(wire::LeaseReclaim::from_json(body));
  deps_.loop->post([this, request, respond = std::move(respond)](Engine& engine) mutable {
    wire::ExtentsReclaimed given{
        .extents = engine.reclaim_extents(request.lease, request.count, request.pool)};
    boost::asio::post(*deps_.io, [this, lease = request.lease, given = std::move(given),
                                  respond = std::move(respond)]() mutable {
      for (const ExtentId extent : given.extents) extent_fds_[lease].erase(extent);
      respond(Payload{.body = given.to_json(), .fds = {}});
    });
  });
  return {};
}

Result<std::vector<LeaseService::Redelivery>> LeaseService::redeliveries() const {
  std::vector<Redelivery> redeliveries;
  for (const auto& [lease, objects] : extent_fds_) {
    for (const auto& [extent, object] : objects) {
      const bool fits = !redeliveries.empty() && redeliveries.back().message.lease == lease &&
                        redeliveries.back().fds.size() < kExtentsPerRedelivery;
      if (!fits) redeliveries.push_back({.message = {.lease = lease, .extents = {}}, .fds = {}});
      redeliveries.back().message.extents.push_back(extent);
      redeliveries.back().fds.push_back(TRY(object.duplicate()));
    }
  }
  return redeliveries;
}

void LeaseService::answer(Responder respond, Payload reply) {
  boost::asio::post(*deps_.io, [respond = std::move(respond), reply = std::move(reply)]() mutable {
    respond(std::move(reply));
  });
}

void LeaseService::on_growth_reply(const GrowthRequest& asked, const Result<void>& reply) {
  bool refused = false;
  {
    const std::scoped_lock lock(mutex_);
    refused = growth_calls_.end(asked.lease, reply, deps_.clock->now(), asked.pool);
  }
  const Errc why = reply ? Errc::PoolExhausted : reply.error().code;
  deps_.loop->post([asked, refused, why](Engine& engine) {
    if (refused) engine.deny_growth(asked, why);
  });
}

void LeaseService::grow(const std::vector<GrowthRequest>& growth_requests) {
  for (const GrowthRequest& growth : growth_requests) {
    {
      const std::scoped_lock lock(mutex_);
      if (!growth_calls_.begin(growth.lease, deps_.clock->now(), growth.pool)) continue;
    }
    // The rest is requested once these extents are mapped.
    const std::uint32_t extents =
        std::min((growth.blocks + deps_.blocks_per_extent - 1) / deps_.blocks_per_extent,
                 wire::kExtents.high);
    const wire::LeaseGrow request{.lease = growth.lease,
                                  .extents = extents,
                                  .pool = growth.pool,
                                  .request_id = {mint_request_id()}};
    deps_.broker->call_async(std::string(request.kMethod), {.body = request.to_json()},
                             [this, growth](const Result<Payload>& reply) {
                               on_growth_reply(
                                   growth, reply ? Result<void>{} : std::unexpected(reply.error()));
                             });
  }
}

/// A report that is lost with the connection is repeated; an error means that the lease has ended.
void LeaseService::report_drained(const std::vector<LeaseId>& leases) {
  for (const LeaseId lease : leases) {
    const wire::LeaseDrained report{.lease = lease};
    deps_.broker->call_async(std::string(report.kMethod), {.body = report.to_json()},
                             [](const Result<Payload>&) {});
  }
}

void LeaseService::repeat_drained() {
  deps_.loop->post([](Engine& engine) { engine.repeat_drained(); });
}

}  // namespace leasehold
