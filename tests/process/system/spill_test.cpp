/// Requests whose blocks go to a file on disk and back, with real processes; also when the file is
/// damaged meanwhile.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>

#include "tests/support/lease_streams.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kSpillRequests = 8;
constexpr std::uint32_t kSpillText = 480;  // 31 blocks and one for the record

/// Swap for less than all victims have, whose blocks are large, and a spill directory.
struct SpillSystem {
  explicit SpillSystem(const std::string& worker_fault = {})
      : system{{.broker_arguments = {"--swap-capacity", "4MiB", "--spill-dir", directory.path(),
                                     "--spill-capacity", "32MiB"},
                // With slow rows, swapping is also cheaper on a machine that stalls.
                .worker_arguments = {"--log-level", "debug", "--kv-type", "f32", "--arithmetic",
                                     "f32"},
                .worker_fault = worker_fault}} {
    system.admit("calm", {"--ttl-ms", "600000"});
    system.admit("long", {"--ttl-ms", "600000"});
    system.admit("tight", {"--ttl-ms", "600000", "--max-blocks", "102"});
    calm = std::make_unique<LeaseStreams>(system, "calm");
    tight = std::make_unique<LeaseStreams>(system, "tight");
    for (std::uint32_t i = 0; i < kSpillRequests; ++i) calm->submit(i, kSpillText);
    measure_rows();
    calm->wait_for_ends(kSpillRequests);
    REQUIRE(calm->preemptions == 0);
    // They begin together, so that those that wait have more blocks than swap.
    system.while_worker_stopped([this] {
      for (std::uint32_t i = 0; i < kSpillRequests; ++i) tight->submit(i, kSpillText);
    });
  }

  /// A long prompt beside streams: its many rows show that a row costs more than its copy.
  void measure_rows() {
    std::string prompt;
    for (int i = 0; i < 20; ++i) prompt += "One day a girl went to the park with her mother. ";
    const auto tenant = system.start_tenant({.tenant = "long", .prompt = prompt, .max_tokens = 2});
    REQUIRE(eventually([&] {
      calm->read_arrived();
      return tenant->read();
    }));
    const int code = tenant->finish();
    INFO(tenant->record().failed.value_or("it did not fail"));
    REQUIRE(code == 0);
  }
  std::size_t logged(std::string_view what) const { return count_of(system.worker_log(), what); }
  /// Waits until the worker has stopped, which leaves what it sent to be read.
  void wait_for_stop() {
    const bool has_stopped = eventually([&] {
      tight->read_arrived();
      return is_stopped(system.worker().pid());
    });
    INFO(system.worker_log());
    REQUIRE(has_stopped);
  }
  /// The worker's descriptor of the nameless file.
  std::string path_of_file() {
    const std::string folder = "/proc/" + std::to_string(system.worker().pid()) + "/fd";
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::error_code ignored;
      const std::string target = std::filesystem::read_symlink(entry.path(), ignored);
      if (target.starts_with(directory.path().string())) return entry.path();
    }
    throw std::runtime_error("the worker has no spill file");
  }

  void check_texts() {
    tight->wait_for_ends(kSpillRequests);
    for (const auto& [number, end] : tight->ends) {
      const auto& got = tight->tokens[number];
      const auto& expected = calm->tokens[number];
      const auto differs = std::ranges::mismatch(got, expected).in1 - got.begin();
      CAPTURE(number, got.size(), expected.size(), differs);
      CHECK(end == "MaxTokensReached");
      CHECK((got == expected));
    }
  }

  TemporaryDirectory directory = TemporaryDirectory::create("spill").value();
  System system;
  std::unique_ptr<LeaseStreams> calm;
  std::unique_ptr<LeaseStreams> tight;
};

}  // namespace

TEST_CASE_METHOD(SpillSystem, "spill: requests that went to the file and back get the same text") {
  check_texts();
  INFO(system.worker_log());
  CHECK(tight->swaps > 0);
  CHECK(logged("request spilled ") > 0);
  CHECK(logged("returned from the spill file") > 0);
  CHECK(logged("error=FileCorrupt") == 0);
  CHECK(system.status().spill_capacity_bytes == 32u << 20);
  CHECK(system.status().spill_lent_bytes == 16u << 20);
  system.remove_worker("w1");
  CHECK(eventually([&] { return system.status().spill_lent_bytes == 0; }));
}

TEST_CASE("spill: a file that was cut off or changed is read as damaged") {
  SpillSystem spill("worker.spill.read:stop");
  const bool cuts = GENERATE(true, false);
  CAPTURE(cuts);
  spill.wait_for_stop();  // before the worker reads the first block
  const std::string path = spill.path_of_file();
  const auto size = std::filesystem::file_size(path);
  REQUIRE(::truncate(path.c_str(), 0) == 0);
  if (!cuts) REQUIRE(::truncate(path.c_str(), static_cast<off_t>(size)) == 0);
  REQUIRE(spill.system.worker().signal(SIGCONT));
  spill.check_texts();
  INFO(spill.system.worker_log());
  CHECK(spill.logged("error=FileCorrupt") > 0);
}

}  // namespace leasehold::testing
