/// A feed-forward in int8 whose last group is not full.
#include <sys/mman.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <vector>

#include "tests/contract/backend/grouped_matrix.hpp"
#include "tests/contract/backend/rig.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kWidth = 256;
constexpr std::uint32_t kFfWidth = 500;  // the last group has four outputs
static_assert(kFfWidth % kGroupRows != 0);

/// A bias that ends with a page. Reading on is a SIGSEGV.
class GuardedBias {
 public:
  explicit GuardedBias(const std::vector<float>& values)
      : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))),
        first_(page_ - values.size() * sizeof(float)),
        memory_(2 * page_) {
    memory_.fill<float>(values, first_);
    REQUIRE(::mprotect(memory_.bytes() + page_, page_, PROT_NONE) == 0);
  }
  Leased<const float> at() const { return memory_.at(first_).as<const float>(); }

 private:
  std::size_t page_;
  std::size_t first_;
  LeasedMemory memory_;
};

struct NarrowFeedForward {
  NarrowFeedForward(SeededRandom& random, std::uint32_t rows)
      : n_rows(rows),
        gate(random, TensorType::Q8_0, kFfWidth, kWidth),
        up(random, TensorType::Q8_0, kFfWidth, kWidth),
        down(random, TensorType::F32, kWidth, kFfWidth),
        gate_bias(random_floats(random, kFfWidth)),
        up_bias(random_floats(random, kFfWidth)),
        x(random_floats(random, std::size_t{n_rows} * kWidth)) {}

  std::vector<float> on(Rig& rig) const {
    std::vector<float> wide_gate(std::size_t{n_rows} * kFfWidth);
    std::vector<float> wide_up(wide_gate.size());
    std::vector<float> out(x.size());
    const FeedForwardArgs args{.gate = {.site = LaunchSite::FfnGate,
                                        .weight = gate.view(),
                                        .x = x.data(),
                                        .out = wide_gate.data(),
                                        .bias = gate_bias.at()},
                               .up = {.site = LaunchSite::FfnUp,
                                      .weight = up.view(),
                                      .x = x.data(),
                                      .out = wide_up.data(),
                                      .bias = up_bias.at()},
                               .down = {.site = LaunchSite::FfnDown,
                                        .weight = down.view(),
                                        .x = wide_gate.data(),
                                        .out = out.data()}};
    run_step(rig, plain_rows(n_rows), [&](Backend& backend, const LaunchContext& context) {
      return backend.feed_forward(context, args);
    });
    out.insert(out.end(), wide_gate.begin(), wide_gate.end());
    return out;
  }

  std::uint32_t n_rows;
  GroupedMatrix gate;
  GroupedMatrix up;
  Matrix down;
  GuardedBias gate_bias;
  GuardedBias up_bias;
  std::vector<float> x;
};

}  // namespace

TEST_CASE("feed-forward: a bias is read to its end if the last group is not full") {
  const std::uint32_t threads = GENERATE(from_range(kEveryBackend));
  const std::uint32_t n_rows = GENERATE(1, 7, 16, 37);
  SeededRandom random(test_seed() + 2800);
  const NarrowFeedForward layer(random, n_rows);
  Rig rig(threads);
  Rig reference(0);
  CAPTURE(threads, n_rows, test_seed());
  REQUIRE(first_difference(layer.on(rig), layer.on(reference)) == -1);
}

TEST_CASE("feed-forward: wide products of any format have the reference's bits") {
  struct Formats {
    TensorType wide;
    TensorType down;
    std::uint32_t width;
  };
  const std::uint32_t threads = GENERATE(from_range(kWithCuda));
  const auto formats = GENERATE(Formats{TensorType::Q8_0, TensorType::Q8_0, 1056},
                                Formats{TensorType::Q4_K, TensorType::Q6_K, 768},
                                Formats{TensorType::Q4_K, TensorType::Q5_1, 544});
  const std::uint32_t n_rows = GENERATE(1, 8, 9);
  CAPTURE(threads, n_rows, formats.width, test_seed());
  const auto run = [&](std::uint32_t backend_threads) {
    SeededRandom random(test_seed() + 2900);
    const GroupedMatrix gate(random, formats.wide, formats.width, kWidth);
    const GroupedMatrix up(random, formats.wide, formats.width, kWidth);
    const GroupedMatrix down(random, formats.down, kWidth, formats.width);
    const std::vector<float> x = random_floats(random, std::size_t{n_rows} * kWidth);
    LeasedMemory gain(kWidth * sizeof(float));
    gain.fill<float>(random_floats(random, kWidth));
    std::vector<float> normed(x.size());
    std::vector<float> wide_gate(std::size_t{n_rows} * formats.width);
    std::vector<float> wide_up(wide_gate.size());
    std::vector<float> out(x.size());
    const RmsNormArgs norm{.site = LaunchSite::FfnNorm,
                           .x = x.data(),
                           .weight = gain.at().as<const float>(),
                           .out = normed.data(),
                           .width = kWidth,
                           .epsilon = 1e-5F};
    const FeedForwardArgs args{
        .norm = &norm,
        .gate = {LaunchSite::FfnGate, gate.view(), normed.data(), wide_gate.data()},
        .up = {LaunchSite::FfnUp, up.view(), normed.data(), wide_up.data()},
        .down = {LaunchSite::FfnDown, down.view(), wide_gate.data(), out.data()},
        .activation = Activation::GeGlu};
    Rig rig(backend_threads);
    run_step(rig, plain_rows(n_rows), [&](Backend& backend, const LaunchContext& context) {
      return backend.feed_forward(context, args);
    });
    return out;
  };
  REQUIRE(first_difference(run(threads), run(0)) == -1);
}

}  // namespace leasehold::testing
