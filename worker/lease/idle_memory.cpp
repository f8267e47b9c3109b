#include "worker/lease/idle_memory.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <utility>

namespace leasehold {

void IdleMemory::note(LeaseId lease) {
  const std::scoped_lock lock(mutex_);
  idle_.insert(lease);
}

bool IdleMemory::take(LeaseId lease) {
  const std::scoped_lock lock(mutex_);
  return idle_.erase(lease) != 0;
}

void IdleMemory::fill(LeaseId lease, std::vector<MemoryObject> objects) {
  if (deps_.table->word_of(lease).state() == LeaseState::Fenced) return;
  filling_.insert(lease);
  boost::asio::post(deps_.mapper, [this, lease, objects = std::move(objects)]() mutable {
    make_pages(lease, objects);
    boost::asio::post(*deps_.io, [this, lease] { filling_.erase(lease); });
  });
}

/// Without pages the units make them, so an error delays the request and ends nothing.
void IdleMemory::make_pages(LeaseId lease, std::vector<MemoryObject>& objects) const {
  Result<void> done;
  for (const MemoryObject& object : objects)
    if (auto made = make_present(object); !made) done = std::move(made);
  // Read after the pages were made: if the lease is not fenced yet, the broker's punch comes later.
  if (deps_.table->word_of(lease).state() == LeaseState::Fenced) {
    for (MemoryObject& object : objects)
      if (auto punched = object.punch(); !punched) done = std::move(punched);
  }
  if (done) return;
  spdlog::warn("could not fill the first memory of a lease lease={} error={} detail=\"{}\"",
               to_string(lease), name(done.error().code), done.error().detail);
}

}  // namespace leasehold
