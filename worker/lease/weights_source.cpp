#include "worker/lease/weights_source.hpp"

#include <fmt/format.h>

#include <thread>

#include "common/fault_point.hpp"
#include "common/random.hpp"
#include "ipc/region/memory_object.hpp"

namespace leasehold {
namespace {

constexpr Duration kTimeout = std::chrono::seconds(30);
constexpr int kOpenAttempts = 600;
constexpr auto kOpenPause = std::chrono::milliseconds(100);
// Steps count from 1 up; loads from here, so a gate never takes one for the other.
constexpr std::uint64_t kFirstLoad = std::uint64_t{1} << 63;

/// Nobody is told of refusals during a load: fill_weights answers for them.
class SilentListener final : public RefusalListener {
 public:
  void refused(const Refusal&) noexcept override {}
  void quiet_progress() noexcept override {}
};

}  // namespace

Result<Weights> WeightsSource::acquire() {
  control::Payload reply = TRY(open());
  const wire::WeightsOpened opened = TRY(wire::WeightsOpened::from_json(reply.body));
  if (reply.fds.size() != 1) {
    return fail(Errc::UntrustedSegment, "weights.open came without its one descriptor");
  }
  const LeaseDependency lease = TRY(parts_.table->dependency(opened.lease));
  UniqueFd readable = std::move(reply.fds[0]);
  if (!opened.published) {
    readable = TRY(fill_and_publish(opened.region, lease, std::move(readable)));
  }
  const MemoryObject object = TRY(MemoryObject::adopt(std::move(readable)));
  LeasedMapping mapping =
      TRY(LeasedMapping::map(object.fd(), object.size_bytes(), MapAccess::ReadOnly));
  TRY(mapping.prefault());
  return Weights::bind(std::move(mapping), *layout_, *config_, lease);
}

Result<control::Payload> WeightsSource::open() {
  const FileIdentity file = file_->identity();
  wire::WeightsOpen ask{.model = config_->name,
                        .file_device = file.device,
                        .file_inode = file.inode,
                        .file_size_bytes = file.size_bytes,
                        .file_mtime_ns = file.mtime_ns,
                        .layout_digest = to_hex(layout_->digest),
                        .layout_version = kWeightsLayoutVersion,
                        .size_bytes = layout_->size_bytes,
                        .request_id = {}};
  for (int attempt = 1;; ++attempt) {
    ask.request_id = {mint_request_id()};
    auto reply = parts_.broker->call(std::string(ask.kMethod), {.body = ask.to_json()}, kTimeout);
    const bool loading = !reply && reply.error().code == Errc::WeightsLoading;
    if (!loading || attempt == kOpenAttempts) return reply;
    std::this_thread::sleep_for(kOpenPause);
  }
}

Result<UniqueFd> WeightsSource::fill_and_publish(RegionId region, LeaseDependency lease,
                                                 UniqueFd writable) {
  TRY(fill(lease, std::move(writable)));
  fault_point(FaultSite::WorkerWeightsFilled);
  const wire::WeightsPublish ask{.region = region, .request_id = {mint_request_id()}};
  control::Payload reply =
      TRY(parts_.broker->call(std::string(ask.kMethod), {.body = ask.to_json()}, kTimeout));
  if (reply.fds.size() != 1) {
    return fail(Errc::UntrustedSegment, "weights.publish came without its one descriptor");
  }
  return std::move(reply.fds[0]);
}

Result<void> WeightsSource::fill(LeaseDependency lease, UniqueFd writable) {
  const MemoryObject object = TRY(MemoryObject::adopt(std::move(writable)));
  if (object.size_bytes() < layout_->size_bytes) {
    return fail(Errc::UntrustedSegment,
                fmt::format("the broker's region has {} bytes, the weights need {}",
                            object.size_bytes(), layout_->size_bytes));
  }
  const LeasedMapping region =
      TRY(LeasedMapping::map(object.fd(), object.size_bytes(), MapAccess::ReadWrite));
  SilentListener listener;
  GateSet gates(kFirstLoad + ++loads_, never_stopped_, listener);
  gates.add_engine_lease(lease);
  gates.add_sequence({});
  return fill_weights(*file_, *layout_, region, gates, *parts_.backend, parts_.progress);
}

}  // namespace leasehold
