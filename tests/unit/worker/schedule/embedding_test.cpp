// What a request may ask of an embedding, and how states are pooled.
#include "worker/schedule/embedding.hpp"

#include <catch2/catch.hpp>
#include <limits>

namespace leasehold::testing {

TEST_CASE("parse embedding: the request decides the pooling, else the file, else the last row") {
  const auto pooling = [](const char* asked, const char* file) {
    return parse_embedding({.pooling = asked}, {.pooling = file, .width = 64}).value().pooling;
  };
  CHECK(pooling("", "none") == Pooling::Last);
  CHECK(pooling("", "mean") == Pooling::Mean);
  CHECK(pooling("last", "mean") == Pooling::Last);
  CHECK(pooling("mean", "cls") == Pooling::Mean);
  for (const char* file : {"cls", "rank"}) {
    const auto refused = parse_embedding({}, {.pooling = file, .width = 64});
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code == Errc::BadRequest);
    CHECK(refused.error().detail.contains(file));
  }
}

TEST_CASE("parse embedding: fewer dimensions need a model that was trained for them") {
  const auto parse = [](std::uint32_t dimensions, bool is_matryoshka) {
    return parse_embedding({.dimensions = dimensions},
                           {.width = 64, .is_matryoshka = is_matryoshka});
  };
  CHECK(parse(64, false).value().dimensions == 64);
  CHECK(parse(8, true).value().dimensions == 8);
  CHECK(parse(8, false).error().detail.contains("--matryoshka"));
  CHECK(parse(65, true).error().detail.contains("64"));
}

TEST_CASE("embedding: the mean of states has length 1, also cut to fewer dimensions") {
  PooledStates states;
  states.add(std::vector{1.0f, 5.0f, 0.0f});
  states.add(std::vector{5.0f, 3.0f, 1e-30f});
  CHECK(states.count() == 2);
  CHECK(states.embedding(0) == std::vector{0.6f, 0.8f, static_cast<float>(1e-30f / 10.0)});
  CHECK(states.embedding(1) == std::vector{1.0f});
}

TEST_CASE("embedding: a state of zeros stays zero, and one that is not finite is found") {
  PooledStates states;
  states.add(std::vector{0.0f, 0.0f});
  CHECK(states.embedding(0) == std::vector{0.0f, 0.0f});
  CHECK(states.is_finite());
  states.add(std::vector{0.0f, std::numeric_limits<float>::infinity()});
  CHECK_FALSE(states.is_finite());
}

}  // namespace leasehold::testing
