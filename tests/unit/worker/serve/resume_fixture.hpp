/// Tenants that submit, resume and move resumable requests.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/worker/serve/server_fixture.hpp"

namespace leasehold::testing {

inline constexpr std::uint32_t kResumeTokens = 24;

struct Asked {
  std::string prompt = "Once upon a time";
  std::vector<std::int32_t> emitted = {};
  bool resumable = true;
  std::optional<LeaseId> lease = {};
  std::string adapter = {};
};

struct ResumeFixture : ServerFixture {
  void submit(TestTenant& tenant, const std::string& id, const Asked& asked = {}) {
    const std::string token =
        asked.lease ? mint_token({}, {*asked.lease, {tenant.name}}) : token_of(tenant.name);
    wire::RequestSubmit request{.token = token, .request_id = {id}, .prompt = asked.prompt};
    request.emitted = asked.emitted;
    request.adapter = asked.adapter;
    if (!asked.emitted.empty()) request.adapter_digest.assign(64, 'a');  // as a session does
    request.max_emitted_tokens = kResumeTokens;
    request.ignore_eos = true;
    request.resumable = asked.resumable;
    call(tenant, id, std::string(wire::RequestSubmit::kMethod), request.to_json());
  }
  void resume(TestTenant& tenant, const std::string& id, std::optional<std::uint32_t> after = {}) {
    call(tenant, id, std::string(wire::RequestResume::kMethod),
         wire::RequestResume{.request_id = {id}, .after_position = after}.to_json());
  }
  void move(TestTenant& tenant, const std::string& id, LeaseId to) {
    call(tenant, "move " + id, std::string(wire::RequestMove::kMethod),
         wire::RequestMove{.request_id = {id}, .token = mint_token({}, {to, {tenant.name}})}
             .to_json());
  }
  void parse_until_answered(TestTenant& tenant, const std::string& id) {
    run_until(io, [&] {
      parse();
      return tenant.answers.contains(id);
    });
  }
  Errc error_of(TestTenant& tenant, const std::string& id) {
    parse_until_answered(tenant, id);
    REQUIRE_FALSE(tenant.answers.at(id).has_value());
    return tenant.answers.at(id).error().code;
  }
  /// The engine does not run yet.
  void submit_and_parse(TestTenant& tenant, const Asked& asked = {}) {
    submit(tenant, "r", asked);
    wait_until_seen(tenant);
    CHECK(parse() == 1);
  }
  void submit_and_answer(TestTenant& tenant, const std::string& id, const Asked& asked = {}) {
    submit(tenant, id, asked);
    parse_until_answered(tenant, id);
  }
  void run_until_ended(const TestTenant& tenant) {
    run_until(io, [&tenant] { return tenant.has_ended(); });
  }
  /// Another connection submits "r" under a lease of its own.
  std::unique_ptr<TestTenant> join_under(LeaseId other) {
    auto joined = tenant();
    submit_and_answer(*joined, "r", {.lease = other});
    return joined;
  }
  /// One tenant submits "r", and another connection resumes it once it is parsed.
  void submit_and_resume(TestTenant& submitter, TestTenant& reader) {
    submit_and_parse(submitter);
    resume(reader, "r");
    wait_until_seen(reader);
  }
  /// The connection closes, and the server has seen it.
  void hang_up(std::unique_ptr<TestTenant> tenant) {
    tenant->peer->close_now();
    gone.push_back(std::move(tenant));  // its calls may still be answered
    const auto other = this->tenant("bob");
    wait_until_seen(*other);
  }
  static std::vector<wire::TokenEmitted> tokens_of(const TestTenant& tenant) {
    std::vector<wire::TokenEmitted> tokens;
    for (const auto& [method, payload] : tenant.seen.notifications) {
      if (method == wire::TokenEmitted::kMethod)
        tokens.push_back(*wire::TokenEmitted::from_json(payload.body));
    }
    return tokens;
  }
  static std::vector<std::int32_t> ids_of(const TestTenant& tenant, std::uint32_t first = 0) {
    std::vector<std::int32_t> ids;
    for (const auto& token : tokens_of(tenant)) {
      CHECK(token.position == first + ids.size());
      ids.push_back(token.token);
    }
    return ids;
  }
  static std::string reason_of(const TestTenant& tenant) {
    return tenant.seen.notifications.back().second.body.at("reason");
  }
  /// Between two steps, once the request "r" has emitted that many tokens.
  void replace_lease_after(std::uint32_t tokens) {
    loop.post([this, tokens](Engine&) {
      const Sequence* sequence = rig.sequence("ann/r");
      if (sequence == nullptr || sequence->emitted() < tokens) return replace_lease_after(tokens);
      rig.revoke(lease);
      lease = rig.grant("ann");
    });
  }
  /// The adapter "tuned" has this content from now on. The engine does not run a request.
  void load_adapter(std::uint8_t content) { rig.load_adapter("tuned", content); }
  std::vector<std::int32_t> undisturbed() {
    const auto other = tenant();
    submit_and_answer(*other, "undisturbed", {.resumable = false});
    run_until_ended(*other);
    return ids_of(*other);
  }

  std::vector<std::unique_ptr<TestTenant>> gone;
};

}  // namespace leasehold::testing
