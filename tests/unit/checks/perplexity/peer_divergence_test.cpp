#include "tests/checks/perplexity/peer_divergence.hpp"

#include <catch2/catch.hpp>

#include "tests/support/test_paths.hpp"
#include "tests/unit/checks/perplexity/peer_file.hpp"

namespace leasehold {
namespace {

constexpr std::uint32_t kWindow = 24;

std::string story() {
  std::ifstream file(source_dir() + "/tests/data/texts/story.txt");
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A model and what its peer wrote.
struct Subject {
  TemporaryDirectory directory = TemporaryDirectory::create("peer-divergence").value();
  PerplexityConfig config{.model_path = bundled_model_path(),
                          .text = story(),
                          .window = kWindow,
                          .reference_kv_type = KvType::F32,
                          .arithmetic = Arithmetic::Int8};

  void write(const testing::PeerFile& file) const { file.write(directory.file("logits")); }
  Result<FileDivergence> compared() const {
    return compare_with_peer(config, directory.file("logits"));
  }
  Error error() const {
    const auto divergence = compared();
    REQUIRE_FALSE(divergence);
    return divergence.error();
  }
};

testing::PeerFile peer_file(KvType kv_type, Arithmetic arithmetic, std::uint32_t window = kWindow) {
  return testing::computed_file(bundled_model_path(), story(), window, kv_type, arithmetic);
}

}  // namespace

TEST_CASE("peer divergence: a peer that predicts what we do has our divergence, to the last bit") {
  const Subject subject;
  subject.write(peer_file(KvType::F16, Arithmetic::Int8));
  const FileDivergence file = testing::required(subject.compared());
  CHECK(file.positions % (kWindow / 2 - 1) == 0);
  CHECK(file.positions > kWindow);
  CHECK(file.peer == file.ours);
  CHECK(file.difference_error == 0);
  CHECK(file.ours > 1e-4);
  CHECK(file.ours == Approx(file.ours_exact).epsilon(0.05));
}

TEST_CASE("peer divergence: a peer that computes as the reference is far nearer than int8") {
  const Subject subject;
  subject.write(peer_file(KvType::F32, Arithmetic::F32));
  const FileDivergence file = testing::required(subject.compared());
  CHECK(file.peer >= 0);
  CHECK(file.peer < kCodeStep * kCodeStep);  // the codes alone
  CHECK(file.ours > 100 * file.peer);
  CHECK(file.difference_error > 0);
  CHECK(file.difference_error < file.ours);
}

TEST_CASE("peer divergence: the window's context decides about the divisors, as in the peer") {
  Subject subject;
  subject.config.model_path = test_data_path("models-2026/tiny-phi3-short-f32.gguf");
  subject.config.arithmetic = Arithmetic::F32;
  const auto peer_in = [&](std::uint32_t context) {
    subject.write(testing::computed_file(subject.config.model_path, story(), kWindow, KvType::F32,
                                         Arithmetic::F32, context));
    return testing::required(subject.compared()).peer;
  };
  CHECK(peer_in(256) < kCodeStep * kCodeStep);
  CHECK(peer_in(8192) > 0.1);  // beyond the original context of 4096
}

TEST_CASE("peer divergence: positions that are one off are far from the reference") {
  const Subject subject;
  testing::PeerFile file = peer_file(KvType::F16, Arithmetic::Int8);
  std::ranges::rotate(file.rows, file.rows.begin() + 1);
  subject.write(file);
  CHECK(testing::required(subject.compared()).peer > 0.1);
}

TEST_CASE("peer divergence: windows that do not fit, and files of others, are errors") {
  Subject subject;
  SECTION("window") {
    for (const std::uint32_t window : {3u, 1u << 20}) {
      subject.config.window = window;
      CHECK(subject.error().code == Errc::BadRequest);
      CHECK(check_peer_window(subject.config).error().code == Errc::BadRequest);
    }
  }
  SECTION("short text") {
    subject.config.text = "Once upon a time";
    CHECK(subject.error().code == Errc::BadRequest);
    CHECK(subject.error().detail.contains("longer text"));
  }
  SECTION("no model, or no file of the peer") {
    CHECK(check_peer_window(subject.config));
    CHECK(subject.error().code == Errc::FileNotFound);
    subject.config.model_path = "/nowhere/lost.gguf";
    CHECK(subject.error().code == Errc::FileNotFound);
  }
  SECTION("the peer used another window") {
    subject.write(peer_file(KvType::F16, Arithmetic::Int8, kWindow + 2));
    CHECK(subject.error().code == Errc::FileCorrupt);
  }
}

}  // namespace leasehold
