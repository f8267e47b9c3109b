/// Gets an engine's weights from the broker. Each part is a region that one worker fills and all
/// workers share.
///
///   weights.open → published:  map read-only, bind
///                → not yet:    map writable, fill through the gate, unmap, close,
///                              weights.publish, map read-only, bind
///
/// Parts are opened one after the other, so that a worker has at most one unpublished region, and
/// workers that load the same model share the work.
///
/// A revoked part is restored alone; the other parts stay mapped. The restored part has the content
/// with which the worker started, even if the model file was replaced or rewritten meanwhile
/// (VerifiedModel).
///
/// When an engine lease is revoked during the load, the part is unmapped and opened again under a
/// new lease, at most `kMaxReloads` times.
///
/// Calls block. Threads: the engine's, between steps.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ipc/region/region_mapper.hpp"
#include "ipc/table/table_reader.hpp"
#include "kernels/model/gguf/verified_model.hpp"
#include "worker/lease/broker_link.hpp"
#include "worker/lease/early_calls.hpp"
#include "worker/model/weights.hpp"
#include "worker/model/weights_placement.hpp"

namespace leasehold {

/// Identifies the memory of one part of a model file in `weights.open`.
struct WeightsMemory {
  std::string model;
  std::string part;
  FileIdentity file;
  std::string layout_digest;
  std::uint64_t size_bytes = 0;
};

/// Acquires an engine lease on this memory. Errors: the broker's answer, TimedOut, ConnectionLost.
Result<control::Payload> open_weights(BrokerLink& broker, const WeightsMemory& memory);

class WeightsSource {
 public:
  static constexpr std::uint32_t kMaxReloads = 8;  ///< Limit for one part in one `acquire`.

  struct Dependencies {
    BrokerLink* broker = nullptr;
    const TableReader* table = nullptr;
    Backend* backend = nullptr;
    LoadProgress progress;
    const RegionMapper* regions = &host_mapper();  ///< Maps the memory that the broker lends.
    /// Called before a region is filled. Empty: memory is not placed on nodes.
    PlaceWeights place = {};
    /// Notified when `acquire` has unmapped a revoked lease; may be null.
    EarlyCalls* early_calls = nullptr;
    /// Unmaps other memory of this process under a revoked lease, before `early_calls` is notified:
    /// a draft model from the same file shares the model's lease. May be empty.
    std::function<void(LeaseId)> unmap_elsewhere = {};
    /// Called for every piece that is read and at every retry, so that the caller can unmap other
    /// revoked memory during a load. The callee passes a revoked lease to `unmap` before it reports
    /// that lease's memory as unmapped. May be empty.
    std::function<void(const std::function<void(LeaseId)>& unmap)> poll = {};
    Duration retry_interval = std::chrono::milliseconds(100);
  };
  WeightsSource(const GgufFile& file, const ModelConfig& config, const WeightsPlan& plan,
                Dependencies dependencies)
      : model_(file), config_(&config), plan_(&plan), deps_(std::move(dependencies)) {}

  /// Sets the digest of the file. Without a digest `restore` accepts only the unchanged file.
  void pin_content(const ContentDigest& content) { model_.pin(content); }

  /// Gets all parts, each under a new engine lease. Waits while another worker fills a part. Waits
  /// at most a minute for the broker to reclaim the memory of a lease that was revoked meanwhile.
  /// Errors: those of the calls above; FileCorrupt when the file was written since it was opened;
  /// LeaseRevoked, with engine scope, when the leases of one part were revoked more than
  /// `kMaxReloads` times.
  Result<Weights> acquire();

  struct Restored {
    std::string part;
    bool from_copy = false;  ///< The part was read from another file with the same content.
  };
  /// Restores the first revoked part and no other, so that the caller can run commands between two
  /// parts. The part is unmapped before it is mapped again, so that locked memory counts once.
  /// Returns nothing when no part is revoked.
  /// Errors, all naming the part: WeightsLoading, EngineLeaseFenced, LeaseRevoked, which are
  /// temporary; MissingWeight when the file has another content; those of GgufFile::open and
  /// `acquire`.
  Result<std::optional<Restored>> restore(Weights& weights);

 private:
  std::optional<std::size_t> first_missing_part();
  void give_up_revoked_parts();
  void unmap_loading(LeaseId lease);
  void give_up(LeaseId lease);
  Result<Weights::MappedPart> load(const WeightsPart& part);
  Result<void> check_reloads(std::size_t part) const;
  bool may_load_again(std::size_t part, const Error& why);
  /// Calls `before_map` once the region is filled.
  Result<Weights::MappedPart> map_part(
      const WeightsPart& part, control::Payload reply,
      const std::function<void()>& before_map = [] {});
  Result<control::Payload> open(const WeightsPart& part);
  Result<UniqueFd> fill_and_publish(const WeightsPart& part, RegionId region, LeaseDependency lease,
                                    UniqueFd writable);
  Result<void> fill(const WeightsPart& part, LeaseDependency lease, UniqueFd writable);
  Result<Weights::MappedPart> open_again(const WeightsPart& part,
                                         const std::function<void()>& before_map);

  VerifiedModel model_;
  const ModelConfig* config_;
  const WeightsPlan* plan_;
  Dependencies deps_;
  StopFlags never_stopped_;       // requests cannot stop a load
  std::uint64_t done_bytes_ = 0;  // in the current call, for progress
  std::uint64_t total_bytes_ = 0;
  // parts that `acquire` has mapped, by index
  std::vector<std::optional<Weights::MappedPart>> loading_;
  struct Revoked {
    std::uint32_t count = 0;
    std::string last;  // description of the last revocation
  };
  std::vector<Revoked> revoked_;   // by part, in `acquire`
  std::optional<LeaseId> opened_;  // lease opened by the last `map_part`
  int memory_attempts_left_ = 0;   // set anew when a revoked lease is unmapped
};

/// Repeats a call while another worker loads the weights, without a limit on the time.
///
/// WeightsLoading means that the loading worker runs and holds its lease. When that worker ends,
/// the broker removes its region, and the next call starts a load here; when the broker ends, the
/// call fails. Any limit would be too short for some larger model.
///
/// `call()` returns a Result; `wait()` pauses between two calls. Errors: those of `call` except
/// WeightsLoading.
template <class Call, class Wait>
auto retry_while_loading(Call&& call, Wait&& wait) {
  while (true) {
    auto reply = call();
    if (reply || reply.error().code != Errc::WeightsLoading) return reply;
    wait();
  }
}

}  // namespace leasehold
