/// A model with byte-level tokens: text arrives in whole characters of several tokens each.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/support/generated_model.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing {
namespace {

/// A system whose worker has a byte-level model; it can force a text by grammar.
class ByteLevelSystem : public System {
 public:
  explicit ByteLevelSystem(const char* slow_motion_us = "0")
      : System({.worker_arguments = {"--slow-motion-us", slow_motion_us},
                .start_worker = false,
                .model_name = "byte-level.gguf"}) {
    const GeneratedModel made(family_named("qwen2"));
    std::filesystem::copy_file(made.path(), directory() / "byte-level.gguf");
    start_ready_worker("w1");
    admit("ann");
  }

  /// A request whose only possible answer is `text`.
  TenantSpec forced(const std::string& text) const {
    const std::string path = directory() / "text.gbnf";
    std::ofstream(path) << "root ::= \"" << text << "\"\n";
    return {.tenant = "ann",
            .prompt = "Zoë: ",
            .max_tokens = 200,
            .ignore_eos = false,
            .more = {"--grammar", path}};
  }
};

std::string repeated(const std::string& text, int times) {
  std::string all;
  while (times-- > 0) all += text;
  return all;
}

}  // namespace

TEST_CASE("byte-level: text arrives in whole characters, even of several tokens each") {
  ByteLevelSystem system;
  const std::string text = "Größe, 日本語 été 🦊!";
  const auto tenant = system.start_tenant(system.forced(text));
  CHECK(tenant->finish() == 0);
  INFO(tenant->record().failed.value_or("did not fail"));
  CHECK(tenant->record().text == text);
  CHECK(tenant->record().completed == "EndOfSequence");
  // Each token is one byte: 3 times 3, 1 times 4 …
  CHECK(tenant->record().tokens.size() > 20);
}

TEST_CASE("byte-level: a rebind in the middle of a character continues that character") {
  ByteLevelSystem system("1000");
  const std::string text = repeated("🦊", 40);  // four tokens each
  TenantSpec asked = system.forced(text);
  asked.rebind = true;
  const auto tenant = system.start_tenant(asked);
  for (const std::size_t after : {9u, 26u, 55u}) {
    REQUIRE(tenant->read_tokens(after));
    system.revoke_mid_request("ann");
    REQUIRE(tenant->read_until([&](const auto& record) {
      return record.leases.size() > record.revocations.size() && !record.revocations.empty() &&
             record.revocations.back().after_tokens >= after;
    }));
  }
  CHECK(tenant->finish() == 0);
  INFO(tenant->record().failed.value_or("did not fail"));
  CHECK(tenant->record().text == text);
  CHECK(tenant->record().tokens.size() == 160);
  CHECK(tenant->record().revocations.size() == 3);
}

TEST_CASE("byte-level: invalid bytes become U+FFFD, the same in every run") {
  ByteLevelSystem system;
  const TenantSpec asked{.tenant = "ann", .prompt = "baba été", .max_tokens = 100};
  const auto tenant = system.start_tenant(asked);
  CHECK(tenant->finish() == 0);
  INFO(tenant->record().failed.value_or("did not fail"));
  CHECK(tenant->record().tokens.size() == 100);
  // Random weights generate random bytes.
  CHECK(tenant->record().text.find("\uFFFD") != std::string::npos);
  CHECK(system.undisturbed(asked) == tenant->record().tokens);
}

}  // namespace leasehold::testing
