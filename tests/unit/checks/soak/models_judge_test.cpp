// A record of the soak with two models passes, and fails the one check that each change breaks.
#include "tests/checks/soak/models/models_judge.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <set>

#include "common/errc.hpp"

namespace leasehold::soak {
namespace {

ModelText text_of(const std::string& model, std::vector<std::int32_t> tokens) {
  return {.model = model,
          .record = {.name = "t0", .tokens = std::move(tokens), .completed = "MaxTokensReached"},
          .undisturbed = {1, 2, 3}};
}

ModelText failed_text(std::vector<std::int32_t> tokens) {
  ModelText text = text_of("first", std::move(tokens));
  text.record.completed.reset();
  text.record.failed = "MissingWeight: ";
  text.record.reported.push_back({.event = "failed", .why = "MissingWeight"});
  text.exit_status = exit_code(Errc::MissingWeight);
  return text;
}

ModelsHistory good_history() {
  ModelsHistory history{.revoked_without_reader = 1, .calm_texts = 2};
  history.actions.fill(1);
  history.texts = {text_of("first", {1, 2, 3}), text_of("second", {1, 2, 3}), failed_text({1, 2})};
  history.ends = {{"w0", exit_code(Errc::FileCorrupt)}};
  return history;
}

std::set<std::string> failed_checks(const ModelsHistory& history) {
  std::set<std::string> failed;
  for (const demo::Check& check : judge_models(history))
    if (!check.ok) failed.insert(check.promise);
  return failed;
}

struct Spoiled {
  std::string promise;
  std::function<void(ModelsHistory&)> change;
};

const Spoiled kSpoiled[] = {
    {"every text that ends well is the undisturbed text of its model",
     [](ModelsHistory& history) { history.texts[1].record.tokens = {1, 2, 4}; }},
    {"every text that ends well is the undisturbed text of its model",
     [](ModelsHistory& history) { history.texts[1].model = "first"; }},
    {"every other text is its beginning, and its end has an error code",
     [](ModelsHistory& history) { history.texts[2].record.tokens = {2}; }},
    {"every other text is its beginning, and its end has an error code",
     [](ModelsHistory& history) { history.texts[2].record.failed.reset(); }},
    {"every other text is its beginning, and its end has an error code",
     [](ModelsHistory& history) { history.texts[2].exit_status = 139; }},
    {"no broker ends, and workers end with an error code",
     [](ModelsHistory& history) { history.ends[0].status = 134; }},
    {"no broker ends, and workers end with an error code",
     [](ModelsHistory& history) { history.ends[0].program = "broker"; }},
    {"leases are revoked while nothing reads the logs",
     [](ModelsHistory& history) { history.revoked_without_reader = 0; }},
    {"once every file is whole again, every tenant gets its text",
     [](ModelsHistory& history) { history.calm_texts = 0; }},
    {"every kind of disturbance happened", [](ModelsHistory& history) { history.actions[3] = 0; }}};

}  // namespace

TEST_CASE("models soak: a history without a fault passes every check") {
  CHECK(failed_checks(good_history()).empty());
}

TEST_CASE("models soak: each fault in a history fails its check and no other") {
  for (const Spoiled& spoiled : kSpoiled) {
    INFO(spoiled.promise);
    ModelsHistory history = good_history();
    spoiled.change(history);
    CHECK(failed_checks(history) == std::set<std::string>{spoiled.promise});
  }
}

TEST_CASE("models soak: the report counts texts and ends of workers by error code") {
  const ModelsHistory history = good_history();
  const std::string text = models_text(history, judge_models(history));
  CHECK_THAT(text, Catch::Contains("texts ended by MissingWeight"));
  CHECK_THAT(text, Catch::Contains("workers ended by FileCorrupt"));
}

}  // namespace leasehold::soak
