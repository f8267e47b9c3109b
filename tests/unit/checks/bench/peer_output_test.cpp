#include "tests/checks/bench/peer_output.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "tests/support/required.hpp"

namespace leasehold::bench {
namespace {

const std::string kPrompt =
    R"({"build_commit": "abc1234", "build_number": 17, "model_type": "qwen2 1B Q8_0", )"
    R"("n_threads": 2, "n_prompt": 512, "n_gen": 0, "avg_ns": 1000, "avg_ts": 412.250000, )"
    R"("samples_ts": [412.25]})"
    "\n";
const std::string kAnswer =
    R"({"build_commit": "abc1234", "build_number": 17, "model_type": "qwen2 1B Q8_0", )"
    R"("n_threads": 2, "n_prompt": 0, "n_gen": 16, "avg_ns": 1000, "avg_ts": 55.5, )"
    R"("samples_ts": [55.5]})"
    "\n";
const std::string kBatches =
    "\n"
    R"({"n_batch": 2048, "n_threads": 2, "pp": 2, "tg": 16, "pl": 8, "speed_pp": 70.0, )"
    R"("t_tg": 0.7, "speed_tg": 180.5, "speed": 160.0})"
    "\n"
    R"({"n_batch": 2048, "n_threads": 2, "pp": 2, "tg": 16, "pl": 32, "speed_pp": 90.0, )"
    R"("t_tg": 2.4, "speed_tg": 210.25, "speed": 200.0})"
    "\n\n";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST_CASE("peer output: the lines of a prompt and an answer give both speeds and the version") {
  const auto parsed = testing::required(parse_peer_bench(kPrompt + kAnswer, 2));
  CHECK(parsed.version == "abc1234 (17)");
  CHECK(parsed.format == "qwen2 1B Q8_0");
  CHECK(parsed.prefill == 412.25);
  CHECK(parsed.decode == 55.5);
}

TEST_CASE("peer output: the lines of two batches give both speeds, and other lines none") {
  const Figures figures = testing::required(parse_peer_batches("banner\n" + kBatches, 2));
  CHECK(figures == Figures{{"batch_8", 180.5}, {"batch_32", 210.25}});
}

TEST_CASE("peer output: output that cannot be used is an error that shows it") {
  const std::string both = kPrompt + kAnswer;
  for (const std::string& text :
       {std::string(), std::string("| model | size |\n"), kPrompt, kAnswer,
        replaced(both, "\"avg_ts\": 55.5", "\"avg_ts\": 0"), replaced(both, "avg_ts", "ts"),
        replaced(both, "\"abc1234\"", "null"),
        replaced(both, "\"n_threads\": 2", "\"n_threads\": 1"), both + "{\"n_threads\": \n"}) {
    CAPTURE(text);
    const auto parsed = parse_peer_bench(text, 2);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().code == Errc::MalformedMessage);
    CHECK(parsed.error().detail.starts_with("llama-bench printed"));
  }
  for (const std::string& text :
       {std::string(), kBatches.substr(0, kBatches.find("\"pl\": 32")) + "}\n",
        replaced(kBatches, "\"pl\": 32", "\"pl\": 31"), replaced(kBatches, "180.5", "-1"),
        replaced(kBatches, "180.5", "\"fast\"")}) {
    CAPTURE(text);
    const auto parsed = parse_peer_batches(text, 2);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().code == Errc::MalformedMessage);
  }
  CHECK_FALSE(parse_peer_batches(kBatches, 1));
}

}  // namespace leasehold::bench
