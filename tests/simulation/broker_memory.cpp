// The memory that the broker lends: scrubbed by its other thread, and verified.
#include "common/expects.hpp"
#include "tests/simulation/adapters/adapter_judge.hpp"
#include "tests/simulation/model_broker.hpp"

namespace leasehold::simulation {

bool Broker::scrub() {
  if (scrubs_.empty()) return false;
  const auto work = std::move(scrubs_.front());
  scrubs_.pop_front();
  work();
  return true;
}

void Broker::perform(const effect::ClearExtents& effect) {
  ensures(device_ != nullptr, "memory of the machine is punched, not cleared");
  clear(effect.extents);
}

void Broker::perform(const effect::PunchExtents& effect) {
  ensures(!device_ || effect.pool == MemoryPool::Swap, "memory of a card is not punched");
  scrubs_.push_back([this, extents = effect.extents] {
    for (const ExtentId extent : extents) {
      const bool is_of_adapter = deps_.adapters->is_of_adapter(extent);
      if (is_of_adapter && deps_.planted_bugs.adapter_not_scrubbed) continue;
      deps_.judge.punched(extent);
      deps_.adapters->punched(extent);
    }
    deps_.machine.reach(FaultSite::BrokerScrubbed, *this);
  });
}

void Broker::perform(const effect::VerifyExtents& effect) {
  if (device_ && effect.pool == MemoryPool::Kv) return verify(effect);
  too_late_.insert(effect.extents.begin(), effect.extents.end());
  scrubs_.push_back([this, effect] {
    ExtentsVerified verified;
    for (const ExtentId extent : effect.extents) {
      if (deps_.planted_bugs.adapter_not_scrubbed && deps_.adapters->is_of_adapter(extent)) {
        verified.entries.push_back({extent, 0, true});
        continue;
      }
      const std::uint64_t bytes = deps_.judge.verified(extent, effect.close_anyway);
      verified.entries.push_back({extent, bytes, bytes == 0 || effect.close_anyway});
    }
    receive(std::move(verified));
  });
}

void Broker::perform(const effect::CreateRegion& effect) {
  std::optional<Error> refused;
  if (disk_full_ || deps_.machine.one_in(32)) refused = Error{Errc::OutOfMemory, "no memory"};
  if (device_ && !refused) return create_on_device(effect);
  receive(RegionLent{effect.lease, refused});
}

void Broker::perform(const effect::ShareRegion& effect) {
  std::optional<Error> refused;
  if (disk_full_) refused = Error{Errc::DiskFull, "no room"};
  receive(RegionLent{effect.lease, refused});
}

void Broker::perform(const effect::SealRegion& effect) {
  std::optional<Error> refused;
  if (!device_ && deps_.machine.one_in(8)) refused = Error{Errc::StillWritable, "mapped"};
  if (device_) {
    if (const auto sealed = device_->seal_region(effect.region); !sealed) refused = sealed.error();
  }
  if (!refused) deps_.persistent.regions.insert(effect.region);
  receive(RegionSealed{effect.region, refused});
}

void Broker::perform(const effect::ScrubRegion& effect) {
  if (device_) {
    return device_->scrub_region(effect.region, [this, region = effect.region](auto allocated) {
      receive(RegionScrubbed{region, allocated});
    });
  }
  scrubs_.push_back([this, region = effect.region] {
    const bool tainted = deps_.machine.one_in(2);  // the loader wrote after it had unmapped
    receive(RegionScrubbed{region, tainted ? 4096u : 0u});
  });
}

void Broker::perform(const effect::CloseRegion& effect) {
  if (device_) device_->close_region(effect.region);
  deps_.persistent.regions.erase(effect.region);
}

}  // namespace leasehold::simulation
