/// Where an engine's weights come from: regions of the broker, one for each part, filled once and
/// shared from then on.
///
///   weights.open → published already:  map read-only, bind
///                → not yet:            map writable, fill through the door, unmap, close,
///                                      weights.publish, map read-only, bind
///
/// Parts come one after the other, so there is never more than one unpublished region per worker,
/// and two workers that load the same model share the work instead of waiting for each other.
///
/// A part that was taken back comes back alone, the bytes of all others stay where they are. When
/// there is another model file under the path by then, the part is read from that one, if its
/// tensors have the same types and shapes.
///
/// Blocking; on the engine's thread, while the engine runs nothing.
#pragma once

#include <optional>

#include "ipc/region/region_mapper.hpp"
#include "ipc/table/table_reader.hpp"
#include "worker/lease/broker_link.hpp"
#include "worker/model/weights.hpp"

namespace leasehold {

class WeightsSource {
 public:
  struct Dependencies {
    BrokerLink* broker = nullptr;
    const TableReader* table = nullptr;
    Backend* backend = nullptr;
    LoadProgress progress;
    const RegionMapper* regions = &host_mapper();  ///< For the memory this broker lends.
  };
  WeightsSource(const GgufFile& file, const ModelConfig& config, const WeightsPlan& plan,
                Dependencies dependencies)
      : file_(&file), config_(&config), plan_(&plan), deps_(std::move(dependencies)) {}

  /// All parts, each under a fresh engine lease. Waits while another worker fills one.
  /// Errors: those of the calls above, FileNotFound …, EngineLeaseFenced.
  Result<Weights> acquire();

  struct Restored {
    std::string part;
    bool from_replaced_file = false;  ///< Than the one the worker was started with.
  };
  /// The first part that is down, and no other, so that whoever calls can look after other things
  /// between two of them. Nothing when none is down.
  /// Errors: WeightsLoading, EngineLeaseFenced, LeaseRevoked: ask again; MissingWeight when the
  /// file now under the path does not fit; those of `acquire`.
  Result<std::optional<Restored>> restore(Weights& weights);

 private:
  Result<Weights::MappedPart> map_part(const WeightsPart& part, control::Payload reply);
  Result<control::Payload> open(const WeightsPart& part);
  Result<control::Payload> open_with_retry(const WeightsPart& part);
  Result<UniqueFd> fill_and_publish(const WeightsPart& part, RegionId region, LeaseDependency lease,
                                    UniqueFd writable);
  Result<void> fill(const WeightsPart& part, LeaseDependency lease, UniqueFd writable);
  Result<void> reopen_replaced_file(const WeightsPart& part);
  const GgufFile& file() const { return replacement_ ? *replacement_ : *file_; }

  const GgufFile* file_;
  std::optional<GgufFile> replacement_;  // of file_, once there was another under its path
  const ModelConfig* config_;
  const WeightsPlan* plan_;
  Dependencies deps_;
  StopFlags never_stopped_;       // no cancel of a request reaches a load
  std::uint64_t loads_ = 0;       // gate sets of loads are numbered apart from steps
  std::uint64_t done_bytes_ = 0;  // of this acquire, for progress
  std::uint64_t total_bytes_ = 0;
};

}  // namespace leasehold
