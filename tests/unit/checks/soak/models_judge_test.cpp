// A record of the soak with two models passes, and fails the one check that each change breaks.
#include "tests/checks/soak/models/models_run.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <set>

#include "common/errc.hpp"

namespace leasehold::soak {
namespace {

runner::Text text_of(const std::string& model, std::vector<std::int32_t> tokens) {
  return {.tenant = "t0",
          .record = {.tokens = std::move(tokens), .completed = "MaxTokensReached"},
          .undisturbed = {1, 2, 3},
          .model = model};
}

runner::Text failed_text(std::vector<std::int32_t> tokens) {
  runner::Text text = text_of("first", std::move(tokens));
  text.record.completed.reset();
  text.record.failed = "MissingWeight: ";
  text.record.reported.push_back({.event = "failed", .why = "MissingWeight"});
  text.exit_status = exit_code(Errc::MissingWeight);
  return text;
}

runner::Record good_record() {
  runner::Record record;
  record.revoked_without_reader = 1;
  record.calm_texts = 2;
  record.actions.fill(1);
  record.texts = {text_of("first", {1, 2, 3}), text_of("second", {1, 2, 3}), failed_text({1, 2})};
  record.ends = {{"w0", exit_code(Errc::FileCorrupt)}};
  return record;
}

std::set<std::string> failed_checks(const runner::Record& record) {
  std::set<std::string> failed;
  for (const runner::Check& check : judge_models(record))
    if (!check.ok) failed.insert(check.promise);
  return failed;
}

struct Spoiled {
  std::string promise;
  std::function<void(runner::Record&)> change;
};

const Spoiled kSpoiled[] = {
    {"every text that ends well is the undisturbed text of its model",
     [](runner::Record& record) { record.texts[1].record.tokens = {1, 2, 4}; }},
    {"every text that ends well is the undisturbed text of its model",
     [](runner::Record& record) { record.texts[1].model = "first"; }},
    {"every other text is its beginning, and its end has an error code",
     [](runner::Record& record) { record.texts[2].record.tokens = {2}; }},
    {"every other text is its beginning, and its end has an error code",
     [](runner::Record& record) { record.texts[2].record.failed.reset(); }},
    {"every other text is its beginning, and its end has an error code",
     [](runner::Record& record) { record.texts[2].exit_status = 139; }},
    {"no broker ends, and workers end with an error code",
     [](runner::Record& record) { record.ends[0].status = 134; }},
    {"no broker ends, and workers end with an error code",
     [](runner::Record& record) { record.ends[0].program = "broker"; }},
    {"leases are revoked while nothing reads the logs",
     [](runner::Record& record) { record.revoked_without_reader = 0; }},
    {"once every file is whole again, every tenant gets its text",
     [](runner::Record& record) { record.calm_texts = 0; }},
    {"every kind of disturbance happened", [](runner::Record& record) {
       record.actions[static_cast<std::size_t>(runner::ActionKind::RestoreFile)] = 0;
     }}};

}  // namespace

TEST_CASE("models soak: a record without a fault passes every check") {
  CHECK(failed_checks(good_record()).empty());
}

TEST_CASE("models soak: each fault in a record fails its check and no other") {
  for (const Spoiled& spoiled : kSpoiled) {
    INFO(spoiled.promise);
    runner::Record record = good_record();
    spoiled.change(record);
    CHECK(failed_checks(record) == std::set<std::string>{spoiled.promise});
  }
}

TEST_CASE("models soak: the report counts texts and ends of workers by error code") {
  const runner::Record record = good_record();
  const std::string text = models_text(record, judge_models(record));
  CHECK_THAT(text, Catch::Contains("texts ended by MissingWeight"));
  CHECK_THAT(text, Catch::Contains("workers ended by FileCorrupt"));
}

}  // namespace leasehold::soak
