/// Workers of several models at one broker: a text continues with its own model only, and a new
/// text names one. With real processes.
#include <signal.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "common/machine/process.hpp"
#include "tests/support/generated_model.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing {
namespace {

constexpr std::size_t kReadBefore = 30;

TenantSpec spec_of(std::vector<std::string> more) {
  TenantSpec spec{.tenant = "ann", .max_tokens = 200, .rebind = true, .more = std::move(more)};
  return spec;
}

/// w1 serves the bundled model, and w2 a generated one.
struct TwoModels {
  TwoModels() {
    system.admit("ann");
    alone = system.undisturbed(spec_of({}));
    system.start_ready_worker_on(other.path(), "w2");
  }
  std::string model_of(const std::string& worker) {
    const auto workers = system.view().workers().value();
    for (const wire::WorkerView& view : workers)
      if (view.worker == worker) return view.model;
    return {};
  }
  void kill(const std::string& worker) {
    REQUIRE(system.worker(worker).signal(SIGKILL));
    REQUIRE(eventually([&] { return has_exited(system.worker(worker).pidfd()); }));
  }
  /// Of the same bytes, under another path.
  std::string copy_of_model() const {
    const std::string copy = system.directory() / "copy.gguf";
    std::filesystem::copy_file(bundled_model_path(), copy);
    return copy;
  }

  GeneratedModel other{family_named("llama")};
  System system{{.worker_arguments = {"--slow-motion-us", "100", "--threads", "1"}}};
  std::vector<std::int32_t> alone;
};

}  // namespace

TEST_CASE(
    "models: after a revocation a text goes on with its model, whatever leases workers hold") {
  TwoModels models;
  const auto text =
      models.system.start_streaming(spec_of({"--model", models.model_of("w1")}), kReadBefore);

  REQUIRE(models.system.brokerctl({"revoke", "--tenant", "ann"}) == 0);

  check_whole(*text, models.alone);
}

TEST_CASE("models: without its model a text ends with an error, and has no token of another one") {
  TwoModels models;
  const auto text =
      models.system.start_streaming(spec_of({"--model", models.model_of("w1")}), kReadBefore);

  models.kill("w1");

  CHECK(text->finish() == exit_code(Errc::NoModelLoaded));
  CHECK(is_prefix(text->record().tokens, models.alone));
  CHECK_THAT(text->record().failed.value_or(""),
             Catch::Contains("on worker w2 the content of the model is sha256:"));
}

TEST_CASE(
    "models: a text goes on at a worker of a byte-identical copy, and so does worker replace") {
  TwoModels models;
  System& system = models.system;
  const auto text =
      system.start_streaming(spec_of({"--model", models.model_of("w1")}), kReadBefore);
  system.start_ready_worker_on(models.copy_of_model(), "w3");
  const bool is_replaced = GENERATE(false, true);
  if (is_replaced) {
    CHECK(system.brokerctl({"worker", "replace", "w1", "w2"}) == exit_code(Errc::BadRequest));
    CHECK(system.brokerctl({"worker", "replace", "w1", "w3"}) == 0);
  } else {
    models.kill("w1");
  }

  check_whole(*text, models.alone);
  REQUIRE(text->record().leases.size() == 2);
  CHECK(system.lease(text->record().leases[1]).worker == "w3");
  CHECK(count_of(system.worker_log("w3"), "memory adopted") == (is_replaced ? 1 : 0));
}

TEST_CASE("models: a worker of the same name with another model does not continue a text") {
  TwoModels models;
  const auto text = models.system.start_streaming(spec_of({"--worker", "w1"}), kReadBefore);

  models.kill("w1");
  models.system.start_ready_worker_on(models.other.path(), "w1");

  CHECK(text->finish() == exit_code(Errc::UnknownWorker));
  CHECK(is_prefix(text->record().tokens, models.alone));
}

TEST_CASE("models: a new text names one of several models") {
  TwoModels models;
  const auto run = [&](std::vector<std::string> more) {
    const auto text =
        models.system.start_tenant({.tenant = "ann", .max_tokens = 4, .more = std::move(more)});
    return text->finish();
  };

  CHECK(run({}) == exit_code(Errc::BadRequest));
  CHECK(run({"--model", "none"}) == exit_code(Errc::UnknownWorker));
  CHECK(run({"--model", "sha256:0123"}) == 2);
  CHECK(run({"--model", models.model_of("w1")}) == 0);
  CHECK(run({"--worker", "w2"}) == 0);
  CHECK(run({"--worker", "w2", "--model", models.model_of("w1")}) ==
        exit_code(Errc::UnknownWorker));
}

TEST_CASE("models: a text that does not fit into the successor's context ends with an error") {
  System system(
      {.worker_arguments = {"--slow-motion-us", "100", "--threads", "1"}, .tenants = {"ann"}});
  const auto alone = system.undisturbed(spec_of({}));
  const auto text = system.start_streaming(spec_of({}), kReadBefore);
  REQUIRE(system.worker().signal(SIGKILL));
  REQUIRE(eventually([&] { return has_exited(system.worker().pidfd()); }));

  system.start_ready_worker("w1", {}, {"--max-context", "100"});

  CHECK(text->finish() == exit_code(Errc::UnknownWorker));
  CHECK(is_prefix(text->record().tokens, alone));
  CHECK_THAT(text->record().failed.value_or(""), Catch::Contains("worker w1 holds 100 tokens"));
}

}  // namespace leasehold::testing
