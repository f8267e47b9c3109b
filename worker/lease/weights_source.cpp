#include "worker/lease/weights_source.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "common/fault_point.hpp"
#include "common/random.hpp"
#include "worker/engine/gate_numbers.hpp"
#include "worker/engine/worker_gates.hpp"

namespace leasehold {
namespace {

constexpr Duration kTimeout = std::chrono::seconds(30);
constexpr int kRoomAttempts = 600;

Result<UniqueFd> only_descriptor(control::Payload reply, std::string_view method) {
  if (reply.fds.size() == 1) return std::move(reply.fds[0]);
  return fail(Errc::UntrustedSegment,
              fmt::format("the answer to {} does not have exactly one descriptor", method));
}

}  // namespace

Result<control::Payload> open_weights(BrokerLink& broker, const WeightsMemory& memory) {
  const wire::WeightsOpen request{.model = memory.model,
                                  .part = memory.part,
                                  .file_device = memory.file.device,
                                  .file_inode = memory.file.inode,
                                  .file_size_bytes = memory.file.size_bytes,
                                  .file_mtime_ns = memory.file.changed_ns(),
                                  .layout_digest = memory.layout_digest,
                                  .layout_version = kWeightsLayoutVersion,
                                  .size_bytes = memory.size_bytes,
                                  .request_id = {mint_request_id()}};
  return broker.call(std::string(request.kMethod), {.body = request.to_json()}, kTimeout);
}

Result<Weights> WeightsSource::acquire() {
  total_bytes_ = plan_->size_bytes();
  loading_.clear();
  loading_.resize(plan_->parts.size());
  revoked_.assign(plan_->parts.size(), {});
  while (const auto missing = first_missing_part()) {
    TRY(check_reloads(*missing));
    Result<Weights::MappedPart> mapped = load(plan_->parts[*missing]);
    if (mapped) {
      loading_[*missing] = *std::move(mapped);
    } else if (!may_load_again(*missing, mapped.error())) {
      return std::unexpected(std::move(mapped).error());
    }
  }
  TRY(model_.file().check_unchanged());  // parts published by another worker were not read here
  std::vector<Weights::MappedPart> mapped_parts;
  for (auto& part : std::exchange(loading_, {})) mapped_parts.push_back(*std::move(part));
  return Weights::bind(*plan_, *config_, std::move(mapped_parts));
}

std::optional<std::size_t> WeightsSource::first_missing_part() {
  give_up_revoked_parts();
  const auto missing =
      std::ranges::find(loading_, false, &std::optional<Weights::MappedPart>::has_value);
  if (missing == loading_.end()) return std::nullopt;
  return static_cast<std::size_t>(missing - loading_.begin());
}

void WeightsSource::give_up_revoked_parts() {
  for (const std::optional<Weights::MappedPart>& part : loading_) {
    if (!part || is_live(part->lease)) continue;
    const LeaseId lease = id_of(part->lease);
    unmap_loading(lease);
    give_up(lease);
  }
  // The callee of `poll` may be the first to see the revocation of a lease that a part here shares.
  if (deps_.poll) deps_.poll([this](LeaseId lease) { unmap_loading(lease); });
}

/// Unmaps the parts under this lease. This is safe, because no unit uses a part before all parts
/// are bound.
void WeightsSource::unmap_loading(LeaseId lease) {
  for (std::size_t i = 0; i < loading_.size(); ++i) {
    if (!loading_[i] || id_of(loading_[i]->lease) != lease) continue;
    loading_[i].reset();
    memory_attempts_left_ = kRoomAttempts;
    ++revoked_[i].count;
    revoked_[i].last = fmt::format("lease {} was revoked", to_string(lease));
  }
}

void WeightsSource::give_up(LeaseId lease) {
  memory_attempts_left_ = kRoomAttempts;
  if (deps_.unmap_elsewhere) deps_.unmap_elsewhere(lease);
  if (deps_.early_calls != nullptr) deps_.early_calls->unmapped(lease);
}

Result<Weights::MappedPart> WeightsSource::load(const WeightsPart& part) {
  opened_.reset();
  done_bytes_ = 0;
  for (std::size_t i = 0; i < loading_.size(); ++i)
    done_bytes_ += loading_[i] ? plan_->parts[i].layout.size_bytes : 0;
  return map_part(part, TRY(retry_while_loading(
                            [&] {
                              give_up_revoked_parts();
                              return open(part);
                            },
                            [this] { std::this_thread::sleep_for(deps_.retry_interval); })));
}

/// Limits the reloads, because the cause of the revocations may persist and each load reads the
/// part again.
Result<void> WeightsSource::check_reloads(std::size_t part) const {
  if (revoked_[part].count <= kMaxReloads) return {};
  return std::unexpected(
      Error{Errc::LeaseRevoked,
            fmt::format("the engine leases of part {} were revoked {} times before the worker was "
                        "ready, the last one: {}; find the reason with `brokerctl timeline LEASE` "
                        "or `brokerctl actions`, then start the worker again",
                        plan_->parts[part].name, revoked_[part].count, revoked_[part].last),
            FailureScope::Engine});
}

/// Returns true, after a pause, when the lease was revoked meanwhile or the broker has not yet
/// reclaimed the memory of an earlier lease.
bool WeightsSource::may_load_again(std::size_t part, const Error& why) {
  const bool is_revoked = is_lease_ended(why.code) || why.code == Errc::EngineLeaseFenced;
  if (is_revoked && opened_) give_up(*opened_);
  const bool awaits_room = why.code == Errc::PoolExhausted && memory_attempts_left_-- > 0;
  if (!is_revoked && !awaits_room) return false;
  if (is_revoked) {
    ++revoked_[part].count;
    revoked_[part].last = why.detail;
    spdlog::warn("weights are loaded again part={} error={} reason=\"{}\"", plan_->parts[part].name,
                 name(why.code), why.detail);
  }
  std::this_thread::sleep_for(deps_.retry_interval);
  return true;
}

Result<std::optional<WeightsSource::Restored>> WeightsSource::restore(Weights& weights) {
  const auto revoked_part = weights.first_revoked_part();
  if (!revoked_part) return std::nullopt;
  const WeightsPart& part = plan_->parts[*revoked_part];
  const LeaseId before = id_of(weights.leases()[*revoked_part]);
  // The old part is unmapped only after the fill: while a part is being filled, `lease.unmap` is
  // answered at once only if that call itself unmaps the memory.
  Result<Weights::MappedPart> fresh = open_again(part, [&] { (void)weights.unmap(before); });
  if (!fresh) {
    fresh.error().detail.insert(0, fmt::format("part {}: ", part.name));
    return std::unexpected(std::move(fresh).error());
  }
  TRY(weights.restore(*revoked_part, *std::move(fresh)));
  return Restored{.part = part.name, .from_copy = model_.is_copy()};
}

Result<Weights::MappedPart> WeightsSource::open_again(const WeightsPart& part,
                                                      const std::function<void()>& before_map) {
  (void)TRY(model_.find());
  done_bytes_ = 0;
  total_bytes_ = part.layout.size_bytes;
  return map_part(part, TRY(open(part)), before_map);
}

Result<Weights::MappedPart> WeightsSource::map_part(const WeightsPart& part, control::Payload reply,
                                                    const std::function<void()>& before_map) {
  const wire::WeightsOpened opened = TRY(wire::WeightsOpened::from_json(reply.body));
  opened_ = opened.lease;
  UniqueFd readable = TRY(only_descriptor(std::move(reply), wire::WeightsOpen::kMethod));
  const LeaseDependency lease = TRY(deps_.table->dependency(opened.lease));
  if (!opened.published) {
    readable = TRY(fill_and_publish(part, opened.region, lease, std::move(readable)));
  }
  before_map();
  LeasedMapping mapping =
      TRY(deps_.regions->map(std::move(readable), part.layout.size_bytes, MapAccess::ReadOnly));
  return Weights::MappedPart{.mapping = std::move(mapping), .lease = lease};
}

Result<control::Payload> WeightsSource::open(const WeightsPart& part) {
  return open_weights(*deps_.broker, {.model = config_->name,
                                      .part = part.name,
                                      .file = model_.identity(),
                                      .layout_digest = to_hex(part.layout.digest),
                                      .size_bytes = part.layout.size_bytes});
}

Result<UniqueFd> WeightsSource::fill_and_publish(const WeightsPart& part, RegionId region,
                                                 LeaseDependency lease, UniqueFd writable) {
  TRY(fill(part, lease, std::move(writable)));
  TRY(model_.confirm());
  fault_point(FaultSite::WorkerWeightsFilled);
  const wire::WeightsPublish request{.region = region, .request_id = {mint_request_id()}};
  control::Payload reply =
      TRY(deps_.broker->call(std::string(request.kMethod), {.body = request.to_json()}, kTimeout));
  return only_descriptor(std::move(reply), request.kMethod);
}

Result<void> WeightsSource::fill(const WeightsPart& part, LeaseDependency lease,
                                 UniqueFd writable) {
  if (deps_.place) deps_.place(writable, part.layout);
  const LeasedMapping region =
      TRY(deps_.regions->map(std::move(writable), part.layout.size_bytes, MapAccess::ReadWrite));
  NullRefusalListener listener;  // copy_weights returns a refusal
  GateSet gates(next_gate_number(), never_stopped_, listener);
  gates.add_engine_lease(lease);
  gates.add_sequence({});
  const auto progress = [this](std::uint64_t done_bytes, std::uint64_t) {
    give_up_revoked_parts();
    if (deps_.progress) deps_.progress(done_bytes_ + done_bytes, total_bytes_);
  };
  return copy_weights(model_.file(), part.layout,
                      {.region = &region, .gates = &gates, .backend = deps_.backend}, progress);
}

}  // namespace leasehold
