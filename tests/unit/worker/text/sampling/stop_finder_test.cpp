#include "worker/text/sampling/stop_finder.hpp"

#include <catch2/catch.hpp>

#include "common/random.hpp"

namespace leasehold {
namespace {

struct StopResult {
  std::string text;
  bool stopped = false;
  bool operator==(const StopResult&) const = default;
};

/// The text passed on if `text` arrives in pieces of at most `most` bytes.
StopResult run_stop_finder(const std::vector<std::string>& stops, std::string_view text,
                           std::uint64_t most, std::uint64_t seed) {
  StopFinder finder(stops);
  SeededRandom random(seed);
  StopResult result;
  while (!text.empty() && !finder.found()) {
    const std::size_t n = std::min<std::size_t>(1 + random.below(most), text.size());
    result.text += finder.push(text.substr(0, n));
    text.remove_prefix(n);
  }
  result.stopped = finder.found();
  result.text += finder.finish();
  return result;
}

}  // namespace

TEST_CASE("stop finder: the text before a stop string is passed on, the stop string is not") {
  StopFinder finder({"END"});
  REQUIRE(finder.push("abc") == "abc");
  REQUIRE(finder.push("dENDxyz") == "d");
  REQUIRE(finder.found());
  REQUIRE(finder.push("more").empty());
  REQUIRE(finder.finish().empty());
}

TEST_CASE("stop finder: a possible stop string is held back until it is ruled out") {
  StopFinder finder({"</s>", "END"});
  REQUIRE(finder.push("a<") == "a");
  REQUIRE(finder.push("/").empty());
  REQUIRE(finder.push("b") == "</b");
  REQUIRE(finder.push("EN").empty());
  REQUIRE(finder.push("EN") == "EN");
  REQUIRE(finder.finish() == "EN");
  REQUIRE_FALSE(finder.found());
}

TEST_CASE("stop finder: the first completed stop string wins, at ties the longest") {
  REQUIRE(run_stop_finder({"abc", "b"}, "xabc", 4, 0) == StopResult{"xa", true});
  REQUIRE(run_stop_finder({"c", "abc", "bc"}, "xabc", 4, 0) == StopResult{"x", true});
}

TEST_CASE("stop finder: the division into pieces does not matter") {
  SeededRandom random(11);
  int stopped = 0;
  for (std::uint64_t round = 0; round < 3000; ++round) {
    std::vector<std::string> stops(1 + random.below(3));
    for (std::string& stop : stops)
      for (std::uint64_t n = 1 + random.below(4); n > 0; --n)
        stop += static_cast<char>('a' + random.below(2));
    std::string text;
    for (int i = 0; i < 12; ++i) text += static_cast<char>('a' + random.below(3));
    const StopResult bytewise = run_stop_finder(stops, text, 1, round);
    for (const std::uint64_t most : {2u, 5u, 12u})
      REQUIRE(run_stop_finder(stops, text, most, round) == bytewise);
    if (!bytewise.stopped) REQUIRE(bytewise.text == text);
    stopped += bytewise.stopped ? 1 : 0;
  }
  REQUIRE(stopped > 1000);
}

TEST_CASE("stop finder: an included stop string ends the text that is passed on") {
  StopFinder finder({"END", "ND"}, true);
  REQUIRE(finder.push("abEN") == "ab");
  REQUIRE(finder.push("Dxyz") == "END");
  REQUIRE(finder.found());
  REQUIRE(finder.finish().empty());
}

TEST_CASE("stop finder: a stop string that may not end the text yet is passed on") {
  StopFinder finder({"b", "abc"});
  REQUIRE(finder.push("xab", false) == "x");
  REQUIRE_FALSE(finder.found());
  // "b" ended before; "abc" ends now.
  REQUIRE(finder.push("c").empty());
  REQUIRE(finder.found());
  StopFinder other({"b", "abc"});
  REQUIRE(other.push("ab", false).empty());
  REQUIRE(other.push("x") == "abx");
  REQUIRE_FALSE(other.found());
}

}  // namespace leasehold
