#include "broker/memory/disk_thread.hpp"

#include <catch2/catch.hpp>
#include <future>
#include <vector>

namespace leasehold::testing {

TEST_CASE("disk thread: it does the work that was posted, in order, before it ends") {
  std::vector<int> done;
  {
    DiskThread disk(std::chrono::minutes(10));
    for (int i = 0; i < 5; ++i) disk.post([&done, i] { done.push_back(i); });
  }
  CHECK(done == std::vector{0, 1, 2, 3, 4});
}

TEST_CASE("disk thread: its owner does not wait for a disk that hangs") {
  const auto hung = std::make_shared<std::promise<void>>();
  const auto ended = std::make_shared<std::promise<void>>();
  std::promise<void> began;
  {
    DiskThread disk(std::chrono::milliseconds(1));
    disk.post([hung, ended, &began] {
      began.set_value();
      hung->get_future().wait();
      ended->set_value();
    });
    began.get_future().wait();
  }
  hung->set_value();
  ended->get_future().wait();
}

}  // namespace leasehold::testing
