/// Gets an engine's weights: regions of the broker, one for each part, filled by one worker and
/// shared by all.
///
///   weights.open → published:  map read-only, bind
///                → not yet:    map writable, fill through the gate, unmap, close,
///                              weights.publish, map read-only, bind
///
/// Parts are opened one after the other. So a worker has at most one unpublished region, and two
/// workers that load the same model share the work.
///
/// A revoked part is restored alone; the other parts stay mapped. It has the content that the
/// worker started with, also when the model file was replaced or rewritten meanwhile
/// (VerifiedModel).
///
/// An engine lease that is revoked during the load is given up, and its part is opened again, at
/// most `kMaxReloads` times.
///
/// Blocks; runs on the engine's thread between steps.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ipc/region/region_mapper.hpp"
#include "ipc/table/table_reader.hpp"
#include "worker/gguf/verified_model.hpp"
#include "worker/lease/broker_link.hpp"
#include "worker/lease/early_calls.hpp"
#include "worker/model/weights.hpp"
#include "worker/model/weights_placement.hpp"

namespace leasehold {

/// The memory of a part of a model file, as `weights.open` asks for it.
struct WeightsMemory {
  std::string model;
  std::string part;
  FileIdentity file;
  std::string layout_digest;
  std::uint64_t size_bytes = 0;
};

/// Takes an engine lease on it. Errors: the broker's answer, TimedOut, ConnectionLost.
Result<control::Payload> open_weights(BrokerLink& broker, const WeightsMemory& memory);

class WeightsSource {
 public:
  static constexpr std::uint32_t kMaxReloads = 8;  ///< Of one part, in one `acquire`.

  struct Dependencies {
    BrokerLink* broker = nullptr;
    const TableReader* table = nullptr;
    Backend* backend = nullptr;
    LoadProgress progress;
    const RegionMapper* regions = &host_mapper();  ///< For the memory this broker lends.
    PlaceWeights place = {};            ///< Called before a region is filled. Empty: one node.
    EarlyCalls* early_calls = nullptr;  ///< Learns what `acquire` has unmapped; may be null.
    /// Unmaps what else this process has under a revoked lease, before `early_calls` learns of it:
    /// a draft of the same file shares the model's lease. May be null.
    std::function<void(LeaseId)> unmap_elsewhere = {};
    /// Called at every piece that is read and at every retry, so that the caller can unmap other
    /// revoked memory during a load. It calls `unmap` with a revoked lease before it announces that
    /// the memory of the lease is unmapped. May be empty.
    std::function<void(const std::function<void(LeaseId)>& unmap)> poll = {};
    Duration retry_interval = std::chrono::milliseconds(100);
  };
  WeightsSource(const GgufFile& file, const ModelConfig& config, const WeightsPlan& plan,
                Dependencies dependencies)
      : model_(file), config_(&config), plan_(&plan), deps_(std::move(dependencies)) {}

  /// The digest of the file. Without it `restore` accepts no file but the unchanged one.
  void pin_content(const ContentDigest& content) { model_.pin(content); }

  /// Gets all parts, each under a new engine lease. Waits while another worker fills one, and for
  /// the memory of a lease that was revoked meanwhile, at most a minute.
  /// Errors: those of the calls above; FileCorrupt when the file was written since it was opened;
  /// LeaseRevoked, of the worker, when the leases of one part were revoked more than `kMaxReloads`
  /// times.
  Result<Weights> acquire();

  struct Restored {
    std::string part;
    bool from_copy = false;  ///< Another file of the same content is at the path by now.
  };
  /// Restores the first revoked part and no other, so that the caller can run commands between two
  /// parts. The part is unmapped before it is mapped again, so that locked memory counts once.
  /// Returns nothing when no part is revoked.
  /// Errors, all naming the part: WeightsLoading, EngineLeaseFenced, LeaseRevoked, which pass;
  /// MissingWeight when the file has another content; those of GgufFile::open and `acquire`.
  Result<std::optional<Restored>> restore(Weights& weights);

 private:
  std::optional<std::size_t> first_missing_part();
  void give_up_revoked_parts();
  void unmap_loading(LeaseId lease);
  void give_up(LeaseId lease);
  Result<Weights::MappedPart> load(const WeightsPart& part);
  Result<void> check_reloads(std::size_t part) const;
  bool may_load_again(std::size_t part, const Error& why);
  /// Calls `before_map` once all bytes are there.
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
  std::uint64_t done_bytes_ = 0;  // of this call, for progress
  std::uint64_t total_bytes_ = 0;
  std::vector<std::optional<Weights::MappedPart>> loading_;  // what `acquire` has mapped, by part
  struct Revoked {
    std::uint32_t count = 0;
    std::string last;  // what is known of the last one
  };
  std::vector<Revoked> revoked_;   // of each part, in `acquire`
  std::optional<LeaseId> opened_;  // by the last `map_part`
  int room_attempts_left_ = 0;     // since a lease was given up
};

}  // namespace leasehold
