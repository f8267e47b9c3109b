#include "worker/lease/lease_service.hpp"

#include <fmt/format.h>

#include <boost/asio/post.hpp>

#include "common/fault_point.hpp"
#include "common/random.hpp"

namespace leasehold {
namespace {

using control::Json;
using control::Payload;
using control::Responder;

constexpr TimePoint kNever{INT64_MAX};
constexpr Duration kAfterRefusal = std::chrono::milliseconds(50);
constexpr std::size_t kExtentsPerDelivery = 60;

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

Payload empty_payload() {
  return {.body = wire::Empty{}.to_json()};
}

}  // namespace

void LeaseService::on_call(const std::string& method, Payload params, Responder respond) {
  Result<void> done = fail(Errc::UnknownMethod, fmt::format("a worker does not know '{}'", method));
  if (method == wire::LeaseGrant::kMethod) {
    done = grant(std::move(params), respond);
  } else if (method == wire::LeaseUnmap::kMethod) {
    done = unmap(params.body, respond);
  } else if (method == wire::LeaseSettle::kMethod) {
    done = settle(params.body, respond);
  } else if (method == wire::LeaseReclaim::kMethod) {
    done = reclaim(params.body, respond);
  }
  if (!done) respond(std::unexpected(done.error()));
}

Result<void> LeaseService::grant(Payload params, Responder& respond) {
  wire::LeaseGrant grant = TRY(wire::LeaseGrant::from_json(params.body));
  TRY(keep_objects(grant, params.fds));
  ++grants_in_flight_[grant.lease];
  boost::asio::post(parts_.mapper, [this, grant = std::move(grant), fds = std::move(params.fds),
                                    respond = std::move(respond)]() mutable {
    auto mapped = map_all(*parts_.regions, grant, std::move(fds));
    fault_point(FaultSite::WorkerExtentsMapped);
    boost::asio::post(*parts_.io, [this, done = Granted{std::move(grant), std::move(respond),
                                                        std::move(mapped)}]() mutable {
      granted(std::move(done));
    });
  });
  return {};
}

/// Before anything is mapped: a broker that is started again meanwhile is brought these as well.
Result<void> LeaseService::keep_objects(const wire::LeaseGrant& grant,
                                        const std::vector<UniqueFd>& fds) {
  if (fds.size() != grant.extents.size()) {
    return fail(Errc::BadRequest, fmt::format("{} extents were announced, {} descriptors came",
                                              grant.extents.size(), fds.size()));
  }
  std::vector<UniqueFd> kept;
  for (const UniqueFd& fd : fds) kept.push_back(TRY(fd.duplicate()));
  for (std::size_t i = 0; i < kept.size(); ++i) {
    objects_[grant.lease][grant.extents[i]] = std::move(kept[i]);
  }
  return {};
}

void LeaseService::granted(Granted granted) {
  if (!granted.mapped) {
    for (const ExtentId extent : granted.grant.extents) objects_[granted.grant.lease].erase(extent);
    grant_arrived(granted.grant.lease);
    return granted.respond(std::unexpected(granted.mapped.error()));
  }
  parts_.loop->post([this, grant = std::move(granted.grant), mapped = std::move(*granted.mapped),
                     respond = std::move(granted.respond)](Engine& engine) mutable {
    if (!engine.scheduler().knows(grant.lease)) {
      engine.add_lease({.lease = grant.lease,
                        .tenant = grant.tenant,
                        .max_concurrent = grant.max_concurrent,
                        .max_blocks = grant.max_blocks});
    } else {
      engine.set_quota(grant.lease, grant.max_concurrent, grant.max_blocks);
    }
    for (std::size_t i = 0; i < mapped.size(); ++i) {
      engine.add_extent(grant.lease, grant.extents[i], std::move(mapped[i]));
    }
    boost::asio::post(*parts_.io, [this, lease = grant.lease] { grant_arrived(lease); });
    answer(std::move(respond), empty_payload());
  });
}

void LeaseService::grant_arrived(LeaseId lease) {
  const auto found = grants_in_flight_.find(lease);
  if (--found->second == 0) grants_in_flight_.erase(found);
}

/// The answer is evidence, so it waits for the last launch and not for the order to stop.
Result<void> LeaseService::settle(const Json& body, Responder& respond) {
  const wire::LeaseSettle ask = TRY(wire::LeaseSettle::from_json(body));
  if (parts_.table->word_of(ask.lease).state() == LeaseState::Live) {
    return fail(Errc::IllegalTransition,
                fmt::format("lease {} is live; its launches go on", to_string(ask.lease)));
  }
  auto settled = [this, respond = std::move(respond)]() mutable {
    answer(std::move(respond), empty_payload());
  };
  if (parts_.settle) {
    parts_.settle(ask.lease, std::move(settled));
  } else {
    parts_.loop->post([settled = std::move(settled)](Engine&) mutable { settled(); });
  }
  return {};
}

Result<void> LeaseService::unmap(const Json& body, Responder& respond) {
  const wire::LeaseUnmap ask = TRY(wire::LeaseUnmap::from_json(body));
  if (parts_.table->word_of(ask.lease).state() != LeaseState::Fenced) {
    return fail(Errc::IllegalTransition, fmt::format("lease {} is not fenced; its memory stays "
                                                     "mapped",
                                                     to_string(ask.lease)));
  }
  forget_growth(ask.lease);
  if (!grants_in_flight_.contains(ask.lease)) {
    unmap_fenced(ask.lease, std::move(respond));
    return {};
  }
  // Behind the grant, which may still be with the mapper.
  boost::asio::post(
      parts_.mapper, [this, lease = ask.lease, respond = std::move(respond)]() mutable {
        boost::asio::post(*parts_.io, [this, lease, respond = std::move(respond)]() mutable {
          unmap_fenced(lease, std::move(respond));
        });
      });
  return {};
}

/// At once, whatever step is running: the fence says that no unit touches this memory.
void LeaseService::unmap_fenced(LeaseId lease, Responder respond) {
  if (grants_in_flight_.contains(lease)) return unmap_between_steps(lease, std::move(respond));
  boost::asio::post(parts_.unmapper, [this, lease, respond = std::move(respond)]() mutable {
    const bool unmapped = parts_.engine->unmap_fenced(lease);
    if (unmapped) fault_point(FaultSite::WorkerExtentsUnmapped);
    boost::asio::post(*parts_.io, [this, lease, unmapped, respond = std::move(respond)]() mutable {
      if (!unmapped) return unmap_between_steps(lease, std::move(respond));
      objects_.erase(lease);
      respond(empty_payload());
      parts_.loop->post([lease](Engine& engine) { engine.drop_lease(lease); });
    });
  });
}

/// For what is still on its way to the engine, or is being loaded by it.
void LeaseService::unmap_between_steps(LeaseId lease, Responder respond) {
  parts_.loop->post([this, lease, respond = std::move(respond)](Engine& engine) mutable {
    engine.drop_lease(lease);
    fault_point(FaultSite::WorkerExtentsUnmapped);
    boost::asio::post(*parts_.io, [this, lease, respond = std::move(respond)]() mutable {
      objects_.erase(lease);
      respond(empty_payload());
    });
  });
}

Result<void> LeaseService::reclaim(const Json& body, Responder& respond) {
  const wire::LeaseReclaim ask = TRY(wire::LeaseReclaim::from_json(body));
  parts_.loop->post([this, ask, respond = std::move(respond)](Engine& engine) mutable {
    wire::ExtentsReclaimed given{.extents = engine.reclaim_extents(ask.lease, ask.count)};
    boost::asio::post(*parts_.io, [this, lease = ask.lease, given = std::move(given),
                                   respond = std::move(respond)]() mutable {
      for (const ExtentId extent : given.extents) objects_[lease].erase(extent);
      respond(Payload{.body = given.to_json(), .fds = {}});
    });
  });
  return {};
}

Result<std::vector<LeaseService::Delivery>> LeaseService::deliveries() const {
  std::vector<Delivery> deliveries;
  for (const auto& [lease, objects] : objects_) {
    for (const auto& [extent, object] : objects) {
      const bool fits = !deliveries.empty() && deliveries.back().message.lease == lease &&
                        deliveries.back().fds.size() < kExtentsPerDelivery;
      if (!fits) deliveries.push_back({.message = {.lease = lease, .extents = {}}, .fds = {}});
      deliveries.back().message.extents.push_back(extent);
      deliveries.back().fds.push_back(TRY(object.duplicate()));
    }
  }
  return deliveries;
}

void LeaseService::answer(Responder respond, Payload reply) {
  boost::asio::post(*parts_.io, [respond = std::move(respond), reply = std::move(reply)]() mutable {
    respond(std::move(reply));
  });
}

bool LeaseService::may_ask(LeaseId lease) {
  const std::scoped_lock lock(mutex_);
  const auto [entry, first] = not_before_.try_emplace(lease, kNever);
  if (first) return true;
  if (parts_.clock->now() < entry->second) return false;
  entry->second = kNever;
  return true;
}

void LeaseService::forget_growth(LeaseId lease) {
  const std::scoped_lock lock(mutex_);
  not_before_.erase(lease);
}

/// A broker that is gone has refused nothing: whoever waits for memory waits on, and asks again.
void LeaseService::answered(LeaseId lease, const Result<Payload>& reply) {
  const bool away = !reply && reply.error().code == Errc::ConnectionLost;
  {
    const std::scoped_lock lock(mutex_);
    if (reply) {
      not_before_.erase(lease);
    } else {
      not_before_[lease] = parts_.clock->now() + kAfterRefusal;
    }
  }
  parts_.loop->post([lease, denied = !reply && !away](Engine& engine) {
    if (denied) engine.deny_growth(lease);
  });
}

void LeaseService::grow(const std::vector<GrowthRequest>& wishes) {
  for (const GrowthRequest& wish : wishes) {
    if (!may_ask(wish.lease)) continue;
    const std::uint32_t extents =
        (wish.blocks + parts_.blocks_per_extent - 1) / parts_.blocks_per_extent;
    const wire::LeaseGrow ask{
        .lease = wish.lease, .extents = extents, .request_id = {mint_request_id()}};
    broker_->call_async(
        std::string(ask.kMethod), {.body = ask.to_json()},
        [this, lease = wish.lease](const Result<Payload>& reply) { answered(lease, reply); });
  }
}

}  // namespace leasehold
