#include "broker/memory/host_memory.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <iterator>
#include <utility>

#include "common/fault_point.hpp"
#include "common/machine/process.hpp"

namespace leasehold {
namespace {

/// Clears extents by punching them: punched pages read as zero.
ExtentsCleared punched_entries(const ExtentObjects& extents) {
  ExtentsCleared cleared;
  for (const ExtentObject& extent : extents) {
    const auto punched = extent.object ? extent.object->punch() : Result<void>{};
    cleared.entries.push_back(
        {.extent = extent.id, .refused = punched ? std::nullopt : std::optional(punched.error())});
  }
  return cleared;
}

}  // namespace

HostMemory::HostMemory(boost::asio::io_context& io, MemoryStore& store) : io_(io), store_(store) {
  boost::asio::post(scrubber_, [] { set_thread_name("scrubber"); });
  boost::asio::post(clearer_, [] { set_thread_name("clearer"); });
  boost::asio::post(counter_, [] { set_thread_name("counter"); });
}

HostMemory::~HostMemory() {
  punch_collected();
  scrubber_.join();
}

void HostMemory::clear_ahead(std::uint32_t count, std::size_t size_bytes) {
  clear_count_ = count;
  clear_size_bytes_ = size_bytes;
  auto surplus = store_.take_surplus(count, size_bytes);
  if (!surplus.empty()) boost::asio::post(clearer_, [surplus = std::move(surplus)] {});
  clear_next();
}

/// Clears one object at a time, so that each is available to grants as soon as it is ready.
void HostMemory::clear_next() {
  if (is_clearing_ || store_.cleared_objects() >= clear_count_) return;
  is_clearing_ = true;
  boost::asio::post(clearer_, [this, size_bytes = clear_size_bytes_] {
    boost::asio::post(io_, [this, object = cleared_object(size_bytes)]() mutable {
      add_cleared(std::move(object));
    });
  });
}

void HostMemory::add_cleared(Result<MemoryObject> object) {
  is_clearing_ = false;
  if (!object) {
    spdlog::warn("could not clear memory ahead of grants error={} detail=\"{}\"",
                 name(object.error().code), object.error().detail);
    clear_count_ = 0;
    return;
  }
  const bool is_wanted =
      object->size_bytes() == clear_size_bytes_ && store_.cleared_objects() < clear_count_;
  if (is_wanted) store_.add_cleared(*std::move(object));
  clear_next();
}

void HostMemory::count_touched(std::move_only_function<void()> then) {
  boost::asio::post(counter_, [this, objects = store_.objects(), then = std::move(then)]() mutable {
    boost::asio::post(io_,
                      [this, bytes = touched_bytes(objects), then = std::move(then)]() mutable {
                        store_.set_touched_bytes(bytes);
                        then();
                      });
  });
}

void HostMemory::lend(std::vector<ExtentId> extents, std::size_t, OnFds on_fds) {
  on_fds(store_.extents_for_worker(extents));
}

void HostMemory::punch(std::span<const ExtentId> extents) {
  if (to_punch_.empty()) boost::asio::post(io_, [this] { punch_collected(); });
  std::ranges::move(store_.objects_of(extents), std::back_inserter(to_punch_));
}

void HostMemory::punch_collected() {
  if (to_punch_.empty()) return;
  boost::asio::post(scrubber_, [objects = std::exchange(to_punch_, {})] {
    if (const auto punched = leasehold::punch(objects); !punched) {
      spdlog::error("could not punch extents error={} detail=\"{}\"", name(punched.error().code),
                    punched.error().detail);
    }
    fault_point(FaultSite::BrokerScrubbed);
  });
}

template <class Task>
void HostMemory::scrub_in_order(Task task) {
  punch_collected();
  boost::asio::post(scrubber_, std::move(task));
}

void HostMemory::after_punches(std::move_only_function<void()> then) {
  scrub_in_order(
      [this, then = std::move(then)]() mutable { boost::asio::post(io_, std::move(then)); });
}

void HostMemory::clear(std::vector<ExtentId> extents, OnCleared on_cleared) {
  scrub_in_order([this, objects = store_.objects_of(extents),
                  on_cleared = std::move(on_cleared)]() mutable {
    boost::asio::post(
        io_, [cleared = punched_entries(objects), on_cleared = std::move(on_cleared)]() mutable {
          on_cleared(std::move(cleared));
        });
  });
}

void HostMemory::verify(Verification request, OnVerified on_verified) {
  scrub_in_order([this, objects = store_.objects_to_return(request.extents),
                  close_anyway = request.close_anyway,
                  on_verified = std::move(on_verified)]() mutable {
    boost::asio::post(io_, [this, verified = leasehold::verify(objects), close_anyway,
                            on_verified = std::move(on_verified)]() mutable {
      store_.close(verified, close_anyway);
      on_verified(std::move(verified));
    });
  });
}

void HostMemory::create_region(RegionId region, std::size_t size_bytes, OnDone on_done) {
  const auto created = store_.create_region(region, size_bytes);
  on_done(created ? std::nullopt : std::optional(created.error()));
}

void HostMemory::scrub_region(RegionId region, OnScrubbed on_scrubbed) {
  boost::asio::post(scrubber_, [this, region, object = store_.region_object(region),
                                on_scrubbed = std::move(on_scrubbed)]() mutable {
    boost::asio::post(io_, [this, region, allocated_bytes = scrub(object),
                            on_scrubbed = std::move(on_scrubbed)]() mutable {
      if (allocated_bytes == 0) store_.close_region(region);
      on_scrubbed(allocated_bytes);
    });
  });
}

/// Closing the last descriptor frees the pages, so the scrubber thread closes it.
void HostMemory::close_region(RegionId region) {
  auto object = store_.region_object(region);
  store_.close_region(region);
  boost::asio::post(scrubber_, [object = std::move(object)] {});
}

const UniqueFd* HostMemory::keepable_fd(RegionId region) const {
  const auto object = store_.region_object(region);
  return object ? &object->fd() : nullptr;
}

}  // namespace leasehold
