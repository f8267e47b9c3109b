// Scopes of an evaluator.
#include <catch2/catch.hpp>

#include "worker/text/chat/jinja/evaluator.hpp"

namespace leasehold::jinja {
namespace {

std::int64_t integer_of(Evaluator& evaluator, std::string_view name) {
  const auto value = evaluator.look_up(name);
  REQUIRE(value);
  return value->is_integer() ? value->integer() : -1;
}

}  // namespace

TEST_CASE("jinja: a name means the variable of the nearest scope") {
  Runtime runtime({}, 0);
  Evaluator evaluator(runtime);
  evaluator.define("a", Value(std::int64_t{1}));
  evaluator.define("b", Value(std::int64_t{2}));
  const ScopeRef outer = evaluator.scope();
  {
    const Evaluator::InnerScope inner(evaluator);
    evaluator.define("a", Value(std::int64_t{3}));
    CHECK(integer_of(evaluator, "a") == 3);
    CHECK(integer_of(evaluator, "b") == 2);
    const Evaluator::InnerScope of_macro(evaluator, outer);
    CHECK(integer_of(evaluator, "a") == 1);
  }
  CHECK(evaluator.scope() == outer);
  CHECK(integer_of(evaluator, "a") == 1);
}

TEST_CASE("jinja: a name without a variable is a function, or undefined") {
  Runtime runtime({}, 0);
  Evaluator evaluator(runtime);
  CHECK(evaluator.look_up("range")->is<CallableRef>());
  CHECK(evaluator.look_up("missing")->is_undefined());
  evaluator.define("range", Value(true));
  CHECK(evaluator.look_up("range")->is<bool>());
}

TEST_CASE("jinja: a search through many scopes takes steps") {
  Runtime runtime({.steps = 3}, 0);
  Evaluator evaluator(runtime);
  const Evaluator::InnerScope one(evaluator);
  const Evaluator::InnerScope two(evaluator);
  CHECK(evaluator.look_up("range").error().code == Errc::PromptTooLong);
}

}  // namespace leasehold::jinja
