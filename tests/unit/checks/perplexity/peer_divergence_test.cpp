#include "tests/checks/perplexity/peer_divergence.hpp"

#include <catch2/catch.hpp>

#include "tests/support/test_paths.hpp"
#include "tests/unit/checks/perplexity/fake_peer.hpp"

namespace leasehold {
namespace {

constexpr const char* kModel = "leasehold-stories-q8_0";
constexpr std::uint32_t kWindow = 24;

std::string text_path() {
  return source_dir() + "/tests/data/texts/story.txt";
}

std::string text() {
  std::ifstream file(text_path());
  return {std::istreambuf_iterator<char>(file), {}};
}

testing::PeerFile peer_file(KvType kv_type, Arithmetic arithmetic) {
  testing::PeerFile file =
      testing::computed_file(bundled_model_path(), text(), kWindow, kv_type, arithmetic);
  return file;
}

PeerDivergenceConfig config(const testing::FakePeer& peer) {
  return {.peer_dir = peer.directory.path(),
          .model_paths = {bundled_model_path()},
          .text_path = text_path(),
          .window = kWindow};
}

FileDivergence only_file(const PeerDivergenceConfig& measured) {
  const auto divergence = testing::required(measure_peer_divergence(measured, {}));
  REQUIRE(divergence.files.size() == 1);
  CHECK(divergence.files.front().file == kModel);
  return divergence.files.front();
}

Error error_of(const PeerDivergenceConfig& measured) {
  const FileDivergence file = only_file(measured);
  REQUIRE(file.error);
  return *file.error;
}

}  // namespace

TEST_CASE("peer divergence: a peer that predicts what we do has our divergence, to the last bit") {
  const testing::FakePeer peer;
  peer.prepare(kModel, peer_file(KvType::F16, Arithmetic::Int8));
  const FileDivergence file = only_file(config(peer));
  REQUIRE_FALSE(file.error);
  CHECK(file.positions % (kWindow / 2 - 1) == 0);
  CHECK(file.positions > kWindow);
  CHECK(file.peer == file.ours);
  CHECK(file.difference_error == 0);
  CHECK(file.ours > 1e-4);
  CHECK(file.ours == Approx(file.ours_exact).epsilon(0.05));
}

TEST_CASE("peer divergence: a peer that computes as the reference is far nearer than int8") {
  const testing::FakePeer peer;
  peer.prepare(kModel, peer_file(KvType::F32, Arithmetic::F32));
  const FileDivergence file = only_file(config(peer));
  CHECK(file.peer >= 0);
  CHECK(file.peer < kCodeStep * kCodeStep);  // the codes alone
  CHECK(file.ours > 100 * file.peer);
  CHECK(file.difference_error > 0);
  CHECK(file.difference_error < file.ours);
}

TEST_CASE("peer divergence: positions that are one off are far from the reference") {
  const testing::FakePeer peer;
  testing::PeerFile file = peer_file(KvType::F16, Arithmetic::Int8);
  std::ranges::rotate(file.rows, file.rows.begin() + 1);
  peer.prepare(kModel, file);
  CHECK(only_file(config(peer)).peer > 0.1);
}

TEST_CASE("peer divergence: the peer gets the same file, text, window, threads and KV type") {
  const testing::FakePeer peer;
  peer.prepare(kModel, peer_file(KvType::F16, Arithmetic::Int8));
  PeerDivergenceConfig measured = config(peer);
  measured.windows = 3;
  only_file(measured);
  CHECK(peer.arguments().starts_with("--version\n-m " + bundled_model_path() + " -f " +
                                     text_path() +
                                     " -c 24 -t 1 -ngl 0 -ctk f16 -ctv f16 --kl-divergence-base "));
  CHECK(peer.arguments().ends_with(" --chunks 3\n"));
  CHECK(testing::required(measure_peer_divergence(measured, {})).version == "fake 7");
}

TEST_CASE("peer divergence: the error of a file is in its row, and the next file is compared") {
  const testing::FakePeer peer;
  peer.prepare(kModel, peer_file(KvType::F16, Arithmetic::Int8));
  PeerDivergenceConfig measured = config(peer);
  measured.model_paths.insert(measured.model_paths.begin(), "/nowhere/lost.gguf");
  const auto divergence = testing::required(measure_peer_divergence(measured, {}));
  REQUIRE(divergence.files.size() == 2);
  CHECK(divergence.files[0].error->code == Errc::FileNotFound);
  CHECK_FALSE(divergence.files[1].error);
}

TEST_CASE("peer divergence: windows that do not fit, and a peer that fails, are errors") {
  const testing::FakePeer peer;
  PeerDivergenceConfig measured = config(peer);
  SECTION("window") {
    for (const std::uint32_t window : {3u, 1u << 20}) {
      measured.window = window;
      CHECK(error_of(measured).code == Errc::BadRequest);
    }
  }
  SECTION("short text") {
    measured.text_path = peer.directory.file("text");
    std::ofstream(measured.text_path) << "Once upon a time";
    CHECK(error_of(measured).code == Errc::BadRequest);
    CHECK(error_of(measured).detail.find("longer text") != std::string::npos);
  }
  SECTION("the peer exits with an error") {
    CHECK(error_of(measured).code == Errc::ConnectionLost);
  }
  SECTION("the peer writes nothing") {
    peer.write_program("#!/bin/sh\necho 'version: 1'\n");
    CHECK(error_of(measured).code == Errc::FileNotFound);
  }
  SECTION("the peer uses another window") {
    peer.prepare(kModel, testing::computed_file(bundled_model_path(), text(), kWindow + 2,
                                                KvType::F16, Arithmetic::Int8));
    CHECK(error_of(measured).code == Errc::FileCorrupt);
  }
  SECTION("the peer is missing, or does not print a version") {
    measured.peer_dir = "/nowhere";
    CHECK(measure_peer_divergence(measured, {}).error().code == Errc::FileNotFound);
    peer.write_program("#!/bin/sh\nexit 0\n");
    measured.peer_dir = peer.directory.path();
    CHECK(measure_peer_divergence(measured, {}).error().code == Errc::MalformedMessage);
  }
}

}  // namespace leasehold
