#include "tests/checks/perplexity/peer_logits.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/unit/checks/perplexity/peer_file.hpp"

namespace leasehold {
namespace {

/// Two windows of six tokens, each with two positions, of a vocabulary of three.
testing::PeerFile small_file() {
  testing::PeerFile file{.window = 6, .n_vocab = 3, .windows = 2};
  file.tokens = {1, 0, 2, 2, 1, 0, 2, 1, 1, 0, 0, 2};
  for (const double first : {0.5, 0.4, 0.3, 0.2})
    file.rows.push_back(
        encode_odds(std::vector{std::log(first), std::log(0.9 - first), std::log(0.1)}));
  return file;
}

class Written {
 public:
  explicit Written(const std::string& bytes) { std::ofstream(path(), std::ios::binary) << bytes; }
  explicit Written(const testing::PeerFile& file) : Written(file.bytes()) {}
  std::string path() const { return folder_.file("logits"); }
  Error error() const {
    const auto opened = PeerLogits::open(path());
    REQUIRE_FALSE(opened);
    return opened.error();
  }

 private:
  TemporaryDirectory folder_ = TemporaryDirectory::create("logits").value();
};

}  // namespace

TEST_CASE("peer logits: a file is its counts, its tokens and its positions in order") {
  const Written written(small_file());
  PeerLogits logits = testing::required(PeerLogits::open(written.path()));
  CHECK(logits.window() == 6);
  CHECK(logits.n_vocab() == 3);
  CHECK(logits.windows() == 2);
  CHECK(logits.first_position() == 3);
  CHECK(logits.positions() == 2);
  const auto second = logits.tokens(1);
  CHECK(std::vector<TokenId>(second.begin(), second.end()) ==
        std::vector<TokenId>{2, 1, 1, 0, 0, 2});
  for (const double first : {0.5, 0.4, 0.3, 0.2}) {
    const auto log_p = testing::required(logits.next());
    REQUIRE(log_p.size() == 3);
    CHECK(std::exp(log_p[0]) == Approx(first).epsilon(1e-3));
    CHECK(std::exp(log_p[1]) == Approx(0.9 - first).epsilon(1e-3));
    CHECK(std::exp(log_p[2]) == Approx(0.1).epsilon(1e-3));
  }
}

TEST_CASE("peer logits: a file that was cut off or is longer says its size and the size it needs") {
  const std::string whole = small_file().bytes();
  for (const std::size_t size : {whole.size() - 1, std::size_t{30}, std::size_t{20}}) {
    const Error error = Written(whole.substr(0, size)).error();
    CHECK(error.code == Errc::FileCorrupt);
    CHECK(error.detail.find("has " + std::to_string(size) + " bytes") != std::string::npos);
  }
  CHECK(Written(whole + "x").error().code == Errc::FileCorrupt);
}

TEST_CASE("peer logits: another kind of file, or none, is an error") {
  for (const std::string bytes : {"", "_logits_", "GGUF and more than twenty bytes"})
    CHECK(Written(bytes).error().code == Errc::FileCorrupt);
  CHECK(PeerLogits::open("/nowhere/logits").error().code == Errc::FileNotFound);
}

TEST_CASE("peer logits: counts and tokens out of range are refused before memory is used") {
  for (std::int32_t testing::PeerFile::* count :
       {&testing::PeerFile::window, &testing::PeerFile::n_vocab, &testing::PeerFile::windows}) {
    for (const std::int32_t value : {0, -1, (1 << 20) + 1}) {
      testing::PeerFile file = small_file();
      file.*count = value;
      CHECK(Written(file).error().code == Errc::FileCorrupt);
    }
  }
  testing::PeerFile huge = small_file();
  huge.window = huge.n_vocab = huge.windows = 1 << 20;
  CHECK(Written(huge).error().code == Errc::FileCorrupt);
  for (const TokenId token : {-1, 3}) {
    testing::PeerFile file = small_file();
    file.tokens.back() = token;
    const Error error = Written(file).error();
    CHECK(error.code == Errc::FileCorrupt);
    CHECK(error.detail.find("token " + std::to_string(token)) != std::string::npos);
  }
}

TEST_CASE("peer logits: a position that is not a distribution is refused") {
  testing::PeerFile file = small_file();
  file.rows.front().lowest = -30;
  const Written written(file);
  PeerLogits logits = testing::required(PeerLogits::open(written.path()));
  CHECK(logits.next().error().code == Errc::FileCorrupt);
}

}  // namespace leasehold
