#include "common/machine/cpu_set.hpp"

#include <catch2/catch.hpp>
#include <latch>
#include <string>
#include <thread>

#include "common/result.hpp"

namespace leasehold {
namespace {

CpuSet cpus(const std::string& list) {
  return CpuSet::parse(list).value();
}

}  // namespace

TEST_CASE("cpu set: numbers and ranges name cores") {
  CHECK(cpus("0-2,5").contains(cpus("1,5")));
  CHECK_FALSE(cpus("0-2,5").contains(cpus("3")));
  CHECK(cpus("0-2").without(cpus("0-1")).contains(cpus("2")));
  CHECK(cpus("0-2").without(cpus("0-7")).empty());
  CHECK(cpus("0-2,5,5").count() == 4);
  CHECK(CpuSet().count() == 0);
  CHECK(cpus("0-2,5").has(5));
  CHECK_FALSE(cpus("0-2,5").has(4));
  CHECK_FALSE(cpus("0").has(CPU_SETSIZE));
  CHECK(cpus("0-2,5").common_with(cpus("2-6")).count() == 2);
  CHECK(cpus("0-2,5").common_with(cpus("2-6")).has(5));
  CHECK(cpus("0-2").joined_with(cpus("2-4")).count() == 5);
}

TEST_CASE("cpu set: an invalid list is rejected, and the error names the bad part") {
  for (const std::string list : {"", "1,", "x", "2-1", "1-", "-1", "0 ", "1024", "0-99999999999"}) {
    INFO(list);
    const auto parsed = CpuSet::parse(list);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().code == Errc::BadRequest);
  }
  CHECK(CpuSet::parse("0,x").error().detail.find("\"x\"") != std::string::npos);
}

TEST_CASE("cpu set: cores are usable that exist, also while the thread is pinned to others") {
  const CpuSet all = CpuSet::of_this_thread();
  int first = 0;
  while (!all.contains(cpus(std::to_string(first)))) ++first;
  const ScopedCpuAffinity pinned(cpus(std::to_string(first)));
  CHECK(all.is_usable());
  CHECK_FALSE(cpus("1023").is_usable());
  CHECK_FALSE(cpus(std::to_string(first) + ",1023").is_usable());
  CHECK(cpus(std::to_string(first)).contains(CpuSet::of_this_thread()));
}

TEST_CASE("cpu set: another thread of this process is pinned") {
  const CpuSet all = CpuSet::of_this_thread();
  int first = 0;
  while (!all.has(static_cast<std::uint32_t>(first))) ++first;
  std::latch pinned(1);
  CpuSet there;
  std::thread other([&] {
    pinned.wait();
    there = CpuSet::of_this_thread();
  });
  CHECK(cpus("1023").pin_thread(other.native_handle()).error().code == Errc::SystemError);
  CHECK(cpus(std::to_string(first)).pin_thread(other.native_handle()));
  pinned.count_down();
  other.join();
  CHECK(there.count() == 1);
  CHECK(there.has(static_cast<std::uint32_t>(first)));
  CHECK(CpuSet::of_this_thread().contains(all));
}

TEST_CASE("cpu set: a thread is pinned for a scope and restored afterwards") {
  const CpuSet before = CpuSet::of_this_thread();
  const CpuSet none_here = cpus("1023");
  CHECK(none_here.pin_this_thread().error().code == Errc::SystemError);
  int first = 0;
  while (!before.contains(cpus(std::to_string(first)))) ++first;
  {
    const ScopedCpuAffinity here(cpus(std::to_string(first)));
    CHECK(cpus(std::to_string(first)).contains(CpuSet::of_this_thread()));
  }
  CHECK(CpuSet::of_this_thread().contains(before));
  const ScopedCpuAffinity anywhere{CpuSet()};
  CHECK(CpuSet::of_this_thread().contains(before));
}

}  // namespace leasehold
