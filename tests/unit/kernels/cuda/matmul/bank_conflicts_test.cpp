/// Counts the bank conflicts of the int8 kernels in shared memory, from the addresses of their
/// loads.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <tuple>

#include "kernels/cuda/device/int8/early_params.hpp"
#include "tests/support/simt/runner.hpp"
#include "tests/unit/kernels/cuda/matmul/matmul_fixture.hpp"

namespace leasehold::testing {
namespace {

constexpr unsigned kLanes = 32;
constexpr std::size_t kWordBytes = 4;
constexpr std::size_t kBanks = 32;

/// The loads of one instruction of a warp, by lane.
struct WarpLoad {
  std::size_t size_bytes = 0;
  std::map<unsigned, std::uintptr_t> address_of_lane;

  /// The most accesses of a bank. A card serves as many lanes at once as load 128 bytes, and
  /// lanes that load the same word share an access.
  std::size_t accesses() const {
    const unsigned at_once = static_cast<unsigned>(kBanks * kWordBytes / size_bytes);
    std::map<std::pair<unsigned, std::size_t>, std::set<std::uintptr_t>> words_of_bank;
    for (const auto& [lane, address] : address_of_lane)
      for (std::uintptr_t word = address / kWordBytes; word < (address + size_bytes) / kWordBytes;
           ++word)
        words_of_bank[{lane / at_once, word % kBanks}].insert(word);
    std::size_t most = 0;
    for (const auto& [bank, words] : words_of_bank) most = std::max(most, words.size());
    return most;
  }
};

/// Collects the loads of a launch while it lives. Lanes of a warp run the same instructions, so the
/// n-th loads of all lanes belong together.
class LoadWatch {
 public:
  LoadWatch() {
    simt::set_block_hook([this](std::uint64_t) {
      ++block_;
      count_of_thread_.clear();
    });
    simt::set_load_hook([this](unsigned thread, const std::byte* at, std::size_t size_bytes) {
      WarpLoad& load = loads_[{block_, thread / kLanes, count_of_thread_[thread]++}];
      REQUIRE((load.size_bytes == 0 || load.size_bytes == size_bytes));
      load.size_bytes = size_bytes;
      load.address_of_lane[thread % kLanes] = reinterpret_cast<std::uintptr_t>(at);
    });
  }
  LoadWatch(const LoadWatch&) = delete;
  LoadWatch& operator=(const LoadWatch&) = delete;
  ~LoadWatch() {
    simt::set_block_hook({});
    simt::set_load_hook({});
  }

  std::size_t count() const { return loads_.size(); }
  std::size_t most_accesses() const {
    std::size_t most = 0;
    for (const auto& [key, load] : loads_) most = std::max(most, load.accesses());
    return most;
  }

 private:
  using Key = std::tuple<std::uint64_t, unsigned, std::size_t>;  // block, warp, number of the load
  std::uint64_t block_ = 0;
  std::map<unsigned, std::size_t> count_of_thread_;
  std::map<Key, WarpLoad> loads_;
};

}  // namespace

TEST_CASE("cuda int8 matmul: no load of weights or of x has a bank conflict, in any format") {
  SeededRandom random(33);
  for (const TensorType type : kInt8Types)
    for (const std::uint32_t n_rows : device::kInt8Columns) {
      const DeviceMatrix weight(random, type, 16, 2 * block_shape(type).elements);
      MatmulCall call = {.weight = &weight,
                         .is_grouped = true,
                         .x = random_floats(random, std::size_t{n_rows} * weight.n_in)};
      const LoadWatch watch;
      (void)run_matmul(call);
      CAPTURE(name(type), n_rows);
      CHECK(watch.count() >= 2);
      CHECK(watch.most_accesses() == 1);
    }
}

TEST_CASE("cuda early matmul: no load has a bank conflict, from the ring or from normed rows") {
  SeededRandom random(34);
  for (const TensorType type : kInt8Types)
    for (const std::uint32_t n_rows : device::kEarlyColumns)
      for (const bool has_norm : {false, true}) {
        const DeviceMatrix weight(random, type, 16, 2 * block_shape(type).elements);
        MatmulCall call = {.weight = &weight,
                           .is_grouped = true,
                           .x = random_floats(random, std::size_t{n_rows} * weight.n_in)};
        if (has_norm) call.norm_weight = random_floats(random, weight.n_in);
        const LoadWatch watch;
        (void)run_matmul(call, {.card = {.max_shared_bytes = 227 * 1024, .starts_early = true}});
        CAPTURE(name(type), n_rows, has_norm);
        CHECK(watch.count() >= 2);
        CHECK(watch.most_accesses() == 1);
      }
}

}  // namespace leasehold::testing
