/// Where an engine's weights come from: a region of the broker, filled once and shared from then
/// on.
///
///   weights.open → published already:  map read-only, bind
///                → not yet:            map writable, fill through the door, unmap, close,
///                                      weights.publish, map read-only, bind
///
/// Blocking; on the engine's thread, while the engine runs nothing.
#pragma once

#include "ipc/table/table_reader.hpp"
#include "worker/lease/broker_link.hpp"
#include "worker/model/weights.hpp"

namespace leasehold {

class WeightsSource {
 public:
  struct Parts {
    BrokerLink* broker = nullptr;
    const TableReader* table = nullptr;
    Backend* backend = nullptr;
    LoadProgress progress;
  };
  WeightsSource(const GgufFile& file, const ModelConfig& config, const WeightsLayout& layout,
                Parts parts)
      : file_(&file), config_(&config), layout_(&layout), parts_(std::move(parts)) {}

  /// Weights under a fresh engine lease. Waits, bounded, while another worker fills the region.
  /// Errors: those of the calls above, FileNotFound …, EngineLeaseFenced.
  Result<Weights> acquire();

 private:
  Result<control::Payload> open();
  Result<UniqueFd> fill_and_publish(RegionId region, LeaseDependency lease, UniqueFd writable);
  Result<void> fill(LeaseDependency lease, UniqueFd writable);

  const GgufFile* file_;
  const ModelConfig* config_;
  const WeightsLayout* layout_;
  Parts parts_;
  StopBoard never_stopped_;  // no cancel of a request reaches a load
  std::uint64_t loads_ = 0;  // gate sets of loads are numbered apart from steps
};

}  // namespace leasehold
